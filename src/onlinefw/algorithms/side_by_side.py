"""Several learners on the same data, step by step, so that they share each pass over it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from .._batches import BatchHandle
from .._state import check_state
from .._typing import Array, State
from .._whole import WholeRound
from ..objectives.leaving_rows import forget_rows
from ..objectives.row_objective import RowsBatch
from ..sets import ConvexSet
from .learner import Learner, finish
from .rounds import Round

__all__ = ["Foretold", "SideBySide"]


class Foretold(NamedTuple):
    """What was predicted for rows before they were learned, and the last of their rounds."""

    predicted: Array  # a column for each learner
    rounds: list[Round]

    @property
    def moved(self) -> bool:
        """Whether the learners have taken their steps, so that theta may have moved."""
        return self.rounds[0].kind != "hold" or not isnan(self.rounds[0].gap)


class SideBySide:
    """Learners whose objectives share one past: the classes of a classifier, the radii of a search.

    In every round each takes its first step, then each its second, and so on: before each step the
    gradients of all are made in one read of the past.

    Parameters
    ----------
    learners : list of Learner
        On objectives that ``objective.beside()`` has made from the first one's.
    """

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners = list(learners)
        self._objectives: list[Any] = [one.objective for one in learners]

    def use_place(self, device: str, workers: int | None) -> None:
        """Move the past to this many workers (None: into this process), on this device."""
        self._objectives[0].use_place(device, workers)

    def observe(self, X: Any, targets: Sequence[Any], sample_weight: Any = None) -> list[Round]:
        """Play a round with new rows and a target for each learner."""
        together = self._objectives
        batch = together[0].check_together(together, X, targets, sample_weight)
        with WholeRound(self, [one.mark() for one in together]):
            return self.play(batch)

    def learn(self, X: Any, targets: list[Any], w: Any = None, ids: Any = None) -> list[Round]:
        """Play a round with rows that an estimator has checked, or with those of a file."""
        if isinstance(X, BatchHandle):
            return self.observe(X, targets)
        w = np.ones(X.shape[0]) if w is None else w
        return self.play(RowsBatch(X, targets, w, ids=ids))

    def play(self, batch: Any) -> list[Round]:
        """Play a round with a checked batch; the caller sees to it that it is whole."""
        first = self._objectives[0]
        with first.working():
            losses = first.add_together(self._objectives, batch)
        # All have seen the same rows, so all are due, or none is.
        if self.learners[0].waits:
            pairs = zip(self.learners, losses, strict=True)
            return [one._held_round(loss) for one, loss in pairs]
        with first.working():  # anew, as there are more rows now
            return self._play(losses)

    # Rows as they happen --------------------------------------------------------------------------

    def room(self, w: Array, size: int) -> int:
        """Return how many of the next rows, ``size`` a round, come before theta moves again.

        That is a number of whole rounds; ``w`` are the weights of the rows.
        """
        corrective = self.learners[0].corrective
        rows = 1 if corrective is None else corrective.room(self._objectives[0], w)
        return min(-(-rows // size) * size, len(w))

    def foretell(
        self, X: Any, targets: list[Any], w: Array, rounds: int, ids: Any = None
    ) -> Foretold:
        """Play so many rounds, after the last of which theta may move, on rows that are checked.

        All rows are predicted by the theta before. Whoever calls it sees to it that it is whole.
        """
        objectives = self._objectives
        Z = objectives[0].products_together(objectives, X)
        predicted = Z + np.array([one.intercept for one in objectives])
        for one in self.learners:
            one.t += rounds - 1
        return Foretold(predicted, self.play(RowsBatch(X, targets, w, Z, ids)))

    def refine(self) -> list[Round]:
        """Play a round without new data."""
        with self._objectives[0].working():
            return self._play([float("nan")] * len(self.learners))

    def forget(self, ids: Sequence[Any]) -> list[Round]:
        """Remove the rows of these ids, and correct every theta on the F_t without them.

        Where there is no corrective, that is a round without new data, which is returned.
        """
        forget_rows(self._objectives, ids)
        if self.learners[0].corrective is None:
            return self.refine()
        for one in self.learners:
            _step(one)
            one.correct()
        return []

    def round_failed(self, error: BaseException, marks: list[tuple[Any, ...]]) -> None:
        """If the round has changed anything before it failed, refuse everything from now on."""
        for one, mark in zip(self._objectives, marks, strict=True):
            one.round_failed(error, mark)

    def _play(self, losses: list[float]) -> list[Round]:
        if len(self.learners) == 1:
            one = self.learners[0]
            return [finish(one._steps(losses[0], one.objective.reads))]
        pairs = zip(self.learners, losses, strict=True)
        playing = {k: one._steps(loss, one.objective.reads) for k, (one, loss) in enumerate(pairs)}
        rounds: dict[int, Round] = {}
        while playing:
            self._objectives[0].make_gradients([self._objectives[k] for k in playing])
            for k in list(playing):
                try:
                    next(playing[k])
                except StopIteration as end:
                    rounds[k] = end.value
                    del playing[k]
        return [rounds[k] for k in range(len(self.learners))]

    def keep(self, chosen: Sequence[int]) -> None:
        """Go on with some of the learners, by their positions; the past forgets the others."""
        self.learners = [self.learners[k] for k in chosen]
        self._objectives = [one.objective for one in self.learners]
        self._objectives[0].keep_together(self._objectives)

    def use_set(self, constraint: ConvexSet, share: float) -> None:
        """Go on in another set, in which theta times ``share`` lies; 1 leaves it where it is.

        For learners that keep no active set.
        """
        for one in self.learners:
            one.constraint = constraint
            if share != 1.0:
                one.objective.put(share * np.asarray(one.theta))

    def go_on(self, half_life: float | None) -> None:
        """Let the rows fade with another half-life from now on; None: nothing is forgotten."""
        self._objectives[0].go_on(half_life)

    def state_dict(self) -> State:
        """Return the past once, all else of every learner, and the gradients that are known.

        Gradients of several models are computed in one read of the past, which rounds differently
        from one read for each. Saving them keeps certificates the same to the last bit.
        """
        return {
            "past": self._objectives[0].past_state(),
            "learners": [one.own_state() for one in self.learners],
            "gradients": [getattr(one, "_gradient", None) for one in self._objectives],
        }

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described; there are as many learners, of the same kinds."""
        check_state(state, "past", "learners", "gradients")
        if len(state["learners"]) != len(self.learners):
            raise ValueError(
                f"the state is of {len(state['learners'])} learners, not of {len(self.learners)}"
            )
        for one, own in zip(self.learners, state["learners"], strict=True):
            one.load_own(own)
        self._objectives[0].load_past(state["past"])
        for objective, gradient in zip(self._objectives, state["gradients"], strict=True):
            if gradient is not None:
                if np.shape(gradient) != objective.shape:
                    raise ValueError("a gradient does not have the shape of theta")
                objective._gradient = gradient


def _step(learner: Learner) -> None:
    """Let the corrective take a step, however small the gap: a correction may find it enough."""
    objective, constraint, corrective = learner.objective, learner.constraint, learner.corrective
    assert corrective is not None
    with objective.working():
        gradient = objective.gradient()
        gap = objective.gap(gradient, constraint.lmo(gradient))
        corrective.step(objective, constraint, gradient, gap)
