"""Pointwise losses phi(z, y) of a linear prediction z.

Every loss is a small immutable object with three vectorised functions, ``value``,
``derivative`` and ``second_derivative`` (all with respect to z), and two facts about itself,
``convex`` and ``smoothness`` (a bound on the second derivative; infinite where there is none).
Finite input never gives NaN.

To add a loss, subclass :class:`Loss` and define those; a loss of your own works everywhere a
built-in one does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from ._typing import Array

__all__ = [
    "Bernoulli",
    "Correntropy",
    "Exponential",
    "Gaussian",
    "Logistic",
    "Loss",
    "Poisson",
    "Sigmoid",
    "Square",
]


class Loss(ABC):
    """What every loss provides; the base class for losses of your own.

    Attributes
    ----------
    convex : bool
        Whether phi(., y) is convex for every allowed y.
    smoothness : float
        The largest value of ``|second_derivative|``; ``inf`` where it is unbounded.
    quadratic : bool
        Whether phi(., y) is a quadratic, so that a line search has a closed form.
    nonnegative : bool
        Whether no value is below 0, so that a certificate above the mean loss says nothing.
    targets : str
        In words, the targets that ``allows`` lets pass.
    remedy : str
        What to do about others.
    """

    convex: bool = False
    smoothness: float = np.inf
    quadratic: bool = False
    nonnegative: bool = False
    targets: str = "finite targets"
    remedy: str = "remove or correct that row"

    @abstractmethod
    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return phi(z, y)."""

    @abstractmethod
    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return d phi / dz."""

    @abstractmethod
    def second_derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return d^2 phi / dz^2."""

    def model_curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return a curvature >= 0 for second-order models: phi'' itself where phi is convex."""
        bend = self.second_derivative(z, y)
        return bend if self.convex else np.maximum(np.abs(bend), 0.1 * np.abs(bend).mean())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def allows(self, y: Array) -> Array:
        """Return for each target whether this loss is defined for it: any finite one."""
        return np.ones(np.shape(y), dtype=bool)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` if a value of y is not one this loss is defined for."""
        allowed = self.allows(y)
        if not allowed.all():
            row = int(np.argmin(allowed))
            raise ValueError(
                f"{self} needs {self.targets}, got {y[row]:g} in row {row}; {self.remedy}"
            )


class SignedLabels(Loss):
    """Losses of the margin y z, with labels -1 and +1."""

    nonnegative = True
    targets = "labels in {-1, +1}"
    remedy = "map the two classes to -1 and +1 first"

    def allows(self, y: Array) -> Array:
        """Return where y is -1 or +1."""
        return np.abs(y) == 1.0


class Quadratic(Loss):
    """Losses with the derivative z - y."""

    convex = True
    smoothness = 1.0
    quadratic = True

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return z - y."""
        with np.errstate(over="ignore"):
            return np.subtract(z, y)

    def second_derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return 1."""
        return np.ones(np.broadcast_shapes(np.shape(z), np.shape(y)))


@dataclass(frozen=True)
class Square(Quadratic):
    """The square loss (z - y)^2 / 2.

    Examples
    --------
    >>> from onlinefw.losses import Square
    >>> float(Square().value(3.0, 1.0)), float(Square().derivative(3.0, 1.0))
    (2.0, 2.0)
    """

    nonnegative = True

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return (z - y)^2 / 2."""
        with np.errstate(over="ignore"):
            return 0.5 * np.square(np.subtract(z, y))


@dataclass(frozen=True)
class Logistic(SignedLabels):
    """The logistic loss log(1 + exp(-y z)), y in {-1, +1}.

    Examples
    --------
    >>> from onlinefw.losses import Logistic
    >>> Logistic().value([0.0, 1000.0, -1000.0], 1.0).round(4).tolist()
    [0.6931, 0.0, 1000.0]
    """

    convex = True
    smoothness = 0.25

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return log(1 + exp(-y z))."""
        return np.logaddexp(0.0, -np.multiply(y, z))

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return -y / (1 + exp(y z))."""
        return -np.asarray(y) * expit(-np.multiply(y, z))

    def second_derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return p (1 - p) with p = 1 / (1 + exp(-y z))."""
        margin = np.multiply(y, z)
        return expit(margin) * expit(-margin)


