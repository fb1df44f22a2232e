"""Collections of garbage that are short, because they leave out what is there for good."""

from __future__ import annotations

import gc

__all__ = ["keep_for_good", "let_go"]


def keep_for_good() -> None:
    """Leave what is loaded and compiled by now out of all collections.

    These hold every thread, and walking through all of it took up to 0.28 s, in which no prediction
    was answered. Of the rest they are short, and come sooner: a model that was copied for a
    checkpoint has cycles, and is only freed by one.
    """
    gc.collect()
    gc.freeze()


def let_go() -> None:
    """Free a model that was there from the start, and is not used any more."""
    if gc.get_freeze_count():
        gc.unfreeze()
        keep_for_good()
