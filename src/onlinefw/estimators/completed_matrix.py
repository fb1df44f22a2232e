"""What can be asked of a matrix that is being completed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from .._validation import LARGEST_INDEX, check_indices
from .completion_parts import choice
from .factors_run import Mood
from .folding import FoldsIn
from .linear_parts import FAMILIES
from .matrix_estimator import MatrixEstimator
from .pairs import pairs_of, refuse_ids
from .recommending import LABELS

__all__ = ["CompletedMatrix"]


class CompletedMatrix(FoldsIn, MatrixEstimator):
    """An estimator of a matrix: it predicts entries, and recommends columns to rows."""

    _run: Any

    def predict(self, X: Any, *, unknown: str = "raise") -> Array:
        """Return the expected value of entries.

        For the square loss that is the model itself; for exponential families their mean; for
        labels (logistic, sigmoid) -1 or +1.

        Parameters
        ----------
        X : array-like of shape (n, 2), or frame with two columns
            Rows and columns: their ids if the model has ids, else their indices.
        unknown : "raise" or "fallback"
            What to do with rows or columns that were never seen: refuse, or predict what the
            offsets know about them: the mean plus the bias of the row or column that was seen
            (0 without offsets).
        """
        check_is_fitted(self)
        with self._run.turns:  # of the same round: what is predicted, and what it is clipped to
            return self._as_values(self.decision_function(X, unknown=unknown))

    def predict_entries(self, rows: Any, columns: Any, *, unknown: str = "raise") -> Array:
        """Return what ``predict`` does, for entries given by numbers whatever ids they have.

        Parameters
        ----------
        rows, columns : array-like of int
            Numbers from 0, in the order of ``row_ids_`` and ``col_ids_``.
        unknown : "raise" or "fallback"
            As for ``predict``.
        """
        check_is_fitted(self)
        choice("unknown", unknown, ("raise", "fallback"))
        rows, columns = check_indices(np.column_stack((rows, columns)), (0, 0), growing=True)
        with self._run.turns:
            return self._as_values(self._entries(rows, columns, unknown))

    def _as_values(self, z: Array) -> Array:
        """Return what is predicted, given entries of the model."""
        run = self._run
        z = self._answer(z)
        seen = run.low <= run.high  # not so before the first observation
        return np.clip(z, run.low, run.high) if run.parts.clip and seen else z

    def _answer(self, z: Array) -> Array:
        """Return the expected values that belong to the model's entries."""
        loss = self._run.loss
        if isinstance(loss, LABELS):
            return np.where(z >= 0.0, 1.0, -1.0).astype(z.dtype)
        if isinstance(loss, FAMILIES):
            return loss.derivative(z, 0.0)  # the mean of G(z) - y z is G'(z)
        return z

    def decision_function(self, X: Any, *, unknown: str = "raise") -> Array:
        """Return the model's entries, low-rank part plus offsets; parameters as for predict."""
        check_is_fitted(self)
        choice("unknown", unknown, ("raise", "fallback"))
        run = self._run
        with run.turns:
            ids = run.ids
            if ids is None:
                return self._entries(*self._indices(X), unknown)
            few = ids.few(X)
            if few is not None:
                return self._entries(few[:, 0], few[:, 1], unknown)
            pairs = pairs_of(X)
            rows, cols = ids.look_up(pairs)
            new = (rows < 0) | (cols < 0)
            if unknown == "raise" and new.any():
                k = int(np.argmax(new))
                row, column = (side.ids[side.codes[k : k + 1]].tolist()[0] for side in pairs)
                raise ValueError(
                    f"X has the entry ({row!r:.40}, {column!r:.40}), and the model has not learned "
                    f"{'that row' if rows[k] < 0 else 'that column'}; it knows "
                    f"{len(ids.rows):,} row ids and {len(ids.columns):,} column ids; pass "
                    'unknown="fallback" to predict what is known without it'
                )
            rows[rows < 0], cols[cols < 0] = LARGEST_INDEX, LARGEST_INDEX
            return self._entries(rows, cols, unknown)

    def _indices(self, X: Any) -> tuple[Array, Array]:
        """Return rows and columns, for a model that knows them by their indices."""
        refuse_ids(X)
        return check_indices(X, (0, 0), growing=True)

    def _entries(self, rows: Array, cols: Array, unknown: str) -> Array:
        """Return the model at entries, with the fallback outside the matrix."""
        m1, m2 = self._run.matrix.shape
        if unknown == "raise" and not (known := (rows < m1) & (cols < m2)).all():
            k = int(np.argmin(known))
            raise ValueError(
                f"X has the entry ({rows[k]}, {cols[k]}), but the model has seen {m1} rows and "
                f'{m2} columns; pass unknown="fallback" to predict what is known without it'
            )
        return self._run.entries(rows, cols)

    def score(self, X: Any, y: Any) -> float:
        """Return the coefficient of determination R^2 of the predictions (1 is best)."""
        from sklearn.metrics import r2_score

        return float(r2_score(np.asarray(y), self.predict(X, unknown="fallback")))

    @property
    def row_ids_(self) -> Array | None:
        """The ids of the rows, in the order of their numbers; None if the model has indices.

        In place of one that was forgotten there is None.
        """
        ids = self._fitted("row_ids_").ids
        return None if ids is None else ids.rows.ids

    @property
    def col_ids_(self) -> Array | None:
        """The ids of the columns, likewise."""
        ids = self._fitted("col_ids_").ids
        return None if ids is None else ids.columns.ids

    @property
    def has_offsets_(self) -> bool:
        """Whether an offset for each row and column is added to the low-rank part."""
        return bool(self._fitted("has_offsets_").has_offsets)

    @property
    def mood_(self) -> Mood | None:
        """What two means of a row's latest errors are multiplied by in its predictions.

        A named tuple ``(fast, slow, gain)``; ``gain`` is about how much of the variance of the
        errors that explains. None without moods: they come with factors and the square loss.
        """
        return self._fitted("mood_").mood
