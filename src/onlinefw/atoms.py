"""Atoms: the extreme points that a linear minimisation oracle returns, kept in structured form.

An atom knows its inner product with a gradient, how to add itself to a dense array, and its
image under stored rows of data. It becomes dense only when the user asks with ``dense()``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, ClassVar, Protocol

import numpy as np

from ._typing import Array, Direction, Shape, State
from .linalg import entries, inner

__all__ = [
    "Atom",
    "DenseAtom",
    "RankOne",
    "SignedCoordinate",
    "SparseAtom",
    "as_atom",
    "atom_from_state",
    "sparse_difference",
]


class Rows(Protocol):
    """Stored rows x_i, as far as atoms multiply them."""

    def column(self, j: int) -> Array:
        """Return X e_j."""
        ...

    def columns(self, indices: Array, values: Array) -> Array:
        """Return the sum of values_k X e_{indices_k}."""
        ...

    def bilinear(self, u: Array, v: Array) -> Array:
        """Return u' x_i v for every (matrix-shaped) row."""
        ...

    def matvec(self, vector: Array) -> Array:
        """Return X v."""
        ...


class Atom(ABC):
    """An extreme point of a set."""

    shape: Shape
    #: The names of the attributes that make the atom, in the order of the constructor.
    _parts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def dot(self, direction: Direction) -> float:
        """Return <atom, direction>."""

    @abstractmethod
    def add_to(self, out: Array, scale: float) -> None:
        """Add ``scale * atom`` to a dense array in place."""

    @abstractmethod
    def image(self, rows: Rows) -> Array:
        """Return <atom, x_i> for every stored row x_i."""

    @abstractmethod
    def squared_norm(self) -> float:
        """Return the squared Euclidean norm."""

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """A value that is the same for equal vertices; the active set finds atoms by it."""

    def state_dict(self) -> State:
        """Return plain values from which :func:`atom_from_state` makes an equal atom."""
        state: State = {"kind": type(self).__name__}
        for name in self._parts:
            state[name] = list(self.shape) if name == "shape" else getattr(self, name)
        return state

    def dense(self) -> Array:
        """Return the atom as an ndarray."""
        out = np.zeros(self.shape)
        self.add_to(out, 1.0)
        return out

    toarray = dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.dense().astype(dtype or float, copy=False)


class SignedCoordinate(Atom):
    """``value`` at one (flat, C order) position and zero elsewhere: an l1-ball vertex.

    Examples
    --------
    >>> from onlinefw.atoms import SignedCoordinate
    >>> SignedCoordinate(1, -2.0, (3,)).dense()
    array([ 0., -2.,  0.])
    """

    __slots__ = ("index", "shape", "value")
    _parts = ("index", "value", "shape")

    def __init__(self, index: int, value: float, shape: Shape) -> None:
        self.index, self.value, self.shape = int(index), float(value), tuple(shape)

    def dot(self, direction: Direction) -> float:
        """Return value * direction[index]."""
        if isinstance(direction, np.ndarray):
            return self.value * float(direction.reshape(-1)[self.index])
        return self.value * float(entries(direction, self.index).item())

    def add_to(self, out: Array, scale: float) -> None:
        """Add at one position."""
        out.reshape(-1)[self.index] += scale * self.value

    def squared_norm(self) -> float:
        """Return value^2."""
        return self.value**2

    def image(self, rows: Rows) -> Array:
        """One column of the data, scaled."""
        return self.value * rows.column(self.index)

    @property
    def key(self) -> Hashable:
        """Position and value."""
        return (self.index, self.value)

    def __repr__(self) -> str:
        return f"SignedCoordinate(index={self.index}, value={self.value:g}, shape={self.shape})"


class SparseAtom(Atom):
    """A few nonzero entries at flat positions: K-sparse vertices, groups, permutations.

    Examples
    --------
    >>> from onlinefw.atoms import SparseAtom
    >>> SparseAtom([0, 2], [1.0, -1.0], (3,)).dense()
    array([ 1.,  0., -1.])
    """

    __slots__ = ("indices", "shape", "values")
    _parts = ("indices", "values", "shape")

    def __init__(self, indices: Any, values: Any, shape: Shape) -> None:
        self.indices = np.asarray(indices, dtype=np.intp)
        self.values = np.asarray(values, dtype=float)
        self.shape = tuple(shape)

    def dot(self, direction: Direction) -> float:
        """Sum over the nonzero entries."""
        return float(self.values @ entries(direction, self.indices))

    def add_to(self, out: Array, scale: float) -> None:
        """Add at the nonzero positions."""
        out.reshape(-1)[self.indices] += scale * self.values

    def squared_norm(self) -> float:
        """Return the sum of the squared nonzeros."""
        return float(self.values @ self.values)

    def image(self, rows: Rows) -> Array:
        """A combination of a few columns of the data."""
        return rows.columns(self.indices, self.values)

    @property
    def key(self) -> Hashable:
        """Positions and values."""
        return (self.indices.tobytes(), (self.values + 0.0).tobytes())

    def __repr__(self) -> str:
        return f"SparseAtom({self.indices.size} nonzeros, shape={self.shape})"


