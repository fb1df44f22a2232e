"""``ofw replay``: a model from its log alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._files import same_file
from ..files import digest, save
from .log import EventLog
from .new_models import settings_of
from .rebuilding import rebuilt, save_learned

__all__ = ["replayed"]


def replayed(path: Path, given: list[str], out: Path | None) -> dict[str, Any]:
    """Learn all events of a log anew; return the digest, and how well they were predicted.

    With settings of another model it is a backtest: what that model would have predicted.
    """
    log = EventLog.read(path)
    if out is not None and same_file(out, path):
        raise ValueError(f"{out} is the log itself: name another file for the model")
    try:
        kind = log.facts["kind"]
        if given and kind == "model":
            raise ValueError(
                f"{path} goes on from a model, which has its settings; other settings are for logs "
                "that began with --new"
            )
        settings = settings_of(kind, given) if given else None
        with log.at_one_time():
            learned = rebuilt(log, lambda _: None, checkpoint=False, settings=settings)
    finally:
        log.close()
    if settings:
        learned.log_id = ""  # another model than the one that is served with this log
    if out is not None:
        if out.suffix == ".ofw":
            save(learned.model, out)
        else:
            save_learned(learned, out)
    scores = learned.progressive
    return {
        "events": learned.n_events,
        "digest": digest(learned.model),
        "score": learned.face.score_name,
        "progressive": scores.mean,
        "newest 1000": scores.of_window,
    }
