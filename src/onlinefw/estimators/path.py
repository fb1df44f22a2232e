"""Coefficients over time, in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._state import check_state, number
from .._typing import Array, State
from .sparse_state import csr_from_state, csr_state

__all__ = ["Path"]

Snapshot = tuple[int, float, int, Array, Array]


class Path:
    """Snapshots of sparse coefficients, ``size`` at most, at rounds further and further apart.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.estimators.path import Path
    >>> path = Path(size=10)
    >>> for t in range(1, 101):
    ...     if path.is_due(t):
    ...         path.append(t, 0.0, np.array([0.0, float(t)]))
    >>> path.as_dict(100, 0.0, np.array([0.0, 100.0]))["t"][-1]
    np.int64(100)
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 2) if size else 0
        # t, seconds, the number of coefficients, the indices of those not 0, and their values.
        self._kept: list[Snapshot] = []
        self._spacing = 1.0
        self._due = 0.0

    @property
    def due(self) -> float:
        """The round from which on it is time for a snapshot."""
        return self._due

    def is_due(self, t: int) -> bool:
        """Whether it is time for a snapshot."""
        return self.size > 0 and t >= self._due

    def append(self, t: int, seconds: float, coef: Array) -> None:
        """Keep the coefficients of round t."""
        self._kept.append(_snapshot(t, seconds, coef))
        if len(self._kept) > self.size:
            # Every second one goes; from now on they are further apart.
            self._kept = self._kept[::2]
            self._spacing = max(self._kept[-1][0] / self._kept[-2][0], self._spacing)
        self._due = self._spacing * self._kept[-1][0]

    def as_dict(self, t: int, seconds: float, coef: Array) -> dict[str, Any]:
        """Return t, seconds and coef (a flat row each); the current ones are the last."""
        kept = [snapshot for snapshot in self._kept if snapshot[0] < t]
        if self.size:
            kept.append(_snapshot(t, seconds, coef))
        times, clock, rows = self._columns(kept)
        return {"t": times, "seconds": clock, "coef": rows}

    @staticmethod
    def _columns(kept: list[Snapshot]) -> tuple[Array, Array, Any]:
        if not kept:
            return np.empty(0, int), np.empty(0), sparse.csr_array((0, 0))
        times, clock, sizes, indices, values = zip(*kept, strict=True)
        indptr = np.cumsum([0, *(len(one) for one in indices)])
        parts = (np.concatenate(values), np.concatenate(indices), indptr)
        rows = sparse.csr_array(parts, shape=(len(kept), max(sizes)))
        return np.array(times), np.array(clock), rows

    def state_dict(self) -> State:
        """Return the snapshots as plain arrays."""
        times, clock, rows = self._columns(self._kept)
        return {
            "size": self.size,
            "spacing": self._spacing,
            "t": times,
            "seconds": clock,
            "coef": csr_state(rows),
        }

    @classmethod
    def from_state(cls, state: State) -> Path:
        """Make the path that ``state_dict`` described."""
        check_state(state, "size", "spacing", "t", "seconds", "coef")
        path = cls(int(state["size"]))
        rows = csr_from_state(state["coef"])
        times, clock = np.asarray(state["t"]), np.asarray(state["seconds"])
        if not times.shape == clock.shape == (rows.shape[0],):
            raise ValueError("the path must have coefficients for each of its rounds")
        if any(array.dtype.kind not in "iuf" for array in (times, clock)):
            raise ValueError("the rounds of the path must be numbers")
        path._spacing = number(state["spacing"], "the spacing")
        for k, (t, seconds) in enumerate(zip(times.tolist(), clock.tolist(), strict=True)):
            part = slice(rows.indptr[k], rows.indptr[k + 1])
            path._kept.append((t, seconds, rows.shape[1], rows.indices[part], rows.data[part]))
        path._due = path._spacing * times.tolist()[-1] if path._kept else 0.0
        return path


def _snapshot(t: int, seconds: float, coef: Array) -> Snapshot:
    flat = coef.reshape(-1)
    indices = flat.nonzero()[0]
    return t, seconds, flat.size, indices, flat[indices]
