"""What the parameters of a linear estimator mean: checked together, once, at the start."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from math import ceil
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from .._typing import Shape
from .._validation import check_part, check_whole
from ..algorithms import Learner, NewtonSteps, OnlineAwayFrankWolfe, OnlineFrankWolfe
from ..algorithms.side_by_side import SideBySide
from ..algorithms.summary_fw import SummariesSideBySide, SummaryFrankWolfe
from ..losses import (
    Bernoulli,
    Correntropy,
    Exponential,
    Gaussian,
    Loss,
    Poisson,
    Sigmoid,
    Square,
)
from ..objectives import LinearObjective, RunningLeastSquares, SummaryObjective
from ..objectives.half_life import KEPT, check_half_life
from ..objectives.kept_rows import PASTS, check_past
from ..objectives.row_objective import RowObjective
from ..sets import ConvexSet, KSparse, L1Ball, L2Ball, LinfBall, Simplex, TraceNormBall
from ..steps import Harmonic, LineSearch
from .scaling import Scaling
from .stream import Batch
from .summary_parts import check_summary

if TYPE_CHECKING:
    from .linear_model import LinearModel

__all__ = [
    "FAMILIES",
    "REGRESSION",
    "LinearParts",
    "fixed_half_life",
    "has_radius",
    "is_auto",
    "loss_of",
    "suggested_radii",
    "together",
    "warn_of_radius",
    "with_radius",
]

#: Losses G(z) - y z for which G'(z), not z, is the expected y.
FAMILIES = (Bernoulli, Poisson, Exponential)
#: Losses for which z is in the units of y.
REGRESSION = (Square, Gaussian, Correntropy)

CONSTRAINTS: dict[str, type[Any]] = {
    "l1": L1Ball,
    "l2": L2Ball,
    "linf": LinfBall,
    "ksparse": KSparse,
    "simplex": Simplex,
    "trace": TraceNormBall,
}
#: ``constraint="ksparse"``: an l1 ball in which no coefficient is larger than if one in so many
#: features had the same.
FEATURES_PER_LARGEST = 64
#: Sets that treat all coordinates alike, so that columns should be on one scale.
OF_COORDINATES = ("l1", "l2", "linf", "ksparse")
#: With at most this many features the square loss needs X'X and X'y only (8 n^2 bytes).
MOST_SUMS = 1024
#: ``past="auto"``: so many rows are kept of a longer stream, drawn at random.
MAX_PAST = 200_000
#: Fewer rows than this say too little about the scale of their columns.
LEAST_SCALED = 10
#: ``corrective="auto"``: theta is corrected when the data have grown by this factor, sooner where
#: sums suffice (a correction then costs the same however many rows there are), and so many
#: coordinates may enter at a time.
GROWTH, GROWTH_OF_SUMS, CANDIDATES = 1.3, 1.1, 300
#: A radius is suspicious if it is so many times smaller than one coordinate alone needs, or the
#: third power of that larger.
FAR_OFF = 300.0
#: ``radius="auto"`` tries the suggested radius times these powers of 2.
POWERS = range(-1, 11)


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to the estimator."""
    return isinstance(value, str) and value == "auto"


def fixed_half_life(model: Any) -> float | None:
    """Return the half-life of an estimator as a number; None if nothing is forgotten, or "auto"."""
    return None if is_auto(model.half_life) else check_half_life(model.half_life, ' or "auto"')


def loss_of(loss: Any, losses: Mapping[str, Any]) -> Loss:
    """Return the loss that a parameter names, or is."""
    if isinstance(loss, str) and loss in losses:
        return losses[loss]()
    names = ", ".join(losses)
    if isinstance(loss, str):
        raise ValueError(f"loss must be one of {names} or a Loss, got {loss!r}")
    check_part("loss", loss, Loss, f"{next(iter(losses.values()))()}, or one of {names}")
    return loss


