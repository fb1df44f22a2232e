"""Choosing the radius of a set while learning."""

from __future__ import annotations

from typing import Any

from ..algorithms import OnlineFrankWolfe, Round

__all__ = ["Race"]

#: A learner has paid nearly the least if it has paid at most this many times as much. Small radii
#: do best on the first data, by up to 7% where they are much too small for all of them.
CLOSE = 1.08


class Race:
    """Learners with different radii on the same stream, until one is clearly worth keeping.

    Each is scored by what it pays for every batch before it learns from it (progressive
    validation), over the second half of the race. No observation is replayed: the winner has
    learned from all of them. Those whose loss overflows (a large radius under a steep loss) retire.

    Parameters
    ----------
    learners : list of OnlineFrankWolfe
        The candidates, by increasing radius.
    rounds : int
        How long the race lasts.
    """

    def __init__(self, learners: list[OnlineFrankWolfe], rounds: int) -> None:
        self.learners, self.rounds = learners, rounds
        self._paid = [0.0] * len(learners)
        self._t = 0

    @property
    def over(self) -> bool:
        """Whether the race has had all its rounds."""
        return self._t >= self.rounds

    @property
    def leader(self) -> OnlineFrankWolfe:
        """The learner that has paid least; the one in the middle while nobody has paid."""
        middle = len(self._paid) // 2
        order = sorted(range(len(self._paid)), key=lambda k: (self._paid[k], abs(k - middle)))
        return self.learners[order[0]]

    @property
    def winner(self) -> OnlineFrankWolfe:
        """The learner to go on with: of those that have paid nearly the least, the middlemost.

        What is best grows with the data, and a race sees only the first of them; so where it has
        not decided, the radius that is right for most data at last is the better guess.
        """
        least, middle = min(self._paid), len(self._paid) // 2
        close = [k for k, paid in enumerate(self._paid) if paid <= CLOSE * least]
        return self.learners[min(close, key=lambda k: abs(k - middle))]

    def observe(self, X: Any, y: Any, sample_weight: Any) -> Round:
        """Let all learn from a batch; return the leader's round."""
        self._t += 1
        rounds: dict[int, Round] = {}
        for k, learner in enumerate(self.learners):
            try:
                rounds[k] = learner.observe(X, y, sample_weight)
            except OverflowError as error:
                overflow = error
        if not rounds:
            raise overflow
        before = min(rounds, key=self._paid.__getitem__)
        if 2 * self._t > self.rounds:
            for k, round_ in rounds.items():
                self._paid[k] += round_.loss
        self.learners = [self.learners[k] for k in rounds]
        self._paid = [self._paid[k] for k in rounds]
        return rounds[before]
