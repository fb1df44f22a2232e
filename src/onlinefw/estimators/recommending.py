"""What a matrix recommends: the best columns for one row or for many, and columns alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._devices import to_host
from .._typing import Array
from .._validation import check_whole
from ..losses import Logistic, Sigmoid
from ..readers.id_tables import as_objects
from .best_items import best_items, best_items_of_one
from .ids import check_kind
from .pairs import SIDES, column_of

__all__ = ["LABELS", "Recommending", "Scoring"]

LABELS = (Logistic, Sigmoid)


class Scoring(NamedTuple):
    """What columns are worth to a vector: <vector, right_j> + offsets_j.

    Of columns that are worth the same, the one with the largest ``popularity`` comes first.
    """

    right: Array
    offsets: Array
    popularity: Array | None = None


class Wish(NamedTuple):
    """What is to be recommended: so many, of the allowed columns, perhaps without those seen."""

    n: int
    allowed: Array
    exclude_seen: bool


class Recommending:
    """The part of an estimator of a matrix that recommends columns to rows.

    Rows and columns are ids if the model has ids, else indices.
    """

    _run: Any
    _as_values: Callable[[Array], Array]
    #: What rows and columns are called in messages.
    _sides = SIDES

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
        with self._run.turns:
            wish = self._wish(n, exclude_seen, candidates, exclude)
            return self._recommend(row, wish)

    def _wish(self, n: int, exclude_seen: bool, candidates: Any, exclude: Any) -> Wish:
        return Wish(check_whole("n", n), self._allowed(candidates, exclude), exclude_seen)

    def _recommend(self, rows: Any, wish: Wish) -> tuple[Array, Array]:
        run, one = self._run, np.ndim(rows) == 0
        numbers = self._numbers_of([rows] if one else rows)
        vectors = run.vectors(numbers)
        taken = run.taken(numbers) if wish.exclude_seen else None

        def exact(which: Array, columns: Array) -> Array:
            return run.exact(numbers[which], vectors[which], columns)

        return self._best(vectors, wish, taken, exact, one)

    def _best(
        self,
        vectors: Array,
        wish: Wish,
        taken: tuple[Array, Array] | None,
        exact: Callable[[Array, Array], Array],
        one: bool,
    ) -> tuple[Array, Array]:
        """Return the best columns for vectors, without those taken, in the order of exact values.

        ``exact`` says what columns are worth to some of the vectors to the last digit.
        """
        scoring, n = self._run.scoring(), min(wish.n, wish.allowed.size)
        offsets = np.where(wish.allowed, scoring.offsets, -np.inf)
        if one:
            best = np.full((1, n), -1)
            if taken is not None:
                offsets[taken[1]] = -np.inf
            found, _ = best_items_of_one(vectors[0], scoring.right, offsets, n)
            best[0, : found.size] = found
        else:
            best, _ = best_items(vectors, scoring.right, offsets, n, taken)
        if scoring.popularity is not None:
            _rank_popular(best, vectors, offsets, scoring.popularity, taken)
        which, there = np.nonzero(best >= 0)[0], best >= 0
        z = exact(which, best[there])
        order = _ordered(best, there, z, scoring.popularity)
        best, values = np.take_along_axis(best, order, 1), np.full(best.shape, -np.inf)
        z = z if isinstance(self._run.loss, LABELS) else self._as_values(z)
        values[there] = z
        values = np.take_along_axis(values, order, 1)
        if one:
            k = int(there.sum())
            return self._named(best[0, :k]), values[0, :k].astype(z.dtype)
        return self._padded(best, values, wish.n)

    def _padded(self, best: Array, values: Array, n: int) -> tuple[Array, Array]:
        columns, padded = np.full((len(best), n), None, object), np.full((len(best), n), -np.inf)
        there = best >= 0
        columns[:, : best.shape[1]][there] = self._named(best[there])
        padded[:, : best.shape[1]] = values
        return columns, padded

    def _because(
        self, columns: Array, contributions: Array, value: float, n: int
    ) -> tuple[Array, Array]:
        """Return the n columns that add most, by names, and the rest of a value as None's."""
        order = np.lexsort((columns, -contributions))[:n]
        names = np.full(order.size + 1, None, object)
        names[:-1] = self._named(columns[order])
        rest = value - contributions[order].sum()
        return names, np.append(contributions[order], rest)

    def similar(self, column: Any, n: int = 10) -> tuple[Array, Array]:
        """Return the n columns most like one, and how much: 1 is the same, 0 unrelated.

        That is the cosine of the angle between two columns of the low-rank part: whether the same
        rows have more of both than offsets say.
        """
        check_is_fitted(self)
        n = check_whole("n", n)
        with self._run.turns:
            number, theta = self._column_number(column), self._run.matrix.theta
            left = to_host(theta.left).astype(float) * theta.weights
            right = to_host(theta.right).astype(float)
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
            chosen[_known(self._column_numbers("candidates", candidates))] = True
            allowed &= chosen
        if exclude is not None:
            allowed[_known(self._column_numbers("exclude", exclude))] = False
        return allowed

    def _column_numbers(self, what: str, columns: Any) -> Array:
        """Return the numbers of columns, checked; -1 for those that the model does not know."""
        alone = isinstance(columns, str) or getattr(columns, "ndim", 1) == 0
        if alone or not isinstance(columns, Iterable):
            raise ValueError(f"{what} must be a list of {self._sides[1]}s, got {columns!r:.40}")
        if self._run.ids is not None:
            return self._looked_up(1, columns, what)
        values, m = listed(columns), self._run.matrix.shape[1]
        for one in values:
            if not isinstance(one, Integral):
                raise ValueError(
                    f"{what} must be whole numbers, as columns of this model are, got {one!r:.40}"
                )
        return np.array([one if 0 <= one < m else -1 for one in values], np.int64)

    def _looked_up(self, side: int, ids: Any, where: str) -> Array:
        """Return the numbers of ids, checked; -1 for those that the model does not know."""
        values = ids if isinstance(ids, np.ndarray) else as_objects(listed(ids))
        if values.ndim != 1:
            raise ValueError(f"{where} must be one-dimensional, got shape {values.shape}")
        if not values.size:
            return np.empty(0, np.int64)
        table, given = self._run.ids.tables[side], column_of(self._sides[side], values, where)
        check_kind(self._sides[side], table, given, where)
        return table.indices(given.ids)[given.codes]

    def _numbers_of(self, rows: Any) -> Array:
        """Return the numbers of rows, which the model knows."""
        return np.array([self._number_of(row) for row in listed(rows)], np.int64)

    def _number_of(self, row: Any) -> int:
        """Return the number of a row, given by its index or its id."""
        ids, m1 = self._run.ids, self._run.matrix.shape[0]
        if ids is None:
            if not isinstance(row, Integral) or not 0 <= int(row) < m1:
                raise ValueError(
                    f"row must be one of the {m1} rows seen, 0 to {m1 - 1}, got {row!r}"
                )
            return int(row)
        number, what = -1, self._sides[0]
        if isinstance(row, (str, Integral)):
            number = ids.rows.get(int(row) if isinstance(row, np.integer) else row)
        if number < 0:
            known = [one for one in ids.rows.ids.tolist() if one is not None]  # None: forgotten
            some = ", ".join(f"{one!r:.40}" for one in known[:3])
            raise ValueError(
                f"{what} must be one of the {len(known):,} {what} ids that the model has "
                f"learned, such as {some}, got {row!r:.40}"
            )
        return number

    def _column_or_none(self, column: Any) -> int | None:
        ids, m = self._run.ids, self._run.matrix.shape[1]
        if ids is None:
            known = isinstance(column, Integral) and 0 <= int(column) < m
            return int(column) if known else None
        if not isinstance(column, (str, Integral)):
            return None
        number = ids.columns.get(int(column) if isinstance(column, np.integer) else column)
        return number if number >= 0 else None

    def _column_number(self, column: Any) -> int:
        number = self._column_or_none(column)
        if number is None:
            what = self._sides[1]
            raise ValueError(f"{what} must be one that the model has learned, got {column!r:.40}")
        return number


def _rank_popular(
    best: Array, vectors: Array, offsets: Array, popularity: Array, taken: Any
) -> None:
    """Let vectors that say nothing have the columns with the largest offsets, then popularity."""
    silent = ~vectors.any(axis=1)
    if taken is not None:
        silent &= np.diff(taken[0]) == 0
    if silent.any():
        order = np.lexsort((-popularity, -offsets))[: best.shape[1]]
        best[silent] = np.where(offsets[order] > -np.inf, order, -1)


def _ordered(best: Array, there: Array, z: Array, popularity: Array | None) -> Array:
    """Return the order of columns in each line: by values, popularity, and number."""
    values = np.full(best.shape, np.inf)
    values[there] = -z.astype(float)
    keys = [best, values] if popularity is None else [best, -popularity[best], values]
    return np.lexsort(keys, axis=-1)


def _known(numbers: Array) -> Array:
    return numbers[numbers >= 0]


def listed(values: Any) -> list[Any]:
    """Return ids or indices as Python objects: of a list, an array, or a column of a frame."""
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(values, name):
            found: list[Any] = getattr(values, name)()
            return found
    return list(values)
