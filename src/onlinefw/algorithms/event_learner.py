"""Learning observations one after another, which some correctives do in a compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from .._whole import WholeRound, pieces
from .learner import Learner

__all__ = ["EventLearner"]


class EventLearner(Learner):
    """An online learner whose corrective may take whole rounds, and single observations."""

    def learn(self, X: Any, y: Any, sample_weight: Any = None, *, ranks: bool = False) -> Array:
        """Learn observations one after another, each predicted before it is learned.

        For learners whose corrective takes single observations (:class:`~onlinefw.LocalRidge`). An
        interrupt leaves a whole number of them learned.

        Parameters
        ----------
        X, y, sample_weight
            The observations.
        ranks : bool
            Return ranks instead of predictions, for clicks (``ObservedEntries(unobserved=...)``):
            the place that each column had among those that had been seen and that the row had not
            had, 1 the best; nan for a column that nobody had seen, or that the row had.

        Returns
        -------
        ndarray
            What was predicted for each: theta plus offsets and short memories, as they were then.
        """
        corrective = self.corrective
        if corrective is None or not corrective.takes_rounds:
            raise ValueError(
                "learn needs a corrective that takes single observations: pass "
                "corrective=LocalRidge() to OnlineFrankWolfe, or call observe for each"
            )
        batch = self.objective.check(X, y, sample_weight)
        predicted = np.empty(batch.w.size)
        places = np.empty(batch.w.size) if ranks else None
        for part in pieces(batch.w.size):
            some = batch.part(part)
            with WholeRound(self, (self.t, self.objective.mark())):
                its = None if places is None else places[part]
                predicted[part] = self.play_events(some, its)
        return predicted if places is None else places

    def play_events(self, batch: Any, ranks: Array | None = None) -> Array:
        """Learn checked observations one after another; return what was predicted for each.

        Whoever calls it sees to it that they are learned as a whole; ``learn`` does, in pieces.
        ``ranks`` gets the place that the column of each had.
        """
        assert self.corrective is not None
        how = () if ranks is None else (ranks,)
        predicted = self.corrective.learn(self.objective, self.constraint, batch, *how)
        self.t += predicted.size
        return predicted

    def sweep(self) -> None:
        """Let a corrective that takes single observations correct everything once: a round."""
        assert self.corrective is not None
        with WholeRound(self, (self.t, self.objective.mark())), self.objective.working():
            self.corrective.sweep(self.objective, self.constraint)
            self.t += 1
