"""Atoms with weights: the active set of away-step methods."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from .._growing import GrowingArray
from .._typing import Array, Direction, Shape, State
from ..atoms import Atom, SignedCoordinate, atom_from_state

__all__ = ["ActiveSet"]


class ActiveSet:
    """Atoms with positive weights that sum to one: theta = sum of weight * atom.

    ``len()`` is the number of atoms; iterating gives (atom, weight) pairs.

    Examples
    --------
    >>> from onlinefw.atoms import SignedCoordinate
    >>> from onlinefw.iterates import ActiveSet
    >>> active = ActiveSet()
    >>> active.toward(SignedCoordinate(0, 1.0, (2,)), 1.0)
    >>> active.toward(SignedCoordinate(1, 1.0, (2,)), 0.25)
    >>> active.weights
    array([0.75, 0.25])
    >>> active.max_away_step(1)
    0.3333333333333333
    """

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._position: dict[Hashable, int] = {}
        self._weights = GrowingArray()
        # Coordinates of signed-coordinate atoms, so that their inner products with a gradient
        # are one fancy index instead of a Python loop.
        self._index = GrowingArray(dtype=np.intp)
        self._value = GrowingArray()
        self._all_coordinates = True

    def __len__(self) -> int:
        return len(self.atoms)

    def __contains__(self, atom: Atom) -> bool:
        return atom.key in self._position

    def __iter__(self) -> Iterator[tuple[Atom, float]]:
        return zip(self.atoms, self.weights.tolist(), strict=True)

    @property
    def weights(self) -> Array:
        """The weights, in the order of ``atoms`` (a copy)."""
        return self._weights.data.copy()

    def scores(self, gradient: Direction) -> Array:
        """Return <atom, gradient> for every atom."""
        if self._all_coordinates and isinstance(gradient, np.ndarray):
            return self._value.data * gradient.reshape(-1)[self._index.data]
        return np.array([atom.dot(gradient) for atom in self.atoms])

    def dot(self, scores: Array) -> float:
        """Return <theta, gradient> from the scores of the atoms."""
        return float(self._weights.data @ scores)

    def weight(self, k: int) -> float:
        """Return the weight of atom k."""
        return float(self._weights.data[k])

    def max_away_step(self, k: int) -> float:
        """The longest step away from atom k: w / (1 - w), infinite when w = 1."""
        w = float(self._weights.data[k])
        return np.inf if w >= 1.0 else w / (1.0 - w)

    def toward(self, atom: Atom, step: float) -> None:
        """Scale every weight by 1 - step and add ``step`` to the atom's own."""
        if step == 0.0:
            return  # an atom without weight is not active
        if step == 1.0:
            self._clear()
        self._weights.data[:] *= 1.0 - step
        k = self._position.get(atom.key)
        if k is None:
            self._append(atom, step)
        else:
            self._weights.data[k] += step

    def away(self, k: int, step: float) -> None:
        """Scale every weight by 1 + step and take ``step`` from atom k."""
        weights = self._weights.data
        weights *= 1.0 + step
        weights[k] -= step
        if weights[k] <= 0.0:  # step was the longest possible, to rounding
            self._remove(k)

    def drop(self, k: int) -> None:
        """Take the longest step away from atom k, which leaves the set."""
        self._weights.data[:] *= 1.0 + self.max_away_step(k)
        self._remove(k)

    def exchange(self, k: int, atom: Atom, step: float) -> bool:
        """Give ``step`` of atom k's weight to another atom; return whether atom k has none left.

        It leaves the set then.
        """
        if step == 0.0:
            return False
        other = self._position.get(atom.key)
        if other is None:
            self._append(atom, step)
        else:
            self._weights.data[other] += step
        weights = self._weights.data
        weights[k] -= step
        if weights[k] > 0.0:
            return False
        self._remove(k)
        return True

    def copy(self) -> ActiveSet:
        """Return an independent copy (the atoms are shared: they never change)."""
        active = ActiveSet()
        for atom, weight in self:
            active._append(atom, weight)
        return active

    def renormalise(self) -> None:
        """Remove the rounding error of many steps from the sum of the weights."""
        self._weights.data[:] /= self._weights.data.sum()

    def combination(self, shape: Shape) -> Array:
        """Return the weighted sum of the atoms as an ndarray."""
        theta = np.zeros(shape)
        if self._all_coordinates:
            np.add.at(theta.reshape(-1), self._index.data, self._weights.data * self._value.data)
            return theta
        for atom, weight in self:
            atom.add_to(theta, weight)
        return theta

    def _append(self, atom: Atom, weight: float) -> None:
        self._position[atom.key] = len(self.atoms)
        self.atoms.append(atom)
        self._weights.append([weight])
        if isinstance(atom, SignedCoordinate):
            index, value = atom.index, atom.value
        else:
            index, value, self._all_coordinates = 0, 0.0, False
        self._index.append([index])
        self._value.append([value])

    def _remove(self, k: int) -> None:
        """Put the last atom in the place of atom k."""
        del self._position[self.atoms[k].key]
        last = self.atoms.pop()
        if k < len(self.atoms):
            self.atoms[k] = last
            self._position[last.key] = k
        for column in (self._weights, self._index, self._value):
            column.swap_remove(k)

    def _clear(self) -> None:
        self.atoms = []
        self._position = {}
        self._all_coordinates = True
        for column in (self._weights, self._index, self._value):
            column.clear()

    def state_dict(self) -> State:
        """Return weights and atoms."""
        return {"weights": self.weights, "atoms": [atom.state_dict() for atom in self.atoms]}

    def check(self, theta: Any) -> None:
        """Refuse to stand for a theta that is not the combination of the atoms."""
        if not self.atoms:
            return
        point = np.asarray(theta, float)
        size = float(np.abs(point).max())
        if not np.allclose(self.combination(point.shape), point, rtol=1e-6, atol=1e-6 * size):
            raise ValueError("theta is not the combination of the atoms in the state")

    @classmethod
    def from_state(cls, state: State) -> ActiveSet:
        """Make the active set that ``state_dict`` described."""
        active = cls()
        for atom, weight in zip(state["atoms"], state["weights"], strict=True):
            active._append(atom_from_state(atom), float(weight))
        return active

    def __repr__(self) -> str:
        return f"ActiveSet({len(self)} atoms)"
