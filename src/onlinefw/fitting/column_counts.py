"""How often each column was seen: in how many rows it was not zero.

A coefficient of a column that was seen in seven rows rests on seven rows, however large it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._typing import Array

__all__ = ["ColumnCounts", "is_rare"]

#: A column is rare if it was seen in fewer rows than this, and in fewer than one in so many.
FEW, ONE_IN = 30, 20


def is_rare(seen: int, rows: int) -> bool:
    """Whether a column is rare that was seen in so many of the rows.

    Examples
    --------
    >>> from onlinefw.fitting.column_counts import is_rare
    >>> is_rare(7, 3000), is_rare(700, 3000), is_rare(7, 20)
    (True, False, False)
    """
    return seen < min(FEW, rows / ONE_IN)


class ColumnCounts:
    """Counts for each column the rows in which it is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.fitting.column_counts import ColumnCounts
    >>> counts = ColumnCounts()
    >>> counts.add(np.array([[0.0, 2.0], [0.0, 3.0]]))
    >>> counts.add(np.array([[1.0, 1.0]]))
    >>> counts.seen.tolist()
    [1, 3]
    """

    def __init__(self, seen: Any = ()) -> None:
        self.seen: Array = np.array(seen, dtype=np.int64)

    def add(self, X: Any) -> None:
        """Count rows, dense or sparse."""
        if not self.seen.size:
            self.seen = np.zeros(X.shape[1], dtype=np.int64)
        if sparse.issparse(X):  # there may be far more columns than values
            np.add.at(self.seen, X.indices if X.data.all() else X.indices[X.data != 0], 1)
        else:
            self.seen += np.count_nonzero(X, axis=0)

    def of_used(self, coef: Array) -> dict[str, list[int]]:
        """Return the columns with a coefficient, and in how many rows they were seen."""
        used = np.flatnonzero(np.reshape(coef, (-1, np.shape(coef)[-1])).any(axis=0))
        if self.seen.size <= used.max(initial=-1):
            return {"columns": [], "rows": []}  # of a checkpoint that did not count
        return {"columns": used.tolist(), "rows": self.seen[used].tolist()}
