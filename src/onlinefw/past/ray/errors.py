"""What can go wrong between a driver and its workers."""

from __future__ import annotations

__all__ = ["ClusterLost", "OutOfStep", "WorkerFailed"]


class ClusterLost(RuntimeError):
    """The workers are gone and do not come back.

    ``state_dict()`` of the learner still has the whole past (then its data come from the log), and
    so does the last checkpoint; learning can go on from either, in one process or with any number
    of workers. The batch of the interrupted round is part of the past if ``n_observations`` counts
    it.
    """


class WorkerFailed(RuntimeError):
    """A worker cannot do what it is asked: it lacks something, such as a package or memory."""


class OutOfStep(RuntimeError):
    """A worker has missed something: it was restarted, or a message was lost."""

    def __init__(self, failure: str | None = None) -> None:
        super().__init__(failure)
        self.failure = failure  # the error that an earlier message has raised, if there was one
