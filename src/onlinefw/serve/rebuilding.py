"""A model from its log: the last checkpoint, or what the log began with, and all events since."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..files import ModelFileError, load_checkpoint, save_checkpoint
from .faces import Event, Face, face_of
from .log import EventLog, LogError, Logged, checkpoint_beside
from .new_models import new_model
from .scores import Scores

__all__ = ["Learned", "base_of", "estimator_in", "learn_logged", "rebuilt", "save_learned"]

Say = Callable[[str], None]


class Learned:
    """A model, and how far in the log it is."""

    def __init__(self, model: Any, face: Face, log_id: str = "") -> None:
        self.model, self.face, self.log_id = model, face, log_id
        #: The newest event that was learned, and how many came up to it.
        self.seq = self.n_events = 0
        #: Of predictions just before learning, and of those that were served and labelled later.
        self.progressive, self.served = Scores(), Scores()

    def add_scores(self, predicted: Any, events: list[Event]) -> None:
        """Add the losses of predictions, and of those that were served earlier."""
        self.progressive.add(self.face.losses(predicted, [one.values for one in events]))
        late = [one for one in events if one.served is not None]
        if late:
            served = np.array([one.served for one in late])
            self.served.add(self.face.losses(served, [one.values for one in late]))

    def take_scores(self, facts: dict[str, Any]) -> None:
        """Go on with the scores of a checkpoint."""
        self.progressive = Scores.from_state(facts["progressive"])
        self.served = Scores.from_state(facts["served"])


def rebuilt(
    log: EventLog,
    say: Say,
    *,
    checkpoint: bool = True,
    settings: Any = None,
    is_writer: bool = False,
) -> Learned:
    """Return what the log says: bit for bit what a process would have that was never interrupted.

    Parameters
    ----------
    log : EventLog
        All of it is learned that the checkpoint beside it has not.
    say : callable
        Is told in a line if the checkpoint cannot be used.
    checkpoint : bool
        Without it everything is learned anew.
    settings : dict, optional
        Other settings for the model than those that the log was begun with.
    is_writer : bool
        Whether to remove a checkpoint that has learned what was forgotten since: whoever was to
        remove it was killed.
    """
    learned = _from_checkpoint(log, say, is_writer) if checkpoint else None
    if learned is None:
        learned = _from_base(log, settings)
    for piece in log.after(learned.seq):
        learn_logged(learned, piece)
    learned.n_events = log.events_until(learned.seq)
    return learned


def learn_logged(learned: Learned, piece: list[Logged]) -> list[Event]:
    """Learn events of the log; return them."""
    face, events = learned.face, []
    for one in piece:
        if one.kind != "forget" and one.body is not None:
            body = json.loads(one.body)
            events.append(Event(None, face.values_in(body), one.kind, body.get("served")))
    if events:
        predicted = face.learn(learned.model, [one.values for one in events])
        learned.add_scores(predicted, events)
    learned.seq = piece[-1].seq
    return events


def _from_base(log: EventLog, settings: Any) -> Learned:
    base = base_of(log)
    model = None if base is None else base["model"]
    if settings:
        if base is not None:
            raise ValueError(
                f"{log.path} goes on from a model, which has its settings; other settings are for "
                "logs that began with --new"
            )
        settings = {**log.facts["settings"], **settings}
    if model is None:
        model = new_model(log.facts["kind"], settings or log.facts["settings"])
    learned = Learned(model, face_of(model, log.facts), log.facts["log"])
    learned.seq = log.facts.get("pruned", 0)
    if base is not None and "serve" in base:
        learned.take_scores(base["serve"])
    return learned


def base_of(log: EventLog) -> dict[str, Any] | None:
    """Return what the log goes on from, with its "model"; None if it began with nothing."""
    base = log.base()
    if base is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base.ckpt"
        path.write_bytes(base)
        try:
            content = load_checkpoint(path)
            beside = content if isinstance(content, dict) else {}
            return {**beside, "model": estimator_in(content)}
        except ModelFileError as error:
            why = str(error).replace(str(path), f"the model in {log.path}")
            raise ModelFileError(why) from None


def base_bytes(base: dict[str, Any]) -> bytes:
    """Return a model, with what is beside it, as the base of a log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base.ckpt"
        save_checkpoint(base, path)
        return path.read_bytes()


def estimator_in(content: Any) -> Any:
    """Return the estimator of a checkpoint, which may have other things beside it."""
    found = content.get("model") if isinstance(content, dict) else content
    if not hasattr(found, "learn"):
        raise ModelFileError("this checkpoint holds no model that learns")
    return found


# Checkpoints --------------------------------------------------------------------------------------


def save_learned(learned: Learned, path: Path) -> None:
    """Write a checkpoint, whole or not at all."""
    facts = {
        "log": learned.log_id,
        "seq": learned.seq,
        "events": learned.n_events,
        "progressive": learned.progressive.state_dict(),
        "served": learned.served.state_dict(),
    }
    save_checkpoint({"model": learned.model, "serve": facts}, path)


def _from_checkpoint(log: EventLog, say: Say, is_writer: bool) -> Learned | None:
    path = checkpoint_beside(log.path)
    if not path.exists():
        return None
    try:
        content = load_checkpoint(path)
        facts = content["serve"]
        if facts["log"] != log.facts["log"]:
            raise ModelFileError(f"{path} is the checkpoint of another log")
        seq = int(facts["seq"])
        if seq > log.last:
            raise LogError(
                f"{log.path} ends at event {log.last}, and its checkpoint has learned {seq}: it "
                "is not the whole log; use the right copy, or remove the checkpoint"
            )
        if not log.covers(seq):
            say(f"{path} has learned what was forgotten since; all of the log is learned again")
            if is_writer:
                remove_checkpoint(path)
            return None
        learned = Learned(content["model"], face_of(content["model"], log.facts), facts["log"])
        learned.seq = seq
        learned.take_scores(facts)
        return learned
    except (ModelFileError, KeyError, TypeError) as error:
        say(f"{error}; all of the log is learned again")
        return None


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint that must not be used again."""
    if path.exists():
        os.unlink(path)
