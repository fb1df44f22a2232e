"""What is served: a model file, a checkpoint, or a model that begins here, with its log."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from .._files import only_writer
from .._version import __version__
from ..files import load, load_checkpoint, read_header
from ..fitting.described import described
from .engine import Engine
from .faces import Face, PairsFace, RowsFace, face_of
from .follower import Follower
from .log import EventLog
from .new_models import new_model, settings_of
from .rebuilding import Learned, Say, estimator_in, rebuilt
from .writer import Writer

__all__ = ["ServeOptions", "open_engine", "warm_up"]


@dataclass
class ServeOptions:
    """What the command line says."""

    model: Path | None = None
    new: str | None = None
    log: Path | None = None
    follow: Path | None = None
    settings: list[str] = field(default_factory=list)
    classes: list[str] | None = None
    checkpoint_every: int = 100_000
    most_waiting: int = 50_000
    prune: bool = False


def open_engine(options: ServeOptions, say: Say, held: ExitStack) -> Engine:
    """Return what answers, with everything learned that the log has; it is not started yet.

    ``held`` keeps the log from other writers until it is closed.
    """
    _check(options)
    if options.follow is not None:
        log = EventLog.read(options.follow)
        with log.at_one_time():
            learned = rebuilt(log, say)
        warm_up(learned.model, learned.face)
        return Follower(learned, log)
    if options.model is not None and read_header(options.model)["kind"] == "model":
        model = load(options.model)
        say(f"{options.model} is a model file, which only predicts; a checkpoint would learn")
        return Engine(Learned(model, face_of(model, {})))
    path = options.log
    if path is None:
        raise ValueError("--log is missing: name the file that keeps the events, --log events.db")
    held.enter_context(only_writer(path))
    log = _resumed(path, options) if EventLog.is_begun(path) else _begun(path, options)
    learned = rebuilt(log, say, is_writer=True)
    warm_up(learned.model, learned.face)
    return Writer(
        learned,
        log,
        checkpoint_every=options.checkpoint_every,
        most_waiting=options.most_waiting,
        prune=options.prune,
    )


def _check(options: ServeOptions) -> None:
    given = [options.model, options.new, options.follow]
    if sum(one is not None for one in given) > 1:
        raise ValueError("give one of a model, --new and --follow")
    if options.settings and options.new is None:
        raise ValueError("--set goes with --new: a model or a log has its settings")
    if (options.classes is None) != (options.new != "classification") and not (
        options.log is not None and EventLog.is_begun(options.log)
    ):
        raise ValueError("--classes goes with --new classification: --classes ham,spam")


def _begun(path: Path, options: ServeOptions) -> EventLog:
    """Begin a log, of a model that can learn: settings that fail are refused before."""
    if options.model is not None:
        content = options.model.read_bytes()
        model = estimator_in(load_checkpoint(options.model))
        warm_up(model, face_of(model, {}))
        digest = hashlib.sha256(content).hexdigest()
        facts = {"kind": "model", "settings": {}, "began with": digest}
        return EventLog.create(path, {**facts, "onlinefw": __version__}, content)
    if options.new is None:
        raise FileNotFoundError(2, "there is no such log; begin one with --new", str(path))
    settings = settings_of(options.new, options.settings)
    facts = {"kind": options.new, "settings": settings, "onlinefw": __version__}
    model = new_model(options.new, settings)
    if options.classes is not None:
        facts["classes"] = options.classes
    warm_up(model, face_of(model, facts))
    return EventLog.create(path, facts)


def _resumed(path: Path, options: ServeOptions) -> EventLog:
    """Go on with a log, if it is that of the model that was named."""
    log = EventLog.open(path)
    facts = log.facts
    if options.model is not None:
        digest = hashlib.sha256(options.model.read_bytes()).hexdigest()
        if facts.get("began with") != digest:
            raise ValueError(
                f"{path} began with another model than {options.model}: leave the model out to go "
                "on with the log, or name another log"
            )
    elif options.new is not None:
        if facts["kind"] != options.new:
            raise ValueError(f"{path} is the log of a model of kind {facts['kind']!r}")
        settings = settings_of(options.new, options.settings)
        if options.settings and settings != facts["settings"]:
            raise ValueError(
                f"{path} began with the settings {facts['settings']}: leave --set out to go on, or "
                "try others with ofw replay"
            )
        if options.classes is not None and options.classes != facts.get("classes"):
            raise ValueError(f"{path} began with the classes {facts.get('classes')}")
    return log


def warm_up(model: Any, face: Face) -> None:
    """Let what is compiled be compiled before anybody waits for it; refuse settings that fail."""
    scratch = clone(model)
    events = _scratch_events(face)
    face.learn(scratch, events)
    face.learn(scratch, events[:1])
    if "predict" in face.verbs:
        face.predict(scratch, [one[: len(face.asked)] for one in events])
    if isinstance(face, PairsFace):
        scratch.recommend(events[0][0])
    described(scratch)


def _scratch_events(face: Face) -> list[tuple[Any, ...]]:
    if isinstance(face, PairsFace):
        told = (1.0,) * len(face.told)
        return [(face.user("0"), face.item("item", "0"), *told)] * 3
    assert isinstance(face, RowsFace)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4, face.width or 2)).tolist()
    targets = [1.0] * 4 if face.classes is None else (list(face.classes) * 4)[:4]
    return list(zip(rows, targets, [None] * 4, strict=True))
