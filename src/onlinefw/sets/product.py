"""Products of sets: each acts on its own consecutive block of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array, Direction, Shape
from ..atoms import Atom, DenseAtom, SignedCoordinate, SparseAtom
from .base import ConvexSet, Ord, as_array

__all__ = ["Product"]


@dataclass(frozen=True, eq=False)
class Product(ConvexSet):
    """{(x_1, x_2, ...) : x_i in set_i}, given as [(set, size), ...].

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import L1Ball, Product, Simplex
    >>> both = Product([(L1Ball(2.0), 2), (Simplex(), 2)])
    >>> both.lmo(np.array([1.0, -3.0, 5.0, 4.0])).dense()
    array([0., 2., 0., 1.])
    """

    parts: Sequence[tuple[ConvexSet, int]]

    def __post_init__(self) -> None:
        parts = tuple((part, int(size)) for part, size in self.parts)
        if not parts:
            raise ValueError("Product needs at least one (set, size) pair")
        for part, size in parts:
            if size < 1:
                raise ValueError(f"Product needs blocks of at least one entry, got {part}: {size}")
            part.check_shape((size,))
        object.__setattr__(self, "parts", parts)

    @property
    def is_polytope(self) -> bool:  # type: ignore[override]
        """Whether every part is one."""
        return all(part.is_polytope for part, _ in self.parts)

    @property
    def contains_zero(self) -> bool:  # type: ignore[override]
        """Whether every part contains 0."""
        return all(part.contains_zero for part, _ in self.parts)

    @property
    def has_projection(self) -> bool:
        """Whether every part has one."""
        return all(part.has_projection for part, _ in self.parts)

    @property
    def size(self) -> int:
        """The length of the whole vector."""
        return sum(size for _, size in self.parts)

    def check_shape(self, shape: Shape) -> None:
        """Refuse anything but vectors of the total size."""
        if tuple(shape) != (self.size,):
            raise ValueError(
                f"the blocks of this Product add up to {self.size} entries, but the "
                f"points have shape {tuple(shape)}; they must agree"
            )

    def _blocks(self, vector: Array) -> list[tuple[ConvexSet, Array]]:
        ends = np.cumsum([size for _, size in self.parts])[:-1]
        return [
            (part, block)
            for (part, _), block in zip(self.parts, np.split(vector, ends), strict=True)
        ]

    def lmo(self, direction: Direction) -> Atom:
        """Minimise block by block; the atom stays sparse if every block's atom is."""
        g = as_array(direction, self)
        self.check_shape(g.shape)
        atoms = [part.lmo(block) for part, block in self._blocks(g)]
        indices, values, start = [], [], 0
        for atom in atoms:
            if isinstance(atom, SignedCoordinate):
                indices.append(np.array([start + atom.index]))
                values.append(np.array([atom.value]))
            elif isinstance(atom, SparseAtom):
                indices.append(start + atom.indices)
                values.append(atom.values)
            else:
                return DenseAtom(np.concatenate([np.asarray(a) for a in atoms]))
            start += atom.shape[0]
        return SparseAtom(np.concatenate(indices), np.concatenate(values), g.shape)

    def _project(self, point: Array) -> Array:
        """Project block by block."""
        return np.concatenate([part.project(block) for part, block in self._blocks(point)])

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether every block is in its set."""
        return all(part.contains(block, tol) for part, block in self._blocks(point))

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        if ord == "nuc":
            raise ValueError("a Product is a set of vectors: it has no nuclear-norm diameter")
        widths = [part.diameter(ord, shape=(size,)) for part, size in self.parts]
        return float(np.linalg.norm(widths, ord))
