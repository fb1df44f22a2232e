"""What all online learners share: their parts, the round, the certificate, their state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, Self

from .._state import check_state, describe, rebuild
from .._typing import Array, State
from .._validation import check_part, check_whole
from ..iterates import LowRank
from ..objectives import (
    GradientOracle,
    LinearObjective,
    Objective,
    ObservedEntries,
    RunningLeastSquares,
)
from ..sets import ConvexSet
from ..steps import LineSearch, ShortStep
from .rounds import Round

__all__ = ["Learner", "check_open_loop", "finish"]

_OBJECTIVES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (GradientOracle, LinearObjective, ObservedEntries, RunningLeastSquares)
}


#: A round with ``inner_steps="auto"`` ends when the gap has fallen below this share of F_t ...
ENOUGH = 0.01
#: ... or this share of the largest F_t so far (a perfect fit has F_t = 0) ...
NEGLIGIBLE = 1e-6
#: ... or after this many steps; plain ones may be more (up to a limit), as long as all of them
#: together read no more rows than this.
STEPS, MOST_STEPS, ROWS_A_ROUND = 20, 200, 20_000


class Learner(ABC):
    """An online learner: one cheap update of theta per batch."""

    certify_every: int | None = None

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
    def _update(self) -> tuple[float, float, float, str]:
        """Take one step on F_t; return gap, fw_gap, step size and kind."""

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
        before = self.objective.reads
        with self.objective.working():
            return self._play(self.objective.observe(X, y, sample_weight), before)

    def refine(self) -> Round:
        """Play one more round on F_t as it is, without new data; its ``loss`` is nan."""
        self.objective._needs_data()
        with self.objective.working():
            return self._play(float("nan"), self.objective.reads)

    def _play(self, loss: float, before: int) -> Round:
        return finish(self._steps(loss, before))

    def _steps(self, loss: float, before: int) -> Generator[None, None, Round]:
        """Take the steps of a round, and pause between them: others may take theirs meanwhile."""
        most = self._most_steps if self.inner_steps == "auto" else int(self.inner_steps)
        due = self.certify_every is not None and (self.t + 1) % self.certify_every == 0
        bound = float("nan")
        for k in range(most):
            if k > 0:
                yield
            if k == most - 1 and due and not self.objective.exact_lmo:
                bound = self.certificate()
            gap, fw_gap, step_size, kind = self._update()
            if step_size == 0.0:  # theta is held, or a line search finds nothing better
                break
        self.t += 1
        return Round(
            t=self.t,
            loss=loss,
            gap=gap,
            fw_gap=fw_gap,
            step_size=step_size,
            kind=kind,
            n_steps=self.n_steps,
            gap_upper=fw_gap if self.objective.exact_lmo else bound,
            reads=self.objective.reads - before,
        )

    @property
    def _most_steps(self) -> int:
        """How many steps a round with ``inner_steps="auto"`` may take."""
        # By weight, not number: a row of weight 2 is two rows.
        rows = max(1.0, getattr(self.objective, "total_weight", 1.0))
        return int(min(max(ROWS_A_ROUND // rows, STEPS), MOST_STEPS))

    def _is_enough(self, fw_gap: float) -> bool:
        """Whether theta is good enough for this round (``inner_steps="auto"``)."""
        if self.inner_steps != "auto":
            return False
        value = abs(self.objective.value())
        self._largest = max(self._largest, value)
        return fw_gap <= max(ENOUGH * value, NEGLIGIBLE * self._largest)

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

    def _step_length(self, n: int) -> float:
        """Return the step rule's answer for step n, refusing what is not in (0, 1]."""
        gamma = float(self.step(n))
        if not 0.0 < gamma <= 1.0:
            raise ValueError(
                f"{type(self).__name__} needs steps in (0, 1], but {self.step}({n}) = {gamma:g}"
            )
        return gamma

    def state_dict(self) -> State:
        """Return everything needed to go on: plain arrays and JSON-able values."""
        return {
            "learner": type(self).__name__,
            "t": self.t,
            "n_steps": self.n_steps,
            "largest": self._largest,
            "inner_steps": self.inner_steps,
            "certify_every": self.certify_every,
            "step": describe(self.step),
            "constraint": describe(self.constraint),
            "objective": self.objective.state_dict(),
        }

    @classmethod
    def from_state(cls, state: State, **parts: Any) -> Self:
        """Make the learner that ``state_dict`` described; it goes on bit for bit.

        Parameters
        ----------
        state : dict
            What ``state_dict()`` returned.
        **parts
            Parts of your own, which a state cannot hold: ``loss``, ``constraint``, ``step``,
            ``fn`` and ``value`` (of a ``GradientOracle``), or a whole ``objective``. A state is
            nowhere: ``device`` is "cpu" unless given, and ``workers`` (with ``log_dir``) let the
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
        objective = _rebuild_objective(state["objective"], **parts)
        learner = cls(objective, constraint, step=step, inner_steps=state["inner_steps"])
        learner.t, learner.n_steps = int(state["t"]), int(state["n_steps"])
        learner.certify_every = state["certify_every"]
        learner._largest = float(state["largest"])
        return learner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.objective}, {self.constraint}, t={self.t})"


def finish(steps: Generator[None, None, Round]) -> Round:
    """Take all the steps of a round that are left."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _rebuild_objective(state: State, objective: Objective | None = None, **parts: Any) -> Objective:
    if objective is not None:
        return objective
    check_state(state, "objective", "shape", "iterate")
    unknown = set(parts) - {"loss", "fn", "value", "device", "workers", "log_dir"}
    if unknown:
        raise ValueError(
            f"from_state does not know the part {sorted(unknown)[0]!r}; the parts are constraint, "
            "step, loss, fn, value, device, workers, log_dir and objective"
        )
    if state["objective"] not in _OBJECTIVES:
        raise ValueError(
            f"this state was saved with an objective of your own ({state['objective']}): "
            "rebuild it and pass it as from_state(state, objective=...)"
        )
    return _OBJECTIVES[state["objective"]].from_state(state, **parts)


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
