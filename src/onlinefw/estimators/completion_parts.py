"""What the parameters of a matrix completion mean: checked together, once, at the start."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import sqrt
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Array
from .._validation import check_whole
from ..algorithms import OnlineFrankWolfe, RidgeSweeps
from ..factors import OnlineFactors
from ..losses import (
    Bernoulli,
    Exponential,
    Gaussian,
    Logistic,
    Loss,
    Poisson,
    Sigmoid,
    Square,
    loss_code,
)
from ..objectives import ObservedEntries, RunningBiases
from ..sets import TraceNormBall
from ..steps import Harmonic, LineSearch
from .linear_parts import FAMILIES, REGRESSION, fixed_half_life, is_auto

if TYPE_CHECKING:
    from .matrix_completion import FrankWolfeMatrixCompletion

__all__ = ["LOSSES", "MANY", "CompletionParts", "choice"]

LOSSES: dict[str, type[Loss]] = {
    "square": Square,
    "logistic": Logistic,
    "sigmoid": Sigmoid,
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
    "poisson": Poisson,
    "exponential": Exponential,
}
#: With so many observations one atom a round is too little: the factors are re-optimised now and
#: then (benchmarks/matrix/accuracy-*.md).
MANY = 2_000_000
#: ``chains="auto"``: so many factor models, or one of many observations.
CHAINS = 4
#: Then a ridge keeps the factors small, and the radius is only a cap: so many times
#: sqrt(rows * columns) * the size of the values.
CAP = 4.0
#: ``radius="auto"``: these times sqrt(rows * columns) * the size of the values race each other.
RADII = (0.25, 0.5, 1.0, 2.0, 4.0)


def choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse a value that is not one of those allowed."""
    if not any(
        value is option or (isinstance(value, str) and value == option) for option in allowed
    ):
        options = ", ".join(repr(option) for option in allowed)
        raise ValueError(f"{name} must be one of {options}, got {value!r}")


@dataclass(frozen=True)
class CompletionParts:
    """What a matrix completion is made of: its parameters, with "auto" decided."""

    model: FrankWolfeMatrixCompletion
    loss: Loss
    many: bool  # more observations are expected than single steps can learn well from
    offsets: RunningBiases | None  # each learner gets its own copy
    weighting: str | None
    clip: bool
    factors: bool  # rows and columns are solved at every event, by OnlineFactors
    half_life: float | None = None  # None: nothing is forgotten

    @classmethod
    def of(cls, model: FrankWolfeMatrixCompletion, n: int | None) -> CompletionParts:
        """Decide what is "auto"; n is how many values will come, if known."""
        many = n is not None and n >= MANY and type(model._loss()) is Square
        return cls.decided(model, many, fixed_half_life(model))

    @classmethod
    def decided(
        cls, model: FrankWolfeMatrixCompletion, many: bool, half_life: float | None
    ) -> CompletionParts:
        """Decide the rest, once it is known whether there are many values."""
        loss = model._loss()
        regression = isinstance(loss, REGRESSION)
        choice("weighting", model.weighting, ("auto", None, "smoothed"))
        weighting = model.weighting
        factors = _are_factors(model)
        if is_auto(weighting):
            weighting = None if many or factors else "smoothed"
        if not is_auto(model.clip) and not isinstance(model.clip, (bool, np.bool_)):
            raise ValueError(f'clip must be True, False or "auto", got {model.clip!r}')
        clip = regression if is_auto(model.clip) else bool(model.clip)
        offsets = _offsets(model.offsets, regression)
        if factors:
            _check_factors(model, weighting)
            offsets = None
        return cls(model, loss, many, offsets, weighting, clip, factors, half_life)

    # Learners -------------------------------------------------------------------------------------

    def factors_learner(self, seen: tuple[int, int]) -> OnlineFactors:
        """Make a learner of factors for a matrix of this shape, which may grow."""
        model, seed = self.model, self.model.random_state
        return OnlineFactors(
            self.shape(seen),
            self.loss,
            chains=self._chains(),
            biases=model.offsets is not None,
            clip=self.clip,
            half_life=self.half_life,
            dtype=model.dtype,
            max_rows=model.max_rows,
            max_columns=model.max_columns,
            random_state=int(seed) if isinstance(seed, Integral) else None,
            device=model.device,
            workers=model.workers,
        )

    def learner(self, shape: tuple[int, int], radius: float) -> OnlineFrankWolfe:
        """Make a learner for a matrix of this shape, which may grow."""
        model, offsets = self.model, self.offsets
        if offsets is not None:
            offsets = RunningBiases(offsets.shrinkage, joint=offsets.joint)
        objective = ObservedEntries(
            shape,
            self.loss,
            dtype=model.dtype,
            growing=True,
            max_rows=model.max_rows,
            max_columns=model.max_columns,
            offsets=offsets,
            max_atoms=model.max_atoms,
            half_life=self.half_life,
            device=model.device,
            workers=model.workers,
        )
        return OnlineFrankWolfe(
            objective,
            TraceNormBall(radius),
            step=self._step_rule(),
            inner_steps=model.inner_steps,
            certify_every=model.certify_every,
            corrective=self._corrective(),
        )

    def _step_rule(self) -> Any:
        step = self.model.step
        if step is None:
            return Harmonic(2)
        if isinstance(step, str) and step in ("auto", "line-search"):
            return LineSearch()
        return step

    def _corrective(self) -> RidgeSweeps | None:
        corrective = self.model.corrective
        if isinstance(corrective, RidgeSweeps):
            return dataclasses.replace(corrective, _due=0.0, _found=None)
        choice("corrective", corrective, ("auto", None, "ridge", "factors"))
        if is_auto(corrective):
            return RidgeSweeps() if self.many else None
        return None if corrective is None else RidgeSweeps()

    def _chains(self) -> int:
        chains = self.model.chains
        if is_auto(chains):
            return 1 if self.many else CHAINS
        return check_whole("chains", chains, otherwise=' or "auto"')

    # Sizes ----------------------------------------------------------------------------------------

    def shape(self, seen: tuple[int, int]) -> tuple[int, int]:
        """Return the shape at the start: what is given, and what is seen."""
        rows, columns = given_shape(self.model)
        return max(rows, seen[0]), max(columns, seen[1])

    def radii(self, shape: tuple[int, int], y: Array) -> list[float]:
        """Return the radius, or those that race each other."""
        radius = self.model.radius
        if is_auto(radius):
            scale = sqrt(shape[0] * shape[1]) * self._size(y)
            capped = self.many and is_auto(self.model.corrective)
            return [CAP * scale] if capped else [factor * scale for factor in RADII]
        if isinstance(radius, Real):
            return [float(radius)]
        raise ValueError(f'radius must be a positive number or "auto", got {radius!r}')

    def _size(self, y: Array) -> float:
        """Return about how large the entries of theta will be."""
        # With offsets theta is about 0 on average; for families it is not in the units of y.
        if self.offsets is not None or isinstance(self.loss, FAMILIES):
            return float(np.std(y)) or 1.0
        return float(np.sqrt(np.mean(y**2))) or 1.0


