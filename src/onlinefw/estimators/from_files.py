"""Linear models that also learn from rows in files."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._validation import check_alone, check_whole
from ..distributed.parquet_rows import ParquetRows, ParquetRowsBatch
from ..objectives.from_files import WEIGHTS
from .callbacks import with_callbacks
from .learnable import check_can_learn
from .linear_model import StreamingLinearModel

__all__ = ["LearnsFromFiles"]


class LearnsFromFiles(StreamingLinearModel):
    """A model with one problem, whose targets may come from files as they are."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything and stream the rows in batches of ``batch_size``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or ParquetRows
            The rows. Or files (:class:`onlinefw.distributed.ParquetRows`) with targets as well, in
            batches of their own size and order, which ``workers`` read themselves (this process
            does where sums of rows suffice: for the square loss with few features).
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            How much each row counts; rows of weight 0 are left out before batches are made.
        """
        if not isinstance(X, ParquetRows):
            return super().fit(X, y, sample_weight)
        check_alone(y, sample_weight, WEIGHTS)
        return self._fit_files(X)

    @with_callbacks
    def _fit_files(self, rows: ParquetRows) -> Self:
        if self.shuffle:
            raise ValueError("files are read in their order: use shuffle=False with ParquetRows")
        if len(rows) == 0:
            raise ValueError(f"there is nothing to learn from: {rows}")
        again = [None] * (len(rows) * (check_whole("epochs", self.epochs) - 1))
        self._forget()
        self._begin(rows)
        try:
            return self._stream([*rows, *again], self._play_file, X=rows, y=None)
        except ValueError:
            if self.n_rounds_ == 0:  # nothing has been learned: the model is not fitted
                self._forget()
            raise

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Play one round with these rows; parameters as for :meth:`fit`.

        X may also be one batch of ParquetRows.
        """
        if not isinstance(X, ParquetRowsBatch):
            return self._partial_fit(X, y, sample_weight)
        check_alone(y, sample_weight, WEIGHTS)
        check_can_learn(self)
        first = not self.__sklearn_is_fitted__()
        if first:
            self._begin(X)
        else:
            self._check_names(X)
        try:
            self._play_file(X)
        except ValueError:
            if first:
                self._forget()
            raise
        return self

    def _begin(self, rows: ParquetRows | ParquetRowsBatch) -> None:
        """Make the learners for rows of these columns."""
        self._start(rows)
        self.n_features_in_ = rows.shape[1]
        self.feature_names_in_ = np.array(rows.columns.features, dtype=object)

    def _check_names(self, batch: ParquetRowsBatch) -> None:
        known = getattr(self, "feature_names_in_", None)  # there are none if arrays came first
        if known is None or tuple(known) == batch.columns.features:
            return
        pairs = zip(known, batch.columns.features, strict=False)
        differ = next((pair for pair in pairs if pair[0] != pair[1]), None)
        what = (
            f"{len(batch.columns.features)} features, but the model has learned from {len(known)}"
            if differ is None
            else f"the feature {differ[1]!r} where the model has learned from {differ[0]!r}"
        )
        raise ValueError(f"{batch}: it has {what}; name the same, features=[...]")

    def _play_file(self, batch: ParquetRowsBatch | None) -> None:
        """Play a round with a batch, or (None) with the rows already held."""
        if batch is None:
            self._round()
        else:
            self._round(batch, [None])
