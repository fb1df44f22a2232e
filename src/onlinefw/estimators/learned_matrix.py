"""What a matrix completion predicts with: factors, offsets, and which entries were seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._devices import to_host
from .._state import check_state
from .._typing import Array, State
from .._validation import MOST, check_compressed
from ..iterates import LowRank
from ..objectives.biases import Biases

__all__ = ["LearnedMatrix"]


@dataclass
class LearnedMatrix:
    """theta + offsets, without the values that they were learned from."""

    theta: LowRank
    row_offsets: Array | None
    column_offsets: Array | None
    #: The mean, and the biases of rows and columns: what is known of entries never seen.
    biases: Biases | None
    #: The columns in which each row has been observed, compressed: indptr and columns.
    seen: tuple[Array, Array]

    @classmethod
    def of(cls, objective: Any, biases: Any) -> Self:
        """Take what predicts out of an objective."""
        rows = columns = known = None
        if biases is not None:
            offsets = biases.offsets(objective.shape)
            known = Biases(float(biases.mean), biases.rows, biases.columns)
            rows, columns = (np.asarray(side).astype(objective.dtype) for side in offsets)
        return cls(objective.theta, rows, columns, known, objective.seen())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.theta.shape

    @property
    def dtype(self) -> Any:
        """Of the predictions."""
        return self.theta.dtype

    def predict(self, rows: Array, cols: Array) -> Array:
        """Return the entries of the matrix at (rows, cols)."""
        z = self.theta.entries(rows, cols)
        if self.row_offsets is None or self.column_offsets is None:
            return z
        return z + (self.row_offsets[rows] + self.column_offsets[cols])

    def columns_of(self, row: int) -> Array:
        """Return the columns in which a row has been observed."""
        indptr, columns = self.seen
        return np.sort(columns[indptr[row] : indptr[row + 1]]).astype(np.int64)

    def state_dict(self) -> State:
        """Return everything as plain arrays."""
        theta, biases = self.theta, self.biases
        return {
            "left": to_host(theta.left),
            "weights": theta.weights,
            "right": to_host(theta.right),
            "padded": bool(theta.capacity > theta.n_atoms),
            "indptr": self.seen[0].astype(np.uint64),
            "columns": self.seen[1].astype(np.uint32),
            "row_offsets": self.row_offsets,
            "column_offsets": self.column_offsets,
            "biases": None if biases is None else biases._asdict(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Make the matrix that ``state_dict`` described."""
        check_state(state, "left", "weights", "right", "padded", "indptr", "columns")
        check_state(state, "row_offsets", "column_offsets", "biases")
        theta = _factors(state)
        check_compressed(state["indptr"], state["columns"], *theta.shape)
        offsets = state["row_offsets"], state["column_offsets"]
        for offset, size in zip(offsets, theta.shape, strict=True):
            if offset is not None and (offset.shape != (size,) or offset.dtype != theta.dtype):
                raise ValueError("the offsets do not fit the matrix")
        seen = state["indptr"].astype(np.int64), state["columns"].astype(np.uint32)
        return cls(theta, *offsets, _biases(state["biases"]), seen)


def _factors(state: State) -> LowRank:
    weights = state["weights"].astype(float)
    factors = {"left": state["left"], "weights": weights, "right": state["right"], "scale": 1.0}
    limits = {"max_atoms": max(2, weights.size), "max_rank": None}
    # Keep unused capacity at the end of each row if there was some: compiled loops over contiguous
    # rows round differently.
    capacity = weights.size + bool(state["padded"])
    theta = LowRank.from_state({**factors, **limits, "capacity": capacity})
    if 0 in theta.shape:
        raise ValueError("the factors are those of an empty matrix")
    if not weights.size and max(theta.shape) > MOST:  # factors without terms hold no byte
        raise ValueError(f"the matrix is zero and has more than {MOST:,} rows or columns")
    return theta


def _biases(state: State | None) -> Biases | None:
    if state is None:
        return None
    rows, columns = (np.asarray(state[name], float) for name in ("rows", "columns"))
    if rows.ndim != 1 or columns.ndim != 1:
        raise ValueError("the biases do not fit the matrix")
    return Biases(float(state["mean"]), rows, columns)