@dataclass(frozen=True)
class LinearParts:
    """What the learners of a linear estimator are made of: its parameters, with "auto" decided."""

    model: LinearModel
    n_features: int
    loss: Loss
    past: str
    max_past: int | None
    half_life: float | None = None  # None: nothing is forgotten

    @classmethod
    def of(cls, model: LinearModel, n_features: int, n: int | None) -> LinearParts:
        """Decide what is "auto"; n is how many rows will come, if that is known."""
        past, max_past = model.past, model.max_past
        loss, half_life = model._loss(), fixed_half_life(model)
        if is_auto(past):
            most = MAX_PAST if max_past is None else check_whole("max_past", max_past)
            few = n is not None and n <= most
            few = few or (half_life is not None and KEPT * half_life <= most)
            all_of_them = few or _sums_suffice(model, loss, n_features)
            past, max_past = ("all", None) if all_of_them else ("reservoir", most)
        parts = cls(model, n_features, loss, past, max_past, half_life)
        if past == "summary":
            check_summary(model, loss)
        elif past not in PASTS:
            names = ", ".join((*PASTS, "summary"))
            raise ValueError(f"past must be one of {names} and auto, got {past!r}")
        else:
            check_past(past, max_past)  # objectives that keep sums do not check it
        model._seed(1)  # objectives that keep no sample do not check it
        parts.shape(parts.constraint(1.0))
        return parts

    # Learners -------------------------------------------------------------------------------------

    def team(
        self, radii: list[float], n_models: int, device: str, workers: int | None
    ) -> SideBySide:
        """Make the learners of each radius, on one past."""
        return together([(self, radius) for radius in radii], n_models, device, workers)

    def objective(self, device: str, workers: int | None) -> RowObjective:
        """Make what is kept of the past: sums where they suffice, else rows; or a summary."""
        of: dict[str, Any] = {"fit_intercept": bool(self.model.fit_intercept)}
        of["half_life"] = self.half_life
        if self.past == "summary":
            return SummaryObjective(self.loss, self.n_features, **of)
        of |= {"device": device, "workers": workers}
        if self.past == "all" and _sums_suffice(self.model, self.loss, self.n_features):
            return RunningLeastSquares(self.n_features, **of)
        shape = self.shape(self.constraint(1.0))
        sizes: dict[str, Any] = {"shape": shape} if len(shape) == 2 else {"n_features": shape[0]}
        kept: dict[str, Any] = {"past": self.past, "max_past": self.max_past}
        seed = self.model._seed(1)
        return LinearObjective(self.loss, random_state=seed, **sizes, **kept, **of)

    def learner(self, radius: float, objective: RowObjective) -> Learner:
        """Make a learner on an objective."""
        model, constraint = self.model, self.constraint(radius)
        if isinstance(objective, SummaryObjective):
            return SummaryFrankWolfe(objective, constraint)
        step, corrective = self._step_rule(constraint), self._corrective(constraint)
        if model.away_steps:
            return OnlineAwayFrankWolfe(objective, constraint, step, model.inner_steps)
        return OnlineFrankWolfe(
            objective, constraint, step, model.inner_steps, corrective=corrective
        )

    # The set --------------------------------------------------------------------------------------

    def constraint(self, radius: float) -> ConvexSet:
        """Return the set; ``radius`` is that of a set given by name."""
        constraint = self.model.constraint
        if isinstance(constraint, str):
            if constraint not in CONSTRAINTS:
                raise ValueError(
                    f"constraint must be one of {', '.join(CONSTRAINTS)} or a set of "
                    f"onlinefw.sets, got {constraint!r}"
                )
            if constraint == "ksparse":
                k = ceil(self.n_features / FEATURES_PER_LARGEST)
                return KSparse(k, radius / k)
            return CONSTRAINTS[constraint](radius)
        check_part("constraint", constraint, ConvexSet, 'L1Ball(1.0), or a name such as "l1"')
        return constraint

    @property
    def radius(self) -> float:
        """The radius of a model that has one: its own, or that of its set."""
        constraint: Any = self.model.constraint
        return float(self.model.radius if isinstance(constraint, str) else constraint.radius)

    def radii(self, first: Batch) -> list[float]:
        """Return the radius, or those that race each other; the first rows suggest which."""
        radius, constraint = self.model.radius, self.model.constraint
        if not isinstance(constraint, str):
            if not is_auto(radius):
                raise ValueError(
                    f"radius={radius!r} is for a set given by name, but constraint is "
                    f"{constraint!r}, whose size is its own: leave radius out, or pass a name "
                    'such as "l1"'
                )
            return [float(getattr(constraint, "radius", "nan"))]
        if is_auto(radius):
            return suggested_radii(self.loss, self.model._n_models(), first)
        if not isinstance(radius, Real):
            raise ValueError(f'radius must be a positive number or "auto", got {radius!r}')
        return [float(radius)]

    def shape(self, constraint: ConvexSet) -> Shape:
        """Return the shape of theta."""
        n_features, coef_shape = self.n_features, self.model.coef_shape
        if coef_shape is None:
            if constraint.needs_matrix:
                raise ValueError(
                    f"{constraint} needs matrix-shaped features: pass coef_shape=(m1, m2) with "
                    f"m1 * m2 = {n_features} (the number of columns of X)"
                )
            return (n_features,)
        if np.shape(coef_shape) != (2,):
            raise ValueError(f"coef_shape must be (m1, m2) or None, got {coef_shape!r}")
        m1, m2 = (check_whole("each side of coef_shape", side) for side in coef_shape)
        if m1 * m2 != n_features:
            raise ValueError(
                f"X has {n_features} features, but coef_shape={coef_shape!r} is for {m1 * m2}"
            )
        return (m1, m2)

    # Steps ----------------------------------------------------------------------------------------

    def _step_rule(self, constraint: ConvexSet) -> Any:
        model = self.model
        if isinstance(model.step, str) and model.step == "line-search":
            return LineSearch()
        if model.step is not None:
            return model.step
        searched = is_auto(model.inner_steps) and (constraint.contains_zero or model.away_steps)
        return LineSearch() if searched else Harmonic(2)

    def _corrective(self, constraint: ConvexSet) -> NewtonSteps | None:
        model = self.model
        if is_auto(model.corrective):
            wanted = is_auto(model.inner_steps) and isinstance(constraint, (L1Ball, KSparse))
            if not wanted or model.away_steps:
                return None
            sums = self.past == "all" and _sums_suffice(model, self.loss, self.n_features)
            return NewtonSteps(CANDIDATES, GROWTH_OF_SUMS if sums else GROWTH)
        if model.corrective is not None and not isinstance(model.corrective, NewtonSteps):
            raise ValueError(
                f'corrective must be "auto", None or NewtonSteps(), got {model.corrective!r}'
            )
        if model.corrective is not None and model.away_steps:
            raise ValueError(
                f'{model.corrective} corrects O-FW: use away_steps=False or corrective="auto"'
            )
        return model.corrective

    # The scale of columns -------------------------------------------------------------------------

    def scaling(self, first: Batch) -> Scaling | None:
        """Return how columns are put on one scale, by their first rows; None if they are not."""
        scale = self.model.scale
        if not is_auto(scale) and not isinstance(scale, (bool, np.bool_)):
            raise ValueError(f'scale must be True, False or "auto", got {scale!r}')
        if is_auto(scale):
            ours = is_auto(self.model.radius) and isinstance(self.model.constraint, str)
            like = first.y is not None and getattr(first.X.dtype, "kind", "") == "f"
            scale = ours and like and self.model.constraint in OF_COORDINATES
        if not scale or first.y is None or sparse.issparse(first.X):
            return None
        if first.weight < LEAST_SCALED:  # a row of weight 2 is two rows
            return None
        return Scaling.of(first.X, first.w)


