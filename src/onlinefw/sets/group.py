"""The group-lasso ball."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import Array, Direction, Shape
from ..atoms import SparseAtom
from .base import ConvexSet, Ord, as_array, finite, positive
from .projections import project_l1_ball

__all__ = ["GroupL1Ball"]


@dataclass(frozen=True, eq=False)
class GroupL1Ball(ConvexSet):
    """``{sum over groups of ||x_group||_2 <= radius}``: models that use few groups of entries.

    Parameters
    ----------
    groups : array of int, or sequence of index arrays
        Either the label (0, 1, 2, ...) of every entry, or the (flat) positions of each group,
        which must cover every entry once.
    radius : float
        The radius.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.sets import GroupL1Ball
    >>> ball = GroupL1Ball([0, 0, 1], radius=5.0)
    >>> ball.lmo(np.array([3.0, -4.0, 1.0])).dense()
    array([-3.,  4.,  0.])
    """

    groups: Sequence[int] | Sequence[Sequence[int]] | Array
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive("radius", self.radius, "GroupL1Ball"))
        object.__setattr__(self, "groups", _labels(self.groups))

    @cached_property
    def _members(self) -> list[Array]:
        labels = np.asarray(self.groups)
        order = np.argsort(labels, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)

    @property
    def is_polytope(self) -> bool:  # type: ignore[override]
        """Only when every group is a single entry."""
        return len(self._members) == np.size(self.groups)

    def check_shape(self, shape: Shape) -> None:
        """Refuse points with another number of entries than the groups cover."""
        if int(np.prod(shape)) != np.size(self.groups):
            raise ValueError(
                f"the groups of this GroupL1Ball cover {np.size(self.groups)} entries, but the "
                f"points have shape {tuple(shape)}; give a group for every entry"
            )

    def _norms(self, flat: Array) -> Array:
        return np.sqrt(np.bincount(np.asarray(self.groups), weights=flat * flat))

    def lmo(self, direction: Direction) -> SparseAtom:
        """Return ``-radius g_group / ||g_group||`` for the group with the largest norm."""
        g = as_array(direction, self)
        flat = g.reshape(-1)
        largest = finite(float(np.abs(flat).max()), self)
        if largest == 0.0:
            return SparseAtom(self._members[0][:1], [-self.radius], g.shape)
        flat = flat / largest
        norms = self._norms(flat)
        best = int(norms.argmax())
        chosen = self._members[best]
        return SparseAtom(chosen, flat[chosen] * (-self.radius / norms[best]), g.shape)

    def _project(self, point: Array) -> Array:
        """Shrink the group norms as the l1-ball projection shrinks entries."""
        norms = self._norms(point.reshape(-1))
        shrunken = project_l1_ball(norms, self.radius)
        factor = np.divide(shrunken, norms, out=np.zeros_like(norms), where=norms > 0)
        return point * factor[np.asarray(self.groups)].reshape(point.shape)

    def _contains(self, point: Any, tol: float) -> bool:
        """Tell whether the sum of the group norms is within the radius."""
        norms = self._norms(point.reshape(-1))
        return bool(norms.sum() <= self.radius * (1 + tol))

    def _diameter(self, ord: Ord, shape: Shape | None) -> float:
        if ord == 1:
            return 2.0 * self.radius * np.sqrt(max(len(group) for group in self._members))
        if ord == "nuc":
            return 2.0 * self.radius * np.sqrt(min(self._shape(shape)))
        return 2.0 * self.radius


def _labels(groups: Any) -> Array:
    """Turn either form of ``groups`` into one label per entry."""
    if len(groups) and np.ndim(groups[0]) > 0:
        if any(len(group) == 0 for group in groups):
            raise ValueError("GroupL1Ball needs groups with at least one entry each")
        flat = np.concatenate([np.asarray(group, dtype=np.intp) for group in groups])
        if not np.array_equal(np.sort(flat), np.arange(flat.size)):
            raise ValueError("GroupL1Ball needs groups that cover every entry exactly once")
        labels = np.empty(flat.size, dtype=np.intp)
        for label, group in enumerate(groups):
            labels[np.asarray(group, dtype=np.intp)] = label
        return labels
    labels = np.asarray(groups)
    if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "iu":
        raise ValueError("GroupL1Ball needs a non-empty list of whole-number labels or of groups")
    if not np.array_equal(np.unique(labels), np.arange(labels.max() + 1)):
        raise ValueError("GroupL1Ball needs labels 0, 1, 2, ... without gaps")
    return labels.astype(np.intp)
