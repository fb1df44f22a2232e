"""What all online learners share: their parts, the round, the certificate, their state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, Self

from .._state import check_state, describe, rebuild
from .._typing import Array, State
from .._validation import check_part, check_whole
from .._whole import WholeRound
from ..iterates import LowRank
from ..objectives import Objective
from ..sets import ConvexSet
from ..steps import LineSearch, ShortStep
from .correctives import Corrective
from .rebuild import rebuild_objective
from .rounds import Outcome, Round

__all__ = ["Learner", "check_open_loop", "finish"]

#: A round with ``inner_steps="auto"`` ends when the gap has fallen below this share of F_t ...
ENOUGH = 0.01
#: ... or this share of the largest F_t so far (a perfect fit has F_t = 0) ...
NEGLIGIBLE = 1e-6
#: ... or after STEPS steps. Without a corrective there may be up to MOST_STEPS, as long as all of
#: them together read no more than ROWS_A_ROUND rows.
STEPS, MOST_STEPS, ROWS_A_ROUND = 20, 200, 20_000
#: A learner consists of these and of its progress.
PARTS = ("objective", "constraint", "step", "inner_steps", "certify_every", "corrective")


class Learner(ABC):
    """An online learner.

    In each round a batch becomes part of F_t, and theta takes a step, several, or none.
    """

    certify_every: int | None = None
    corrective: Corrective | None = None

    def __init__(
        self,
        objective: Objective,
        constraint: ConvexSet,
        step: Any,
        inner_steps: int | str = 1,
    ) -> None:
        if not (isinstance(inner_steps, str) and inner_steps == "auto"):
            inner_steps = check_whole("inner_steps", inner_steps, otherwise=' or "auto"')
        check_part("objective", objective, Objective, "LinearObjective(Square())")
        check_part("constraint", constraint, ConvexSet, "L1Ball(1.0)")
        self.objective, self.constraint, self.step = objective, constraint, step
        self.inner_steps = inner_steps
        self.t = 0
        self.n_steps = 0
        self._largest = 0.0  # |F_t| so far
        self._check_parts()
        objective.attach(type(self).__name__, constraint)

    @abstractmethod
    def _check_parts(self) -> None:
        """Refuse parts that do not fit together."""

    @abstractmethod
    def _update(self) -> Outcome:
        """Take one step on F_t."""

    # Rounds ---------------------------------------------------------------------------------------

    def observe(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Round:
        """Play theta_t, receive the batch's loss f_t, and update.

        Parameters
        ----------
        X, y : array-like
            The new rows and their targets (nothing for a ``GradientOracle``). They are checked
            before anything changes.
        sample_weight : array-like, optional
            How much each row counts in the mean; 1 by default.

        Returns
        -------
        Round
            What happened.
        """
        batch = self.objective.check(X, y, sample_weight)
        with WholeRound(self, (self.t, self.objective.mark())):
            return self.play(batch)

    def play(self, batch: Any) -> Round:
        """Play a round with a batch that ``objective.check`` has returned.

        Whoever calls it sees to it that the round is whole; ``observe`` does.
        """
        objective = self.objective
        before = objective.reads
        with objective.working():
            # Line 3 of both boxes: play theta_t and receive f_t, which becomes part of F_t
            loss = objective.add(batch)
            if self.waits:
                return self._held_round(loss)
            return finish(self._steps(loss, before))

    @property
    def waits(self) -> bool:
        """Whether theta stays as it is, with new data, until its corrective is due."""
        return self.corrective is not None and self.corrective.waits(self.objective)

    def _held_round(self, loss: float) -> Round:
        """Return a round in which theta stays as it is."""
        self.t += 1
        nan = float("nan")
        return Round(self.t, loss, nan, nan, 0.0, "hold", self.n_steps)

    def refine(self) -> Round:
        """Play one more round on F_t as it is, without new data; its ``loss`` is nan."""
        objective = self.objective
        objective._needs_data()
        mark = self.t, objective.mark()
        with WholeRound(self, mark), objective.working():
            return finish(self._steps(float("nan"), objective.reads))

    def correct(self) -> None:
        """Let the corrective re-optimise theta now, without a round."""
        if self.corrective is None:
            raise ValueError(
                "there is nothing to correct with: pass corrective=RidgeSweeps(...) "
                "to OnlineFrankWolfe"
            )
        mark = self.t, self.objective.mark()
        with WholeRound(self, mark), self.objective.working():
            self.corrective.correct(self.objective, self.constraint)

    def finish(self) -> None:
        """Let the corrective, if there is one, do what it has left until the end of a stream."""
        if self.corrective is not None:
            mark = self.t, self.objective.mark()
            with WholeRound(self, mark), self.objective.working():
                self.corrective.finish(self.objective, self.constraint)

    def round_failed(self, error: BaseException, mark: tuple[Any, ...]) -> None:
        """If the round has changed anything before it failed, refuse everything from now on."""
        t, of_objective = mark
        if self.t != t:
            self.objective.break_off(error)
        self.objective.round_failed(error, of_objective)

    def _steps(self, loss: float, before: int) -> Generator[None, None, Round]:
        """Take the steps of a round and pause between them, so that other learners take theirs."""
        objective, corrective, bound = self.objective, self.corrective, float("nan")
        most = self._most_steps() if self.inner_steps == "auto" else int(self.inner_steps)
        every = None if objective.exact_lmo else self.certify_every
        for k in range(most):
            if k > 0:
                yield
            if every is not None and k == most - 1 and (self.t + 1) % every == 0:
                bound = self.certificate()
            gap, fw_gap, step_size, kind = self._update()
            if step_size == 0.0:  # theta is good enough, or a line search finds nothing better
                break
        self.t += 1
        if corrective is not None:
            corrective.after_round(objective, self.constraint)
        return Round(
            t=self.t,
            loss=loss,
            gap=gap,
            fw_gap=fw_gap,
            step_size=step_size,
            kind=kind,
            n_steps=self.n_steps,
            gap_upper=fw_gap if objective.exact_lmo else bound,
            reads=objective.reads - before,
        )

    def _most_steps(self) -> int:
        """Return how many steps a round with ``inner_steps="auto"`` may take."""
        if self.corrective is not None and self.corrective.takes_steps:
            return self.corrective.most_steps(self.objective, STEPS)
        # By weight, not number: a row of weight 2 is two rows.
        rows = max(1.0, getattr(self.objective, "total_weight", 1.0) / self.objective.unit)
        return int(min(max(ROWS_A_ROUND // rows, STEPS), MOST_STEPS))

    def _is_enough(self, fw_gap: float) -> bool:
        """Tell whether theta is good enough for this round, with ``inner_steps="auto"``."""
        value = abs(self.objective.value())
        self._largest = max(self._largest, value)
        return fw_gap <= max(ENOUGH * value, NEGLIGIBLE * self._largest)

    def _gamma(self, n: int) -> float:
        """Return the step rule's gamma_n, refusing what is not in (0, 1].

        Steps are counted as far as the observations count that they were taken for.
        """
        n = self.objective.steps_in_effect(n)
        gamma = float(self.step(n))
        if not 0.0 < gamma <= 1.0:
            raise ValueError(
                f"{type(self).__name__} needs steps in (0, 1], but {self.step}({n}) = {gamma:g}"
            )
        return gamma

    # What is known about theta --------------------------------------------------------------------

    @property
    def theta(self) -> Array | LowRank | None:
        """The current iterate; zeros before the first round, None while its shape is unknown."""
        return self.objective.theta

    def certificate(self) -> float:
        """Return g^FW at the *current* theta on F_t: one more gradient and LMO, nothing changes.

        For a convex loss, F_t(theta) - min F_t over the set is at most this number. Where the LMO
        is inexact (``ObservedEntries``) it is an upper bound on g^FW that holds with probability
        at least 1 - 1e-6.
        """
        return self.objective.certificate(self.constraint)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything needed to go on: plain arrays and JSON-able values."""
        return self._state(self.objective.state_dict())

    def own_state(self) -> State:
        """Return all but the past, which learners side by side share."""
        objective: Any = self.objective
        return self._state(objective.own_state())

    def _state(self, objective: State) -> State:
        return {
            "learner": type(self).__name__,
            **self._progress(),
            "inner_steps": self.inner_steps,
            "certify_every": self.certify_every,
            "step": describe(self.step),
            "constraint": describe(self.constraint),
            "objective": objective,
        }

    def load_own(self, state: State) -> None:
        """Take over what ``own_state`` described, of a learner with the same parts."""
        check_state(state, "learner", "t", "n_steps", "largest", "objective")
        if state["learner"] != type(self).__name__:
            raise ValueError(
                f"this is the state of a {state['learner']}, not of a {type(self).__name__}"
            )
        objective: Any = self.objective
        objective.load_own(state["objective"])
        self._load_progress(state)

    @classmethod
    def from_state(cls, state: State, **parts: Any) -> Self:
        """Make the learner that ``state_dict`` described; it goes on bit for bit.

        Parameters
        ----------
        state : dict
            What ``state_dict()`` returned.
        **parts
            Parts of your own, which a state cannot hold: ``loss``, ``constraint``, ``step``,
            ``fn`` and ``value`` (of a ``GradientOracle``), ``corrective`` (of an
            ``OnlineFrankWolfe``), or a whole ``objective``. A state does not say where the data
            were: ``device`` is "cpu" unless given, and ``workers`` (with ``log_dir``) let the
            data go to a Ray cluster.
        """
        check_state(state, "learner", "t", "n_steps", "inner_steps", "certify_every")
        check_state(state, "largest", "step", "constraint", "objective")
        if state["learner"] != cls.__name__:
            raise ValueError(
                f"this is the state of a {state['learner']}, not of a {cls.__name__}: "
                f"call {state['learner']}.from_state"
            )
        constraint = rebuild(state["constraint"], "constraint", parts.pop("constraint", None))
        step = rebuild(state["step"], "step", parts.pop("step", None))
        objective = rebuild_objective(state["objective"], parts.pop("objective", None), **parts)
        learner = cls(objective, constraint, step=step, inner_steps=state["inner_steps"])
        every = state["certify_every"]
        learner.certify_every = None if every is None else check_whole("certify_every", every)
        learner._load_progress(state)
        return learner

    def _progress(self) -> State:
        """Return what changes from round to round, apart from the objective."""
        return {"t": self.t, "n_steps": self.n_steps, "largest": self._largest}

    def _load_progress(self, state: State) -> None:
        t, n_steps = int(state["t"]), int(state["n_steps"])
        if t < 0 or n_steps < 0:
            raise ValueError(
                f"the counters of the state are impossible: {t} rounds, {n_steps} steps"
            )
        self.t, self.n_steps = t, n_steps
        self._largest = float(state["largest"])

    def __getstate__(self) -> State:
        """Return the parts themselves (they may be the user's own) and the progress as a state."""
        return {"parts": {p: getattr(self, p) for p in PARTS}, "progress": self._progress()}

    def __setstate__(self, state: State) -> None:
        vars(self).update(state["parts"])
        self._load_progress(state["progress"])
        if self.objective._owner is None:
            self.objective.attach(type(self).__name__, self.constraint)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.objective}, {self.constraint}, t={self.t})"


def finish(steps: Generator[None, None, Round]) -> Round:
    """Take all the steps of a round that are left."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def check_open_loop(step: Any, owner: str) -> None:
    """Refuse step rules that are not functions of the step counter."""
    if isinstance(step, type):
        raise ValueError(f"step is the class {step.__name__}: pass an object, {step.__name__}(...)")
    if isinstance(step, (LineSearch, ShortStep)):
        raise ValueError(
            f"{owner} takes a step rule of the step counter such as Harmonic(2); {step} looks at "
            "the objective and is for batch_frank_wolfe and batch_away_frank_wolfe"
        )
    if not callable(step):
        raise ValueError(
            f"{owner} takes a step rule of the step counter such as Harmonic(2), got {step!r}"
        )
    first = float(step(1))
    if not 0.0 < first <= 1.0:
        raise ValueError(f"{owner} needs steps in (0, 1], but {step}(1) = {first:g}")
