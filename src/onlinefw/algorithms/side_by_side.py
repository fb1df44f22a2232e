"""Several learners on the same data, step by step, so that they share each pass over it."""

from __future__ import annotations

from typing import Any

from ..objectives.least_squares import Moments
from ..objectives.places import check_places
from ..objectives.row_store import RowStore
from .learner import Learner
from .rounds import Round

__all__ = ["SideBySide"]


class SideBySide:
    """Learners whose objectives share one past: the classes of a classifier, the radii of a search.

    In every round each takes its first step, then each its second, and so on: the first that asks
    for a gradient after a change has it made for all of them in one pass.

    Parameters
    ----------
    past : RowStore or Moments
        What their objectives share.
    learners : list of Learner
        In the order in which their objectives joined the past.
    """

    def __init__(self, past: RowStore | Moments, learners: list[Learner]) -> None:
        self.past, self.learners = past, learners

    def use_places(self, device: str, workers: int | None) -> None:
        """Move the past to so many workers (None: into this process), on that device."""
        if workers == self.past.workers and device in (self.past.device, workers and "auto"):
            return  # workers have settled what "auto" is
        device, workers = check_places(device, workers)
        if (device, workers) != (self.past.device, self.past.workers):
            from ..distributed.moving import moved

            self.past = moved(self.past, device, workers)

    def observe(self, X: Any, targets: list[Any], sample_weight: Any = None) -> list[Round]:
        """Play a round with new rows and a target for each learner."""
        with self.learners[0].objective.working():
            return self._play(self.past.observe(X, targets, sample_weight))

    def refine(self) -> list[Round]:
        """Play a round without new data."""
        with self.learners[0].objective.working():
            return self._play([float("nan")] * len(self.learners))

    def _play(self, losses: list[float]) -> list[Round]:
        pairs = zip(self.learners, losses, strict=True)
        playing = {k: one._steps(loss, one.objective.reads) for k, (one, loss) in enumerate(pairs)}
        rounds: dict[int, Round] = {}
        while playing:
            for k in list(playing):
                try:
                    next(playing[k])
                except StopIteration as end:
                    rounds[k] = end.value
                    del playing[k]
        return [rounds[k] for k in range(len(self.learners))]
