"""Read, learn, write checkpoints; stop between two rounds, and go on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..files import ModelFileError, load_checkpoint, save_checkpoint
from ..files.errors import whole
from .clicks import ClicksSession
from .ratings import RatingsSession
from .rows import RowsSession
from .session import Session

__all__ = ["Checkpoint", "learn", "new_session", "resume"]


def new_session(kind: str, **settings: Any) -> Session:
    """Make a session: "matrix", "clicks", "regression" or "classification"."""
    if kind == "clicks":
        return ClicksSession(**settings)
    return RatingsSession(**settings) if kind == "matrix" else RowsSession(kind, **settings)


@dataclass
class Checkpoint:
    """Where a session is written, after how many rounds, and what else is kept with it."""

    path: Path
    every: int = 1000
    #: JSON-able values: which data, which columns.
    options: dict[str, Any] = field(default_factory=dict)
    #: Rounds and rows of what is in the file.
    _last: tuple[int, int] | None = None

    def write(self, session: Session) -> None:
        """Write the session."""
        save_checkpoint({"session": session.state_dict(), "options": self.options}, self.path)
        self.note(session)

    def note(self, session: Session) -> None:
        """Note that the session is in the file."""
        self._last = session.rounds, session.rows_read

    @property
    def is_there(self) -> bool:
        """Whether this run has written the file, or has begun with it."""
        return self._last is not None

    def has_all_of(self, session: Session) -> bool:
        """Whether nothing was read or learned since the session was in the file."""
        return self._last == (session.rounds, session.rows_read)


def resume(path: Path) -> tuple[Session, dict[str, Any]]:
    """Return the session of a checkpoint, and the options kept with it."""
    content = load_checkpoint(path)
    state = content.get("session") if isinstance(content, dict) else None
    if not isinstance(state, dict) or not isinstance(content.get("options"), dict):
        raise ModelFileError(f"{path} is not a checkpoint of ofw fit")
    with whole(path, "run"):
        settings = {k: v for k, v in state["settings"].items() if k != "kind"}
        session = new_session(state["kind"], **settings)
        session.load_state(state)
    return session, content["options"]


def learn(
    session: Session,
    chunks: Iterable[Any],
    *,
    checkpoint: Checkpoint | None = None,
    on_round: Callable[[Session], None] | None = None,
    on_phase: Callable[[str], None] = lambda doing: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Learn from chunks until they end, or until ``stop`` says so; return whether they ended.

    Chunks have their ``position``. The checkpoint is written now and then, when stopped, and at the
    end. After every round ``on_round`` is called with the session, and ``stop`` is asked. What is
    not a round is named to ``on_phase`` before it begins.
    """

    def write() -> None:
        if checkpoint is not None:
            on_phase("writing the checkpoint")
            checkpoint.write(session)
            on_phase("learning")

    def told(chunks: Iterable[Any]) -> Iterator[Any]:
        """Name reading and learning by turns until the first round, whose rows take a while."""
        for chunk in chunks:
            if session.rounds == 0:
                on_phase("learning")
            yield chunk
            if session.rounds == 0:
                on_phase("reading")
        if session.rounds == 0:
            on_phase("learning")

    def ended(rounds: Iterator[None]) -> bool:
        before = session.rounds
        for _ in rounds:
            if on_round is not None:
                on_round(session)
            # Single events are rounds, and many are played at a time.
            if (
                checkpoint is not None
                and session.rounds // checkpoint.every > before // checkpoint.every
            ):
                write()
            before = session.rounds
            if stop():
                return False
        return True

    # A pipe ends its chunks early when ``stop`` says so: the queue is not the end of the data.
    done = ended(session.play_chunks(told(chunks))) and not stop() and ended(session.play_rest())
    if done and session.rounds:
        on_phase("correcting the model")
        session.model.finish()
    write()
    return done