@dataclass(frozen=True)
class Sigmoid(SignedLabels):
    """The sigmoid loss 1 / (1 + exp(sharpness y z)), y in {-1, +1}: a smooth 0/1 loss.

    It is bounded, so a wrong label costs no more than 1 however far it lies on the wrong side:
    the robust, non-convex classification loss of the paper (with sharpness 10).

    Examples
    --------
    >>> from onlinefw.losses import Sigmoid
    >>> Sigmoid().value([0.0, 1e300, -1e300], 1.0).tolist()
    [0.5, 0.0, 1.0]
    """

    sharpness: float = 10.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.sharpness) and self.sharpness > 0):
            raise ValueError(f"Sigmoid needs a positive sharpness, got {self.sharpness}")

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """sharpness^2 / (6 sqrt 3), reached where ``p (1 - p) |1 - 2 p|`` is largest."""
        with np.errstate(over="ignore"):
            return float(np.float64(self.sharpness) ** 2 / (6.0 * np.sqrt(3.0)))

    def _margin(self, z: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return self.sharpness * np.multiply(y, z)

    def _odds(self, z: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        margin = self._margin(z, y)
        return expit(-margin), expit(margin)

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return p = 1 / (1 + exp(sharpness y z))."""
        return expit(-self._margin(z, y))

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return -sharpness y p (1 - p)."""
        p, q = self._odds(z, y)
        return -self.sharpness * np.asarray(y) * p * q

    def second_derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return sharpness^2 p (1 - p) (1 - 2 p)."""
        p, q = self._odds(z, y)
        return self.sharpness**2 * p * q * (q - p)

    def model_curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return ``|phi''|``, or a quarter of sharpness^2 p (1 - p): at z = 0, phi'' is 0."""
        p, q = self._odds(z, y)
        return self.sharpness**2 * p * q * np.maximum(np.abs(q - p), 0.25)


@dataclass(frozen=True)
class Gaussian(Quadratic):
    """The Gaussian log-likelihood G(z) - y z with G(z) = z^2 / 2.

    It has the gradient of :class:`Square` and differs from it by y^2 / 2.

    Examples
    --------
    >>> from onlinefw.losses import Gaussian
    >>> float(Gaussian().value(3.0, 1.0))
    1.5
    """

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return z (z / 2 - y)."""
        with np.errstate(over="ignore"):
            return np.asarray(z) * (0.5 * np.asarray(z) - np.asarray(y))


@dataclass(frozen=True)
class Bernoulli(Loss):
    """The Bernoulli log-likelihood log(1 + exp(z)) - y z, y in {0, 1}.

    Examples
    --------
    >>> from onlinefw.losses import Bernoulli
    >>> Bernoulli().value([0.0, 0.0], [0.0, 1.0]).round(4).tolist()
    [0.6931, 0.6931]
    """

    convex = True
    smoothness = 0.25
    nonnegative = True
    targets = "targets in {0, 1}"
    remedy = "for labels in {-1, +1} use Logistic()"

    def allows(self, y: Array) -> Array:
        """Return where y is 0 or 1."""
        return (y == 0.0) | (y == 1.0)

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return log(1 + exp(z)) - y z, without cancellation for large z."""
        # log(1 + e^z) - z = log(1 + e^-z)
        return np.logaddexp(0.0, np.where(np.equal(y, 1.0), np.negative(z), z))

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return 1 / (1 + exp(-z)) - y, without cancellation for large z."""
        return np.where(np.equal(y, 1.0), -expit(np.negative(z)), expit(z))

    def second_derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return p (1 - p) with p = 1 / (1 + exp(-z))."""
        z = np.broadcast_to(z, np.broadcast_shapes(np.shape(z), np.shape(y)))
        return expit(z) * expit(-z)


@dataclass(frozen=True)
class Poisson(Loss):
    """The Poisson log-likelihood exp(z) - y z, y = 0, 1, 2, ...

    Its curvature is unbounded, so step rules that need a smoothness constant refuse it.

    Examples
    --------
    >>> from onlinefw.losses import Poisson
    >>> float(Poisson().derivative(0.0, 3.0))
    -2.0
    """

    convex = True
    targets = "counts 0, 1, 2, ..."
    remedy = "remove or correct that row, or use Square() for real values"

    def allows(self, y: Array) -> Array:
        """Return where y is a whole number of at least 0."""
        return (y >= 0) & (y == np.floor(y))

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return exp(z) - y z (infinite once exp(z) overflows)."""
        with np.errstate(over="ignore", invalid="ignore"):
            rate = np.exp(z)
            linear = np.where(np.equal(y, 0.0), 0.0, np.multiply(y, z))
            return np.where(np.isinf(rate), np.inf, rate - linear)

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return exp(z) - y."""
        with np.errstate(over="ignore"):
            return np.exp(z) - np.asarray(y)

    def second_derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return exp(z)."""
        with np.errstate(over="ignore"):
            return np.exp(np.broadcast_to(z, np.broadcast_shapes(np.shape(z), np.shape(y))))


@dataclass(frozen=True)
class Exponential(Loss):
    """The exponential-distribution log-likelihood G(z) - y z, y > 0.

    G(z) = -log(-z) for z <= -floor; above -floor it is continued by its second-order Taylor
    polynomial, which keeps it convex, smooth and finite at the starting point z = 0.

    Examples
    --------
    >>> from onlinefw.losses import Exponential
    >>> float(Exponential().derivative(-0.5, 2.0))  # the minimiser is z = -1/y
    0.0
    """

    floor: float = 1e-3

    convex = True
    targets = "positive targets"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.floor) and self.floor > 0):
            raise ValueError(f"Exponential needs a positive floor, got {self.floor}")

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """1 / floor^2."""
        return float(np.float64(1.0 / self.floor) ** 2)

    def allows(self, y: Array) -> Array:
        """Return where y is positive."""
        return np.asarray(y) > 0

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return G(z) - y z."""
        z = np.asarray(z, dtype=float)
        below, above = self._split(z)
        with np.errstate(over="ignore", invalid="ignore"):
            log_partition = -np.log(-below) + above * (1.0 + 0.5 * above)
            return np.where(np.isinf(log_partition), np.inf, log_partition - np.multiply(y, z))

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return G'(z) - y."""
        below, above = self._split(np.asarray(z, dtype=float))
        with np.errstate(over="ignore"):
            return -1.0 / below + above / self.floor - np.asarray(y)

    def second_derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return G''(z)."""
        z = np.broadcast_to(z, np.broadcast_shapes(np.shape(z), np.shape(y)))
        return np.square(1.0 / self._split(np.asarray(z, dtype=float))[0])

    def _split(self, z: Array) -> tuple[Array, Array]:
        """Return z capped at -floor, and how far z lies above it in units of floor."""
        below = np.minimum(z, -self.floor)
        with np.errstate(over="ignore"):
            return below, np.maximum(z + self.floor, 0.0) / self.floor


@dataclass(frozen=True)
class Correntropy(Loss):
    """The robust regression loss 1 - exp(-(z - y)^2 / (2 sigma)).

    Close to (z - y)^2 / (2 sigma) for small errors and never above 1 for large ones.

    Examples
    --------
    >>> from onlinefw.losses import Correntropy
    >>> Correntropy(1.0).value([0.0, 1e300], 0.0).tolist()
    [0.0, 1.0]
    """

    nonnegative = True
    sigma: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.sigma) and self.sigma > 0):
            raise ValueError(f"Correntropy needs a positive sigma, got {self.sigma}")

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """1 / sigma, reached at z = y."""
        return 1.0 / self.sigma

    def _error(self, z: ArrayLike, y: ArrayLike) -> Array:
        # Beyond 40 standard deviations exp(-e^2/2) is 0 in floating point; clipping there keeps
        # e * exp(-e^2/2) from becoming inf * 0.
        with np.errstate(over="ignore"):
            return np.clip(np.subtract(z, y) / np.sqrt(self.sigma), -40.0, 40.0)

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return 1 - exp(-(z - y)^2 / (2 sigma))."""
        return -np.expm1(-0.5 * np.square(self._error(z, y)))

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return (z - y) / sigma exp(-(z - y)^2 / (2 sigma))."""
        e = self._error(z, y)
        return e / np.sqrt(self.sigma) * np.exp(-0.5 * np.square(e))

    def second_derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return (1 - (z - y)^2 / sigma) / sigma exp(-(z - y)^2 / (2 sigma))."""
        e2 = np.square(self._error(z, y))
        return (1.0 - e2) / self.sigma * np.exp(-0.5 * e2)

    def model_curvature(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Return exp(-(z - y)^2 / (2 sigma)) / sigma, the weights of iterated least squares."""
        return np.exp(-0.5 * np.square(self._error(z, y))) / self.sigma


#: As in ``native/losses.hpp``; a Gaussian differs from a square by a constant.
_KINDS = (Square, Bernoulli, Poisson, Exponential, Logistic, Sigmoid, Correntropy)
_PARAMETERS = {Exponential: "floor", Sigmoid: "sharpness", Correntropy: "sigma"}


def loss_code(loss: Loss) -> tuple[int, float] | None:
    """Return how compiled loops know a loss: its kind and parameter; None for one of your own.

    Examples
    --------
    >>> from onlinefw.losses import Sigmoid, loss_code
    >>> loss_code(Sigmoid(sharpness=4.0))
    (5, 4.0)
    """
    kind = Square if type(loss) is Gaussian else type(loss)
    if kind not in _KINDS:
        return None
    parameter = _PARAMETERS.get(kind)
    return _KINDS.index(kind), 0.0 if parameter is None else float(getattr(loss, parameter))
