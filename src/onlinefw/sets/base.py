"""What every constraint set provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import copysign, isfinite
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from .._typing import Array, Direction, Shape
from .._validation import check_sparse
from ..atoms import Atom, SignedCoordinate
from ..iterates import LowRank

__all__ = ["ConvexSet"]

#: 1, 2, inf or "nuc".
Ord: TypeAlias = Any


class ConvexSet(ABC):
    """A compact convex set with a cheap linear minimisation; the base class for sets of your own.

    A subclass must define :meth:`lmo` (which may return a plain ndarray); everything else has a
    default or says that it is missing.

    Attributes
    ----------
    is_polytope : bool
        Whether the set has finitely many extreme points (away steps need that).
    contains_zero : bool
        Whether 0 is in the set; if not, the first step must have length 1.
    needs_matrix : bool
        Whether the set lives among matrices only.
    has_rank_one_atoms : bool
        Whether its extreme points are :class:`~onlinefw.atoms.RankOne` (low-rank iterates need
        that).
    """

    is_polytope: bool = False
    contains_zero: bool = True
    needs_matrix: bool = False
    has_rank_one_atoms: bool = False
    _needs_square: bool = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    def lmo(self, direction: Direction) -> Atom:
        """Return an extreme point that minimises <atom, direction>."""

    @property
    def has_projection(self) -> bool:
        """Whether there is a practical exact projection."""
        cls = type(self)
        return cls._project is not ConvexSet._project or cls.project is not ConvexSet.project

    def project(self, point: ArrayLike) -> Array:
        """Return the Euclidean projection of a point onto the set."""
        array = np.asarray(point, dtype=float)
        self.check_shape(array.shape)
        if not np.isfinite(array).all():
            raise ValueError(f"{self} cannot project a point with NaN or infinity")
        return self._project(array)

    def _project(self, point: Array) -> Array:
        raise ValueError(
            f"{self} has no practical exact projection; use a projection-free method "
            "(OnlineFrankWolfe, OnlineAwayFrankWolfe, batch_frank_wolfe), or define project() if "
            "the set is your own"
        )

    def contains(self, point: Any, tol: float = 1e-9) -> bool:
        """Tell whether the point is in the set, up to ``tol`` relative to the set's radius."""
        array = point if isinstance(point, LowRank) else np.asarray(point, dtype=float)
        self.check_shape(array.shape)
        if isinstance(array, np.ndarray) and not np.isfinite(array).all():
            return False
        return self._contains(array, tol)

    def _contains(self, point: Any, tol: float) -> bool:
        raise ValueError(f"{self} has no membership test")

    def diameter(self, ord: Ord = 2, *, shape: Shape | int | None = None) -> float:
        """Return the largest distance between two points of the set.

        Parameters
        ----------
        ord : {1, 2, inf, "nuc"}
            The norm: entrywise l1, l2 (Frobenius), largest entry, or nuclear.
        shape : tuple of int or int, optional
            The shape of the points, where the answer depends on it.

        Notes
        -----
        Exact, except that "nuc" for sets of entries (boxes and balls with p > 2, groups,
        K-sparse) and ord 1 for the spectrahedron are the usual norm-comparison upper bounds.
        """
        if ord not in (1, 2, np.inf, "nuc"):
            raise ValueError(f"diameter knows ord 1, 2, inf and 'nuc', got {ord!r}")
        shape = (shape,) if isinstance(shape, int) else shape
        if ord == "nuc" and shape is not None and len(shape) != 2:
            raise ValueError(f"the nuclear norm needs a matrix shape, got {shape}")
        return float(self._diameter(ord, shape))

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        raise ValueError(f"the diameter of {self} is not known")

    def _size(self, shape: Shape | None) -> int:
        return int(np.prod(self._shape(shape)))

    def _shape(self, shape: Shape | None) -> Shape:
        if shape is None:
            raise ValueError(
                f"this diameter of {self} depends on the dimension: pass shape=, "
                "for example diameter(2, shape=(100,))"
            )
        return shape

    def check_shape(self, shape: Shape) -> None:
        """Raise ``ValueError`` if points of this shape cannot be in the set."""
        if self.needs_matrix and len(shape) != 2:
            size = f" of shape {shape}" if shape else ""
            raise ValueError(
                f"{self} is a set of matrices, but the points are vectors{size}; "
                "give the objective shape=(m1, m2), or use a set of vectors such as L1Ball"
            )
        if self._needs_square and shape[0] != shape[1]:
            raise ValueError(f"{self} needs square matrices, got shape {shape}")


def positive(name: str, value: float, owner: str) -> float:
    """Return the value as a float, or refuse it if it is not a positive finite number."""
    if not isinstance(value, Real) or not (np.isfinite(value) and value > 0):
        raise ValueError(f"{owner} needs a positive finite {name}, got {value!r}")
    return float(value)


def as_array(direction: Direction, owner: ConvexSet) -> Array:
    """Return an ndarray or sparse direction as a dense float array."""
    if isinstance(direction, LinearOperator):
        raise TypeError(
            f"{owner} needs the entries of its direction, got a LinearOperator; "
            "pass an array, or use a spectral set such as TraceNormBall"
        )
    if sparse.issparse(direction):
        check_sparse("the direction", direction)
        return direction.toarray()
    return np.asarray(direction, dtype=float)


def finite(value: float, owner: ConvexSet) -> float:
    """Return the value, or refuse a direction that is not finite."""
    if not np.isfinite(value):
        raise ValueError(
            f"{owner} was given a direction with NaN or infinity; "
            "check the gradient (overflow, or a function that returns NaN)"
        )
    return value


def largest_entry(direction: Direction, owner: ConvexSet) -> tuple[int, float]:
    """Return the flat position and the value of an entry that is largest in size."""
    if sparse.issparse(direction):
        check_sparse("the direction", direction)
        coo = direction.tocoo()
        coo.sum_duplicates()
        if coo.nnz == 0:
            return 0, 0.0
        k = int(np.abs(coo.data).argmax())
        index = np.ravel_multi_index([c[k] for c in coo.coords], coo.shape)
        return int(index), finite(float(coo.data[k]), owner)
    flat = as_array(direction, owner).reshape(-1)
    k = int(np.abs(flat).argmax())  # argmax of an array with NaN is a NaN, so it is seen
    return k, finite(float(flat[k]), owner)


def opposite_coordinate(direction: Direction, radius: float, owner: ConvexSet) -> SignedCoordinate:
    """Return the l1-ball vertex that minimises <., direction>: -radius sign(g_i) e_i."""
    if isinstance(direction, np.ndarray) and direction.dtype == float:
        flat = direction.reshape(-1)
        index = int(np.abs(flat).argmax())
        value = float(flat[index])
        if isfinite(value):
            return SignedCoordinate(index, -copysign(radius, value), direction.shape)
    index, value = largest_entry(direction, owner)
    return SignedCoordinate(index, -np.copysign(radius, value), np.shape(direction))