def together(
    models: list[tuple[LinearParts, float]], n_models: int, device: str, workers: int | None
) -> SideBySide:
    """Make the learners of models with their radii, n_models of each, all on one past."""
    first: Any = models[0][0].objective(device, workers)
    learners: list[Learner] = []
    for parts, radius in models:
        for _ in range(n_models):
            learners.append(parts.learner(radius, first.beside() if learners else first))
    return (SummariesSideBySide if isinstance(first, SummaryObjective) else SideBySide)(learners)


def _sums_suffice(model: LinearModel, loss: Loss, n_features: int) -> bool:
    plain = type(loss) is Square and model.coef_shape is None
    return plain and n_features <= MOST_SUMS and model.past in ("all", "auto")


def suggested_radii(loss: Loss, n_models: int, first: Batch) -> list[float]:
    """Return radii around that at which one coordinate alone gives predictions of the right size.

    That is the size of the targets (1, or 1 / sharpness, where predictions have other units) over
    the largest root mean square of a feature. It is rounded to three digits, so that a repeated row
    and a row of twice the weight give the same to the last bit.
    """
    X, y, w = first[:3]
    assert y is not None  # files are opened if radii are to be suggested
    squares = X.astype(float).power(2) if sparse.issparse(X) else np.square(X, dtype=float)
    weights = np.full(len(y), 1.0 / len(y)) if w is None else w / w.sum()
    largest = float(np.sqrt(np.max(np.asarray(squares.T @ weights))))
    spread = 1.0
    if isinstance(loss, REGRESSION) and n_models == 1:
        spread = float(np.sqrt(weights @ (y - weights @ y) ** 2)) or 1.0
    elif isinstance(loss, Sigmoid):
        spread = 1.0 / loss.sharpness
    middle = float(f"{spread / largest:.3g}") if largest > 0.0 else 1.0
    return [middle * 2.0**power for power in POWERS]


def warn_of_radius(parts: LinearParts, radius: float, first: Batch) -> None:
    """Warn of a radius, given by the user, that cannot be right for rows like these."""
    y = first.y
    if parts.model.constraint not in ("l1", "ksparse", "l2") or y is None or len(y) < LEAST_SCALED:
        return
    middle = suggested_radii(parts.loss, parts.model._n_models(), first)[-POWERS.start]
    if radius * FAR_OFF < middle:
        what = "far too small for these rows: predictions cannot vary as much as the targets"
    elif radius > FAR_OFF**3 * middle:
        what = "far too large for these rows: it constrains nothing, and gaps say nothing"
    else:
        return
    warnings.warn(
        f'radius={radius:g} is {what}; leave it out (radius="auto"), or try {2.0 * middle:.2g}',
        UserWarning,
        stacklevel=4,
    )


def has_radius(model: LinearModel) -> bool:
    """Whether the set of a model has a radius that can be replaced by another."""
    constraint = model.constraint
    return isinstance(constraint, str) or (
        is_dataclass(constraint) and hasattr(constraint, "radius")
    )


def with_radius(model: LinearModel, radius: float) -> LinearModel:
    """Return an unfitted copy whose set, given by name or as an object, has another radius."""
    constraint: Any = model.constraint
    if isinstance(constraint, str):
        return clone(model).set_params(radius=radius)
    return clone(model).set_params(constraint=replace(constraint, radius=radius))
