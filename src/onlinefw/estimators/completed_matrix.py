"""What can be asked of a matrix that is being completed."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._devices import to_host
from .._typing import Array
from .._validation import check_indices, check_whole
from ..losses import Logistic, Sigmoid
from .base import StreamingEstimator
from .completion_parts import choice
from .completion_run import CompletionRun
from .linear_parts import FAMILIES
from .local_facts import ModelMixture, ShortMemory

__all__ = ["CompletedMatrix"]

LABELS = (Logistic, Sigmoid)


class CompletedMatrix(StreamingEstimator):
    """An estimator of a matrix: it predicts entries, and recommends columns to rows."""

    _run: CompletionRun

    def predict(self, X: Any, *, unknown: str = "raise") -> Array:
        """Return the expected value of entries.

        For the square loss that is the model itself; for exponential families their mean; for
        labels (logistic, sigmoid) -1 or +1.

        Parameters
        ----------
        X : array-like of shape (n, 2)
            Rows and columns.
        unknown : "raise" or "fallback"
            What to do with rows or columns that were never seen: refuse, or predict what the
            offsets know about them: the mean plus the bias of the row or column that was seen
            (0 without offsets).
        """
        check_is_fitted(self)
        run = self._run
        with run.turns:  # of the same round: what is predicted, and what it is clipped to
            z = self.decision_function(X, unknown=unknown)
            low, high = run.low, run.high
        z = self._answer(z)
        return np.clip(z, low, high) if run.parts.clip else z

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
        rows, cols = check_indices(X, (0, 0), growing=True)
        run = self._run
        with run.turns:
            matrix = run.matrix
            m1, m2 = matrix.shape
            known = (rows < m1) & (cols < m2)
            if known.all():
                return run.predict(rows, cols)
            if unknown == "raise":
                k = int(np.argmin(known))
                raise ValueError(
                    f"X has the entry ({rows[k]}, {cols[k]}), but the model has seen {m1} rows and "
                    f'{m2} columns; pass unknown="fallback" to predict what is known without it'
                )
            z = run.fallback(rows, cols)
            z[known] = run.predict(rows[known], cols[known])
            return z

    def score(self, X: Any, y: Any) -> float:
        """Return the coefficient of determination R^2 of the predictions (1 is best)."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, unknown="fallback")))

    def recommend(self, row: int, n: int = 10, *, exclude_seen: bool = True) -> tuple[Array, Array]:
        """Return the n columns with the largest predictions in a row, and the predictions.

        For labels (logistic, sigmoid) the values of ``decision_function`` are returned instead,
        because predictions are only -1 or +1.

        Parameters
        ----------
        row : int
            The row.
        n : int
            How many columns, at most.
        exclude_seen : bool
            Leave out columns in which the row has been observed.
        """
        check_is_fitted(self)
        with self._run.turns:
            matrix = self._run.matrix
            m1, m2 = matrix.shape
            if not isinstance(row, Integral) or not 0 <= row < m1:
                raise ValueError(
                    f"row must be one of the {m1} rows seen, 0 to {m1 - 1}, got {row!r}"
                )
            n = check_whole("n", n)
            scores = self._run.predict(np.full(m2, int(row)), np.arange(m2)).astype(float)
            if exclude_seen:
                scores[matrix.columns_of(int(row))] = -np.inf
            best = np.argsort(-scores, kind="stable")[:n]
            best = best[scores[best] > -np.inf]
            if best.size == 0:
                return best, np.empty(0, matrix.dtype)
            entries = np.column_stack((np.full(best.size, int(row)), best))
            labels = isinstance(self._run.loss, LABELS)
            return best, self.decision_function(entries) if labels else self.predict(entries)

    @property
    def shape_(self) -> tuple[int, int]:
        """Rows and columns seen."""
        rows, columns = self._fitted("shape_").matrix.shape
        return int(rows), int(columns)

    @property
    def factors_(self) -> tuple[Array, Array, Array]:
        """(U, s, V) with low-rank part = U diag(s) V'."""
        theta = self._fitted("factors_").matrix.theta
        u, s, v = theta.svd()
        k = int(np.count_nonzero(s > s.max(initial=0.0) * 10 * np.finfo(theta.dtype).eps))
        return to_host(u[:, :k]), s[:k], to_host(v[:, :k])

    @property
    def has_offsets_(self) -> bool:
        """Whether an offset for each row and column is added to the low-rank part."""
        return bool(self._fitted("has_offsets_").has_offsets)

    @property
    def short_memory_(self) -> ShortMemory | None:
        """What the latest errors of a row and of a column are multiplied by in predictions.

        A named tuple ``(rows, columns, gain)``; ``gain`` is about how much of the variance of the
        values that explains. None without a short memory: it comes with ``corrective="local"``
        and no radius.
        """
        facts = self._fitted("short_memory_").local_facts
        return None if facts is None else facts.memory

    @property
    def mixture_(self) -> ModelMixture | None:
        """The ``weights`` and ``ridges`` of the models that are mixed; None if there is only one.

        A ridge (a, b) keeps the factors of a row or column of n values small by a + b n.
        """
        facts = self._fitted("mixture_").local_facts
        return None if facts is None or len(facts.mixture.weights) < 2 else facts.mixture

    @property
    def rank_(self) -> int:
        """The rank of the low-rank part."""
        return self.factors_[1].size

    @property
    def n_atoms_(self) -> int:
        """How many rank-one terms the low-rank part has: a bound on the rank, at no cost."""
        return int(self._fitted("n_atoms_").matrix.theta.n_atoms)