class RankOne(Atom):
    """``scale * u v'``: a vertex of the trace-norm ball or the spectrahedron.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.atoms import RankOne
    >>> RankOne(np.array([1.0, 0.0]), 2.0, np.array([0.0, 1.0])).dense()
    array([[0., 2.],
           [0., 0.]])
    """

    __slots__ = ("scale", "shape", "u", "v")
    _parts = ("u", "scale", "v")

    def __init__(self, u: Array, scale: float, v: Array) -> None:
        self.u, self.scale, self.v = u, float(scale), v
        self.shape = (u.size, v.size)

    def dot(self, direction: Direction) -> float:
        """Return scale * u' direction v."""
        return self.scale * float(self.u @ (direction @ self.v))

    def add_to(self, out: Array, scale: float) -> None:
        """Add the outer product."""
        out += np.multiply.outer((scale * self.scale) * self.u, self.v)

    def squared_norm(self) -> float:
        """Return ``scale^2 |u|^2 |v|^2``."""
        return self.scale**2 * float(self.u @ self.u) * float(self.v @ self.v)

    def image(self, rows: Rows) -> Array:
        """A bilinear form in every matrix-shaped row."""
        return self.scale * rows.bilinear(self.u, self.v)

    @property
    def key(self) -> Hashable:
        """The factors (the sets that give rank-one atoms are not polytopes)."""
        return (self.u.tobytes(), self.v.tobytes())

    def __repr__(self) -> str:
        return f"RankOne(scale={self.scale:g}, shape={self.shape})"


class DenseAtom(Atom):
    """A vertex with no structure to use, such as a corner of a box.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.atoms import DenseAtom
    >>> DenseAtom(np.array([1.0, 2.0])).dot(np.array([3.0, 4.0]))
    11.0
    """

    __slots__ = ("_key", "array", "shape")

    def __init__(self, array: Array, key: Hashable | None = None) -> None:
        self.array, self._key = array, key
        self.shape = array.shape

    def dot(self, direction: Direction) -> float:
        """Return the full inner product."""
        return inner(self.array, direction)

    def add_to(self, out: Array, scale: float) -> None:
        """Add every entry."""
        out += scale * self.array

    def squared_norm(self) -> float:
        """Return the sum of the squared entries."""
        return inner(self.array, self.array)

    def image(self, rows: Rows) -> Array:
        """One full pass over the data."""
        return rows.matvec(self.array.reshape(-1))

    def dense(self) -> Array:
        """Return a copy of the array."""
        return self.array.copy()

    toarray = dense

    @property
    def key(self) -> Hashable:
        """The number of the vertex where the set gave one, else the bytes of the array."""
        # Adding 0 makes 0 of -0, so that equal arrays have equal bytes.
        return (self.array + 0.0).tobytes() if self._key is None else self._key

    def state_dict(self) -> State:
        """Return the array."""
        return {"kind": "DenseAtom", "array": self.array, "key": self._key}

    def __repr__(self) -> str:
        return f"DenseAtom(shape={self.shape})"


def as_atom(vertex: Any, shape: Shape) -> Atom:
    """Return the vertex itself if it is an atom, else a :class:`DenseAtom` around its array."""
    if isinstance(vertex, Atom):
        return vertex
    array = np.array(vertex, dtype=float)  # a copy: an lmo may fill the same buffer every time
    if array.shape != tuple(shape) or not np.isfinite(array).all():
        raise ValueError(f"lmo must return a finite vertex of shape {tuple(shape)}, got {array!r}")
    return DenseAtom(array)


def atom_from_state(state: State) -> Atom:
    """Make the atom that ``state_dict`` described."""
    if state["kind"] == "DenseAtom":
        return DenseAtom(state["array"], state["key"])
    for cls in (SignedCoordinate, SparseAtom, RankOne):
        if state["kind"] == cls.__name__:
            return cls(*(state[name] for name in cls._parts))
    raise ValueError(f"unknown kind of atom {state['kind']!r} in the state")


def sparse_difference(new: Atom, old: Atom) -> tuple[Array, Array] | None:
    """Return flat positions and values of ``new - old``; None unless both are sparse.

    No position comes twice.

    Examples
    --------
    >>> from onlinefw.atoms import SignedCoordinate, sparse_difference
    >>> new, old = SignedCoordinate(2, 1.0, (3,)), SignedCoordinate(0, -1.0, (3,))
    >>> sparse_difference(new, old)
    (array([2, 0]), array([1., 1.]))
    """
    if isinstance(new, SignedCoordinate) and isinstance(old, SignedCoordinate):
        if new.index != old.index:
            return np.array([new.index, old.index]), np.array([new.value, -old.value])
        return np.array([new.index]), np.array([new.value - old.value])
    if not all(isinstance(atom, (SignedCoordinate, SparseAtom)) for atom in (new, old)):
        return None
    (where, values), (old_where, old_values) = _nonzeros(new), _nonzeros(old)
    both = np.concatenate((where, old_where))
    positions, numbers = np.unique(both, return_inverse=True)
    return positions, np.bincount(numbers, np.concatenate((values, -old_values)))


def _nonzeros(atom: Any) -> tuple[Array, Array]:
    if isinstance(atom, SignedCoordinate):
        return np.array([atom.index]), np.array([atom.value])
    return atom.indices, atom.values
