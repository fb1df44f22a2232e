"""The first rows of a stream that comes in small pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._state import check_state
from .._typing import Array, State
from ..objectives.row_ids import RowIds
from .row_queue import RowQueue
from .sparse_state import csr_from_state, csr_state
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

    @property
    def ids(self) -> set[Any]:
        """Whose rows there are."""
        return set(self.rows.look()[3].tolist()) - {None} if len(self.rows) else set()

    def put(self, batch: Batch) -> None:
        """Keep the rows of a batch."""
        w = np.ones(batch.n) if batch.w is None else batch.w
        self.rows.put(batch.X, batch.y, w, _nobody(batch.n) if batch.ids is None else batch.ids)

    def batch(self) -> Batch:
        """Return all rows."""
        X, y, w, ids = self.rows.look()
        named = ids if _named(ids) else None
        return Batch(X, y, None if (w == 1.0).all() else w, ids=named)

    def forget(self, ids: list[Any]) -> None:
        """Be without the rows of these ids."""
        if len(self.rows):
            X, y, w, own = self.rows.look()
            left = np.array([one not in ids for one in own.tolist()])
            self.rows = RowQueue()
            self.rows.put(X[left], y[left], w[left], own[left])

    def state_dict(self) -> State:
        """Return the rows as plain arrays."""
        if not len(self.rows):
            return {"X": None}
        X, y, w, ids = self.rows.look()
        plain = {
            "X": csr_state(X) if sparse.issparse(X) else X.copy(),
            "y": y.copy(),
            "w": w.copy(),
        }
        return {**plain, "ids": RowIds.of(ids).state_dict()} if _named(ids) else plain

    @classmethod
    def from_state(cls, state: State, n_features: int) -> Opening:
        """Make what ``state_dict`` described."""
        check_state(state, "X")
        opening, X = cls(), state["X"]
        if X is None:
            return opening
        check_state(state, "y", "w")
        X = csr_from_state(X) if isinstance(X, dict) else np.asarray(X)
        y, w = np.asarray(state["y"]), np.asarray(state["w"])
        numbers: Any = X.data if sparse.issparse(X) else X
        finite = all(one.dtype.kind in "iuf" and np.isfinite(one).all() for one in (numbers, y, w))
        fit = X.ndim == 2 and X.shape[1] == n_features and y.shape == w.shape == X.shape[:1]
        if not (finite and fit and (w > 0.0).all()):
            raise ValueError("the first rows of the state do not fit the model")
        ids = RowIds.from_state(state["ids"], len(y)).all if "ids" in state else _nobody(len(y))
        opening.rows.put(X, y, w, ids)
        return opening


def _nobody(n: int) -> Array:
    return np.full(n, None, dtype=object)


def _named(ids: Array) -> bool:
    """Whether any row has an id."""
    return any(one is not None for one in ids.tolist())
