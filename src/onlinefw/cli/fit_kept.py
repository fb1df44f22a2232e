"""What ``ofw fit`` has learned is kept, whatever fails after the first round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from .._devices import NoDevice
from ..distributed import ClusterLost
from ..fitting.loop import Checkpoint
from ..fitting.rescue import write_somewhere
from ..fitting.session import Session
from ..past.ray.errors import WorkerFailed
from .refuse import in_words, refuse

__all__ = ["Learned", "kept"]

#: Errors about what the user has given, for which the exit code is 2; it is 1 for others.
OF_THE_INPUT = (OSError, ValueError, NoDevice, WorkerFailed)


@dataclass
class Learned:
    """A run: its session, what a checkpoint keeps beside it, and where its output goes."""

    session: Session
    options: dict[str, Any]
    out: Path
    #: None if the user asked for none.
    checkpoint: Checkpoint | None
    #: Writes a model file, which is smaller than a checkpoint.
    save: Callable[[Path], None]

    def __post_init__(self) -> None:
        self._rounds_before = self.session.rounds

    @property
    def anything(self) -> bool:
        """Whether a round was played, which was not there before this run."""
        return self.session.rounds > self._rounds_before

    def rescue(self) -> str:
        """Write what was learned to disk, if it is not there, and say where it is."""
        try:
            if not self.session.whole:
                raise ValueError("the last round failed half-way")
            return f"what was learned is kept: {self._go_on(self._kept_checkpoint())}"
        except OSError as error:
            return self._rescue_model(error)
        except Exception as error:
            return self._say_last_checkpoint(error)

    def _kept_checkpoint(self) -> Path:
        checkpoint = self.checkpoint
        if checkpoint is not None and checkpoint.has_all_of(self.session):
            return checkpoint.path

        def write(path: Path) -> None:
            Checkpoint(path, options=self.options).write(self.session)

        if checkpoint is not None:
            try:
                checkpoint.write(self.session)
            except OSError:
                return write_somewhere(write, checkpoint.path.name, checkpoint.path.parent)
            return checkpoint.path
        return write_somewhere(write, f"{self.out.name}.ckpt", self.out.parent)

    def _rescue_model(self, error: OSError) -> str:
        """Write the model alone, where there is no room for a checkpoint."""
        try:
            path = write_somewhere(self.save, self.out.name, self.out.parent)
        except Exception:
            return self._say_last_checkpoint(error)
        return f"the model so far is in {path}; it cannot go on, as a checkpoint has no room"

    def _say_last_checkpoint(self, error: Exception) -> str:
        lost = f"what was learned could not be kept ({in_words(error)})"
        if self.checkpoint is None or not self.checkpoint.is_there:
            return f"{lost}; with --checkpoint a run goes on from the last one"
        return f"{lost}, but its last checkpoint is whole: {self._go_on(self.checkpoint.path)}"

    def _go_on(self, path: Path) -> str:
        return f"the same command with --resume {path} goes on"


@contextmanager
def kept(learned: Learned) -> Iterator[None]:
    """If this fails after a round, keep what was learned; say in one line what failed, and where.

    Also if it is interrupted: the first Ctrl-C of a run is noted and does not come to this.
    """
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except (Exception, KeyboardInterrupt) as error:
        if not learned.anything:
            raise
        why = "stopped" if isinstance(error, KeyboardInterrupt) else in_words(error)
        if isinstance(error, ClusterLost):
            why = why.split(";")[0]  # the rest is about Python
        elif not isinstance(error, (*OF_THE_INPUT, KeyboardInterrupt, MemoryError)):
            why = f"{type(error).__name__}: {why}"
        refuse("fit", f"{why}; {learned.rescue()}", 2 if isinstance(error, OF_THE_INPUT) else 1)
