"""Forgetting the rows of somebody, where rows are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from .._typing import Array
from ..objectives.leaving_rows import can_forget, has_others, ids_of
from ..readers.id_tables import as_objects
from .linear_run import LinearRun
from .pairs import column_of

__all__ = ["ForgetsRows", "check_named", "checked_leavers"]

#: So many ids that are not known are named.
NAMED = 5
KINDS = {str: "text", int: "whole numbers"}


class ForgetsRows:
    """A model of rows that can forget those of an id."""

    _learning: Callable[[str], Any]
    _play: Callable[..., Any]

    def forget(self, ids: Any) -> Self:
        """Forget all rows of an id, a person say, or of several.

        The rows learned with these ``ids`` are removed from the past, and so are the ids. Then
        coefficients and intercept are corrected on the F_t without them, by a step at least and as
        by ``correct()`` (without a ``corrective`` by a round without new rows, as by ``refine()``),
        and ``gap_`` speaks of that F_t. If they come back they are new.

        This is no proof that nothing could be inferred. Files and checkpoints that were written
        before still hold the rows, and so does the log of workers while they run. The coefficients
        may keep traces, below the certificate, of what the rows have taught; the scales of columns,
        the scores of radii, counts, the losses in ``history_`` and older coefficients in ``path_``
        are of all that came.

        Parameters
        ----------
        ids : int, str or array-like of them
            Whose rows. One of whom no rows are kept is refused, and then nothing changes; so are
            all that have rows: call ``fit`` to begin anew.
        """
        run = self._learning("forget")
        with run.turns:
            self._play(run.forget, checked_leavers(run, ids))
        return self


def check_named(run: LinearRun, ids: Array | None) -> None:
    """Refuse rows with ids where no rows are kept, and ids of another kind than those known."""
    if ids is None or not ids.size:
        return
    _check_kept(run)
    known, kind = ids_of(run.learners[0].objective), type(ids[0])
    if known is not None and known.kind not in (None, kind):
        raise ValueError(
            f"the ids of this model are {KINDS[known.kind]}, and {ids[0]!r:.40} is not: convert "
            "ids, or call fit to begin anew"
        )


def checked_leavers(run: LinearRun, ids: Any) -> list[Any]:
    """Return the ids whose rows are to be forgotten, or say why they cannot be."""
    _check_kept(run)
    ids = ids.reshape(-1) if isinstance(ids, np.ndarray) else ids
    alone = isinstance(ids, str) or not isinstance(ids, Iterable)
    values = as_objects([ids] if alone else ids)
    some = column_of("row", values).ids.tolist()
    objective, opening = run.longest.learners[0].objective, run.opening
    known, first = ids_of(objective), set() if opening is None else opening.ids
    if known is None:
        raise ValueError(
            "no rows with ids have been learned: pass ids= to partial_fit, fit or learn"
        )
    if not some:
        raise ValueError("there are no ids to forget: pass at least one")
    unknown = [one for one in some if one not in known and one not in first]
    if unknown:
        more = f" and {len(unknown) - NAMED} others" if len(unknown) > NAMED else ""
        names = ", ".join(f"{one!r:.40}" for one in unknown[:NAMED])
        raise ValueError(
            f"no rows are kept of the ids {names}{more}: they were never learned, or have left "
            "the past already; forget the others alone"
        )
    if not has_others(objective, some):
        raise ValueError(
            "no other rows would be left to learn from: call fit, or make a new model, to begin "
            "without them"
        )
    return some


def _check_kept(run: LinearRun) -> None:
    if not can_forget(run.learners[0].objective):
        what = "a summary" if run.parts.past == "summary" else "running sums"
        raise ValueError(
            f"{what} of all rows cannot forget some of them, so there are no ids: use "
            'past="recent" or past="reservoir" with max_past=..., which keep rows'
        )
