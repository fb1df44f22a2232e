"""Coefficients over time, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .._typing import Array

__all__ = ["Path"]


class Path:
    """Snapshots of sparse coefficients, ``size`` at most, at rounds further and further apart.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.estimators.path import Path
    >>> path = Path(size=10)
    >>> for t in range(1, 101):
    ...     path.append(t, 0.0, lambda: np.array([0.0, float(t)]))
    >>> path.as_dict(100, 0.0, np.array([0.0, 100.0]))["t"][-1]
    np.int64(100)
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 2) if size else 0
        self._kept: list[tuple[int, float, Any]] = []
        self._spacing = 1.0

    def append(self, t: int, seconds: float, coef: Callable[[], Array]) -> None:
        """Keep the coefficients of round t, if it is time for a snapshot."""
        if self.size == 0 or (self._kept and t < self._spacing * self._kept[-1][0]):
            return
        self._kept.append((t, seconds, sparse.csr_array(np.atleast_2d(coef()))))
        if len(self._kept) > self.size:
            # Every second one goes; from now on they are further apart.
            self._kept = self._kept[::2]
            self._spacing = max(self._kept[-1][0] / self._kept[-2][0], self._spacing)

    def as_dict(self, t: int, seconds: float, coef: Array) -> dict[str, Any]:
        """Return t, seconds and coef (a flat row each); the current ones are the last."""
        kept = [snapshot for snapshot in self._kept if snapshot[0] < t]
        if self.size:
            kept.append((t, seconds, sparse.csr_array(np.atleast_2d(coef))))
        times, clock, coefs = zip(*kept, strict=True) if kept else ((), (), ())
        flat = [c.reshape(1, -1) for c in coefs]
        rows = sparse.vstack(flat, format="csr") if flat else sparse.csr_array((0, 0))
        return {"t": np.array(times), "seconds": np.array(clock), "coef": rows}
