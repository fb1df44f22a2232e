"""Read, learn, write checkpoints; stop between two rounds, and go on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .session import Session

__all__ = ["Checkpoint", "learn", "resume"]


@dataclass
class Checkpoint:
    """Where and how often a session is written.

    Attributes
    ----------
    path : Path
        The file; it is replaced whole.
    every : int
        Rounds between two.
    options : dict
        What else to keep, as JSON-able values: which data, which columns.
    """

    path: Path
    every: int = 1000
    options: dict[str, Any] = field(default_factory=dict)

    def write(self, session: Session, position: Any) -> None:
        """Write the session, and where its data go on."""
        from ..files import save_checkpoint

        content = {"session": session, "position": position, "options": self.options}
        save_checkpoint(content, self.path)


def resume(path: Path) -> tuple[Session, Any, dict[str, Any]]:
    """Return the session of a checkpoint, where its data go on, and the options kept with it."""
    from ..files import ModelFileError, load_checkpoint

    content = load_checkpoint(path)
    whole = isinstance(content, dict) and {"position", "options"} <= content.keys()
    if not whole or not isinstance(content.get("session"), Session):
        raise ModelFileError(f"{path} is not a checkpoint of ofw fit")
    return content["session"], content["position"], content["options"]


def learn(
    session: Session,
    chunks: Iterable[Any],
    *,
    position: Any = None,
    checkpoint: Checkpoint | None = None,
    on_round: Callable[[Session], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Learn from chunks until they end, or until ``stop`` says so; return whether they ended.

    Parameters
    ----------
    session : Session
        What learns.
    chunks : iterable
        Chunks of rows with their ``position``.
    position : JSON-able, optional
        Where the data go on before the first chunk.
    checkpoint : Checkpoint, optional
        Where to write the session: now and then, when stopped, and at the end.
    on_round : callable, optional
        Called with the session after every round.
    stop : callable
        Asked after every round.
    """

    def play_all(more: Callable[[], bool], play: Callable[[], None] = session.play) -> bool:
        """Play rounds while there are any; return whether it was stopped."""
        while more():
            play()
            if on_round is not None:
                on_round(session)
            if checkpoint is not None and session.rounds % checkpoint.every == 0:
                checkpoint.write(session, position)
            if stop():
                return True
        return False

    # What a checkpoint held back comes first.
    stopped = play_all(lambda: session.ready)
    if not stopped:
        for chunk in chunks:
            session.read(chunk)
            position = chunk.position
            stopped = play_all(lambda: session.ready)
            if stopped:
                break
    # A pipe that waits ends its chunks when it is to stop: the rows waiting are not the last.
    stopped = stopped or stop()
    if not stopped:
        stopped = play_all(lambda: session.n_waiting > 0)
    if not stopped:
        stopped = play_all(lambda: session.has_passes_left, session.refine)
    if not stopped and session.rounds:
        session.finish()
    if checkpoint is not None:
        checkpoint.write(session, position)
    return not stopped
