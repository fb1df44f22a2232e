"""The first rows of a stream that comes in small pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._state import check_state
from .._typing import State
from .row_queue import RowQueue
from .stream import Batch

__all__ = ["FIRST", "Opening"]

#: So many rows say which radii to try, and on which scale the columns are.
FIRST = 100


class Opening:
    """The first rows of a stream, kept until there are enough of them to decide what is "auto".

    A stream that begins with a few rows, or with one, begins with the radii and scales that these
    suggest. When ``FIRST`` rows have come, all of them decide anew, and the model learns them again
    as one batch. That depends on the number of rows alone, not on how many come at a time.
    """

    def __init__(self) -> None:
        self.rows = RowQueue()

    @property
    def room(self) -> int:
        """How many more rows are needed."""
        return max(1, FIRST - len(self.rows))

    @property
    def is_over(self) -> bool:
        """Whether there are enough rows."""
        return len(self.rows) >= FIRST

    def put(self, batch: Batch) -> None:
        """Keep the rows of a batch."""
        w = np.ones(batch.n) if batch.w is None else batch.w
        self.rows.put(batch.X, batch.y, w)

    def batch(self) -> Batch:
        """Return all rows."""
        X, y, w = self.rows.look()
        return Batch(X, y, None if (w == 1.0).all() else w)

    def state_dict(self) -> State:
        """Return the rows."""
        return self.rows.state_dict()

    @classmethod
    def from_state(cls, state: State, n_features: int) -> Opening:
        """Make what ``state_dict`` described."""
        check_state(state, "columns")
        opening, columns = cls(), state["columns"]
        if columns:
            opening.rows = RowQueue.from_state(state)
            X, y, w = opening.rows.look()
            if not _are_rows(X, y, w, n_features):
                raise ValueError("the first rows of the state do not fit the model")
        return opening


def _are_rows(X: Any, y: Any, w: Any, n_features: int) -> bool:
    numbers = X.data if sparse.issparse(X) else X
    finite = all(one.dtype.kind in "iuf" and np.isfinite(one).all() for one in (numbers, y, w))
    return X.ndim == 2 and X.shape[1] == n_features and y.ndim == w.ndim == 1 and finite
