"""Streaming regression as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from .._typing import Array
from .._validation import TOO_LARGE, check_targets
from ..losses import (
    Bernoulli,
    Correntropy,
    Exponential,
    Gaussian,
    Poisson,
    Square,
)
from ..readers.partitioned_rows import ParquetRows, ParquetRowsBatch
from .linear_model import LinearModel, checked_file
from .linear_parts import FAMILIES, is_auto
from .shared_docs import documented
from .stream import Batch, FileStream

__all__ = ["FrankWolfeRegressor"]


@documented
class FrankWolfeRegressor(RegressorMixin, LinearModel):
    """Sparse or low-rank linear regression from a stream of rows, by online Frank-Wolfe.

    One ``partial_fit`` is one round. The model can predict after each. For a convex loss ``gap_``
    bounds how far its mean loss on the rows kept is above the best within its radius.

    Parameters
    ----------
    {the_set}
    loss : str or Loss
        "square", "correntropy" (robust: errors much larger than sqrt(sigma) count alike; the name
        means sigma = 1, pass ``Correntropy(sigma)`` for others), "gaussian", "poisson",
        "bernoulli", "exponential", or an object of :mod:`onlinefw.losses`.
    {how_to_learn}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients.
    intercept_ : float
        The intercept.
    {certificate}
    objective_ : Objective
        What is kept of the past.
    {records}

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> model = ofw.FrankWolfeRegressor(radius=3.0)
    >>> for _ in range(50):  # rows keep arriving
    ...     X = rng.standard_normal((20, 100))
    ...     model = model.partial_fit(X, 5 + X[:, 0] - 2 * X[:, 1] + rng.standard_normal(20))
    >>> np.flatnonzero(np.abs(model.coef_) > 0.2), round(model.intercept_)
    (array([0, 1]), 5)
    """

    _losses = {  # noqa: RUF012 (never changed)
        "square": Square,
        "correntropy": lambda: Correntropy(1.0),
        "gaussian": Gaussian,
        "poisson": Poisson,
        "bernoulli": Bernoulli,
        "exponential": Exponential,
    }

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, ids: Any = None
    ) -> Self:
        """Play one round with these rows; parameters as for :meth:`fit`.

        X may also be one batch of ParquetRows.
        """
        return self._partial_fit(X, y, sample_weight, ids=ids)

    def learn(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        batch_size: int = 1,
        ids: Any = None,
    ) -> Array:
        """Play rows in the order given, each predicted before it is learned.

        Parameters
        ----------
        X, y, sample_weight, ids
            As for ``partial_fit``.
        batch_size : int
            How many are learned at a time.

        Returns
        -------
        ndarray
            What was predicted for each before it was learned. Before any data that is 0.
        """
        return self._learn_in_order(X, y, sample_weight, batch_size, ids=ids)

    # Targets --------------------------------------------------------------------------------------

    def _check_y(self, y: Any, first: bool, classes: Any = None) -> Array:
        return check_targets(y, len(y), self._loss())

    def _plain_y(self, y: Any, n: int) -> Array | None:
        if type(y) is not np.ndarray or y.shape != (n,) or y.dtype != float:
            return None
        if not np.abs(y).max() <= TOO_LARGE:  # NaN compares as False
            return None
        self._run.loss.check_targets(y)
        return y

    # Files ----------------------------------------------------------------------------------------

    def _file_rounds(self, files: Any) -> FileStream:
        if not isinstance(files, ParquetRows):
            raise ValueError(f"{files}: rows of features are needed, in batches of ParquetRows")
        self._forget()
        self._learn_names(files)

        def first() -> Batch:
            needed = is_auto(self.radius) or self.scale is True
            return checked_file(self, next(iter(files))) if needed else Batch(files)

        return FileStream(files, files.shape[0], first, self._from_file)

    def _from_file(self, batch: Any, first: bool = False) -> Batch:
        if not isinstance(batch, ParquetRowsBatch):
            raise ValueError(f"{batch}: rows of features are needed, in batches of ParquetRows")
        if first:
            self._learn_names(batch)
            opens = is_auto(self.radius) or self.scale is True
        else:
            self._check_names(batch)
            opens = self._run.race is not None or self._run.scaling is not None
            opens = opens or is_auto(self.half_life)
        return checked_file(self, batch) if opens or self.workers is None else Batch(batch)

    def _learn_names(self, rows: Any) -> None:
        self.n_features_in_ = rows.shape[1]
        self.feature_names_in_ = np.array(rows.columns.features, dtype=object)

    def _check_names(self, batch: Any) -> None:
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
        raise ValueError(
            f"{batch}: it has {what}; choose the same ones with ParquetRows(..., features=[...])"
        )

    # The model ------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Array:
        """The coefficients."""
        return self._fitted("coef_").coefficients[0][0].copy()

    @property
    def intercept_(self) -> float:
        """The intercept."""
        return float(self._fitted("intercept_").coefficients[1][0])

    def predict(self, X: Any) -> Array:
        """Return <coef, x> + intercept, or the mean of the family that the loss belongs to."""
        return self._answers(self._scores(X))

    def _answers(self, scores: Array) -> Array:
        z = scores[:, 0]
        # A family's loss is G(z) - y z, and its mean is G'(z) = the derivative at y = 0.
        loss = self._run.loss
        return loss.derivative(z, 0.0).astype(z.dtype) if isinstance(loss, FAMILIES) else z
