"""What can go wrong between a driver and its workers."""

from __future__ import annotations

__all__ = ["ClusterLost", "OutOfStep", "WorkerFailed"]


class ClusterLost(RuntimeError):
    """The workers are gone and do not come back.

    ``state_dict()`` of the learner still holds the whole past (its data come from the log then),
    and so does the last checkpoint; both go on in one process or with any number of workers. The
    batch of the round that was broken off is part of that past if ``n_observations`` counts it.
    """


class WorkerFailed(RuntimeError):
    """A worker cannot do what it is asked to: something is missing there, or too little memory."""


class OutOfStep(RuntimeError):
    """A worker has missed something: it was restarted, or a message was lost.

    Parameters
    ----------
    failure : str or None
        What an earlier message has raised, if that is why.
    """

    def __init__(self, failure: str | None = None) -> None:
        super().__init__(failure)
        self.failure = failure
