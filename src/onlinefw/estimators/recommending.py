"""What a matrix recommends: the best columns for one row or for many, and columns alike."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from .._validation import check_whole
from ..losses import Logistic, Sigmoid
from .best_items import best_items, best_items_of_one

__all__ = ["LABELS", "Recommending", "Scoring"]

LABELS = (Logistic, Sigmoid)


class Scoring(NamedTuple):
    """A matrix as products: <left_i, right_j> + offsets_j, and what is the same in all of a row."""

    left: Array
    weights: Array  # of the columns of both factors
    right: Array
    offsets: Array

    def of_rows(self, rows: Any) -> Array:
        """Return the factors of some rows, with the weights."""
        return self.left[rows] * self.weights.astype(self.left.dtype)


class Recommending:
    """The part of an estimator of a matrix that recommends columns to rows.

    Rows and columns are ids if the model has ids, else indices.
    """

    _run: Any
    _number_of: Callable[[Any], int]
    _as_values: Callable[[Array], Array]

    def recommend(
        self,
        row: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        candidates: Any = None,
        exclude: Any = None,
    ) -> tuple[Array, Array]:
        """Return the n columns with the largest predictions in a row, and the predictions.

        For labels (logistic, sigmoid) the values of ``decision_function`` are returned instead,
        because predictions are only -1 or +1.

        Parameters
        ----------
        row : int or str, or array-like of them
            One row, or many at once.
        n : int
            How many columns, at most.
        exclude_seen : bool
            Leave out columns in which the row has been observed.
        candidates : array-like, optional
            Recommend only from these columns. Those that the model does not know are left out.
        exclude : array-like, optional
            Leave these columns out.

        Returns
        -------
        columns, values : ndarray
            For one row at most n, the best first. For many rows two arrays with n columns; where
            a row has fewer, columns are padded with None and values with -inf.
        """
        check_is_fitted(self)
        n = check_whole("n", n)
        with self._run.turns:
            allowed = self._allowed(candidates, exclude)
            if np.ndim(row) == 0:
                return self._recommend_one(row, n, exclude_seen, allowed)
            return self._recommend_many(row, n, exclude_seen, allowed)

    def _recommend_one(
        self, row: Any, n: int, exclude_seen: bool, allowed: Array
    ) -> tuple[Array, Array]:
        run = self._run
        number, scoring = self._number_of(row), run.scoring()
        offsets = np.where(allowed, scoring.offsets, -np.inf)
        if exclude_seen:
            offsets[run.matrix.columns_of(number)] = -np.inf
        vector = scoring.of_rows(number)
        best, _ = best_items_of_one(vector, scoring.right, offsets, n)
        best, values = self._in_order(np.full(best.size, number), best)
        return self._named(best), values

    def _recommend_many(
        self, rows: Any, n: int, exclude_seen: bool, allowed: Array
    ) -> tuple[Array, Array]:
        run = self._run
        numbers = np.array([self._number_of(row) for row in _listed(rows)], np.int64)
        scoring, taken = run.scoring(), None
        if exclude_seen:
            lists = [run.matrix.columns_of(number) for number in numbers]
            ends = np.cumsum([0, *(one.size for one in lists)])
            taken = ends, np.concatenate([np.empty(0, np.int64), *lists])
        offsets = np.where(allowed, scoring.offsets, -np.inf)
        best, _ = best_items(scoring.of_rows(numbers), scoring.right, offsets, n, taken)
        columns, values = np.full(best.shape, None, object), np.full(best.shape, -np.inf)
        for k, some in enumerate(best):
            some = some[some >= 0]
            some, z = self._in_order(np.full(some.size, numbers[k]), some)
            columns[k, : some.size], values[k, : some.size] = self._named(some), z
        return columns, values

    def _in_order(self, rows: Array, best: Array) -> tuple[Array, Array]:
        """Return the best columns by what is predicted to the last digit, and these values."""
        run = self._run
        if not best.size:
            return best, np.empty(0, run.matrix.dtype)
        z = run.predict(rows, best)
        order = np.lexsort((best, -z.astype(float)))
        best, z = best[order], z[order]
        return best, z if isinstance(run.loss, LABELS) else self._as_values(z)

    def similar(self, column: Any, n: int = 10) -> tuple[Array, Array]:
        """Return the n columns most like one, and how much: 1 is the same, 0 unrelated.

        That is the cosine of the angle between two columns of the low-rank part: whether the same
        rows have more of both than offsets say.
        """
        check_is_fitted(self)
        n = check_whole("n", n)
        with self._run.turns:
            number, scoring = self._column_number(column), self._run.scoring()
            left = scoring.of_rows(slice(None)).astype(float)
            right = scoring.right.astype(float)
            # The inner product of two columns of the matrix, from its factors.
            products = right @ (left.T @ left)
            norms = np.sqrt(np.maximum(np.einsum("jp,jp->j", products, right), 0.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                cosines = (right @ products[number]) / (norms * norms[number])
            cosines[~(norms > 0.0) | ~self._allowed(None, None)] = -np.inf
            if not norms[number] > 0.0:
                cosines[:] = -np.inf
            cosines[number] = -np.inf
            best = np.argsort(-cosines, kind="stable")[:n]
            best = best[cosines[best] > -np.inf]
            return self._named(best), np.clip(cosines[best], -1.0, 1.0)

    # Names ----------------------------------------------------------------------------------------

    def _named(self, columns: Array) -> Array:
        ids = self._run.ids
        return columns if ids is None else ids.columns.take(columns)

    def _allowed(self, candidates: Any, exclude: Any) -> Array:
        """Return which columns may be recommended."""
        run = self._run
        m = run.matrix.shape[1]
        allowed = np.ones(m, bool)
        if run.ids is not None:
            allowed[len(run.ids.columns) :] = False  # room that ``shape`` has left
        if candidates is not None:
            chosen = np.zeros(m, bool)
            chosen[self._column_numbers("candidates", candidates)] = True
            allowed &= chosen
        if exclude is not None:
            allowed[self._column_numbers("exclude", exclude)] = False
        return allowed

    def _column_numbers(self, what: str, columns: Any) -> Array:
        """Return the numbers of those columns that the model knows."""
        if isinstance(columns, str) or np.ndim(columns) == 0:
            raise ValueError(f"{what} must be a list of columns, got {columns!r}")
        numbers = (self._column_or_none(one) for one in _listed(columns))
        return np.array([one for one in numbers if one is not None], np.int64)

    def _column_or_none(self, column: Any) -> int | None:
        ids, m = self._run.ids, self._run.matrix.shape[1]
        if ids is None:
            known = isinstance(column, Integral) and 0 <= int(column) < m
            return int(column) if known else None
        number = ids.columns.get(int(column) if isinstance(column, np.integer) else column)
        return number if number >= 0 else None

    def _column_number(self, column: Any) -> int:
        number = self._column_or_none(column)
        if number is None:
            raise ValueError(f"column must be one that the model has learned, got {column!r:.40}")
        return number


def _listed(values: Any) -> list[Any]:
    """Return ids or indices as Python objects."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