def _are_factors(model: FrankWolfeMatrixCompletion) -> bool:
    """Whether rows and columns are solved: if that is asked for, or nothing speaks against it."""
    corrective = model.corrective
    if isinstance(corrective, str) and corrective == "factors":
        return True
    others = model.max_atoms, model.certify_every, model.workers
    return (
        all(map(is_auto, (corrective, model.radius, model.weighting, model.step)))
        and (model.offsets is None or is_auto(model.offsets))
        and model.inner_steps == 1
        and all(other is None for other in others)
        and isinstance(model.device, str)
        and model.device == "cpu"
        and loss_code(model._loss()) is not None
    )


def _check_factors(model: FrankWolfeMatrixCompletion, weighting: Any) -> None:
    """Refuse what belongs to Frank-Wolfe steps."""
    for name, given in (
        ("weighting", weighting is not None),
        ("radius", not is_auto(model.radius)),
    ):
        if given and not (name == "weighting" and is_auto(weighting)):
            raise ValueError(
                f"the ball of factors is that of theta's own weighted norm: leave {name}= out, or "
                "pass corrective=None for Frank-Wolfe steps"
            )


def _offsets(offsets: Any, regression: bool) -> RunningBiases | None:
    if isinstance(offsets, RunningBiases):
        return offsets
    choice("offsets", offsets, ("auto", None, "biases", "joint"))
    if is_auto(offsets):
        return RunningBiases(joint=True) if regression else None
    return None if offsets is None else RunningBiases(joint=offsets == "joint")


def given_shape(model: Any) -> tuple[int, int]:
    """Return the shape that the user has given; (0, 0) if it is to be seen."""
    given = model.shape
    if given is None:
        return 0, 0
    if np.ndim(given) != 1 or len(given) != 2:
        raise ValueError(f"shape must be (rows, columns) or None, got {given!r}")
    rows, columns = (check_whole("each side of shape", n) for n in given)
    return rows, columns
