"""Missing values: how they are written, and the running means that fill them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["MISSING_WORDS", "REASONS", "RunningMeans", "is_missing"]

#: What people write where a number is missing, beside nothing; in any case.
MISSING_WORDS = ("na", "n/a", "nan", "null", "none", "?")

#: Why a row is a bad one, if a value of it is missing.
REASONS = ("empty", "missing")


def is_missing(cell: Any) -> bool:
    """Whether a cell has no number because there is none.

    Examples
    --------
    >>> from onlinefw.readers.missing import is_missing
    >>> [is_missing(cell) for cell in ("", " NA ", None, float("nan"), "0", "east")]
    [True, True, True, True, False, False]
    """
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, str):
        text = cell.strip()
        return not text or text.lower() in MISSING_WORDS
    return cell is None or (isinstance(cell, float) and cell != cell)


class RunningMeans:
    """The mean of each column so far, which takes the place of values that are missing.

    Each row is filled from the rows before it, so that it does not matter where chunks begin; 0
    stands for the mean of a column in which there is no value yet.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.readers.missing import RunningMeans
    >>> means = RunningMeans()
    >>> X = np.array([[np.nan, 1.0], [2.0, np.nan], [4.0, 5.0], [np.nan, np.nan]])
    >>> means.fill(X)
    >>> X.tolist()
    [[0.0, 1.0], [2.0, 1.0], [4.0, 5.0], [3.0, 3.0]]
    """

    def __init__(self, sums: Any = None, counts: Any = None) -> None:
        self.sums = None if sums is None else np.array(sums, dtype=np.float64)
        self.counts = None if counts is None else np.array(counts, dtype=np.int64)

    def fill(self, X: Array, *, fixed: bool = False) -> None:
        """Fill the gaps (NaN) of rows in place; if ``fixed``, with the means as they are."""
        if self.sums is None or self.counts is None:
            self.sums, self.counts = np.zeros(X.shape[1]), np.zeros(X.shape[1], dtype=np.int64)
        for j, column in enumerate(X.T):
            gaps = np.isnan(column)
            if fixed:
                column[gaps] = self.sums[j] / max(self.counts[j], 1)
                continue
            # Sums from the first row on, one after another: the same however rows are cut.
            known = np.where(gaps, 0.0, column)
            sums = np.add.accumulate(np.concatenate(([self.sums[j]], known)))
            if gaps.any():
                counts = self.counts[j] + np.concatenate(([0], np.cumsum(~gaps)))
                column[gaps] = (sums / np.maximum(counts, 1))[:-1][gaps]
            self.sums[j] = sums[-1]
            self.counts[j] += np.count_nonzero(~gaps)

    def state_dict(self) -> dict[str, Any]:
        """Return the sums as JSON values."""
        if self.sums is None or self.counts is None:
            return {"sums": None, "counts": None}
        return {"sums": self.sums.tolist(), "counts": self.counts.tolist()}
