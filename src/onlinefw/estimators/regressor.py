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
from .stream import Batch, FileStream

__all__ = ["FrankWolfeRegressor"]


class FrankWolfeRegressor(RegressorMixin, LinearModel):
    """Sparse or low-rank linear regression from a stream of rows, by online Frank-Wolfe.

    One ``partial_fit`` is one round. The model can predict after each, and ``gap_`` says how far
    from optimal it is on the rows kept.

    Parameters
    ----------
    constraint : str or ConvexSet
        The set of the coefficients: "l1" (sparse), "trace" (low rank, with ``coef_shape``), "l2",
        "linf", "simplex", or a set of :mod:`onlinefw.sets`.
    radius : float or "auto"
        Of the set, if it is given by name. "auto" lets eight radii, a factor of 3 apart, learn side
        by side on the first 5000 rows (or in the first 500 rounds), each scored by predicting every
        batch before it is learned; then the best goes on alone. Until then the best so far
        predicts. A set given as an object has a size of its own.
    loss : str or Loss
        "square", "correntropy" (robust: errors much larger than sqrt(sigma) count alike; the name
        means sigma = 1, pass ``Correntropy(sigma)`` for others), "gaussian", "poisson",
        "bernoulli", "exponential", or an object of :mod:`onlinefw.losses`.
    away_steps : bool
        Use O-AW instead of O-FW (polytopes such as "l1").
    step : None, "line-search" or step rule
        None is a line search with ``inner_steps="auto"``, and the paper's 2 / (t + 1) with a fixed
        number of inner steps.
    batch_size : int
        Rows a round in ``fit``; one ``partial_fit`` is one round whatever its length.
    epochs : int
        Passes of ``fit``. From the second on nothing is stored again: rounds use the rows already
        kept.
    inner_steps : int or "auto"
        Steps a round; 1 is the paper's setting. "auto" takes steps until the gap is below 1% of
        the mean loss of the rows kept, 20 at most (plain steps more while there are few rows).
    corrective : "auto", None or NewtonSteps
        On the l1 ball with O-FW: let each step re-optimise all active coefficients. "auto" does so
        with ``inner_steps="auto"``.
    fit_intercept : bool
        Add an intercept, which is outside the set.
    scale : "auto" or bool
        Put the columns of dense rows on one scale before they are learned: by means and standard
        deviations of the first 5000 rows of ``fit``, or of the first batch of a stream (if it has
        ten rows; see ``prepare``). "auto" does so for the l1, l2 and l-infinity ball where
        ``radius="auto"``: a radius that is given is in the units of the rows. Coefficients are
        always those of the rows as given.
    past : "all", "recent", "reservoir" or "auto"
        Which rows count: all (the algorithm of the paper; memory grows), the newest ``max_past``,
        or a uniform random sample of so many. The gap then certifies the mean over the rows kept.
        "auto", the choice of ``ofw fit``, keeps all if sums of rows suffice or if at most
        ``max_past`` are expected, and a sample otherwise.
    max_past : int, optional
        How many rows to keep, unless all; for "auto" 200,000 by default.
    coef_shape : (int, int), optional
        For matrix-shaped features: rows are matrices of this shape, flattened in C order.
    expected_size : int, optional
        How many rows a stream will have, if that is known; ``fit`` knows.
    shuffle : bool
        Let ``fit`` take the rows in random order.
    random_state : int or Generator, optional
        Of the shuffling and of the reservoir.
    history_size : int
        Rounds kept in ``history_``, thinned evenly in log t.
    path_size : int
        Snapshots of the coefficients kept in ``path_``; 0 for none.
    verbose : int
        1 shows a progress bar in terminals and notebooks (with ``rich`` installed).
    device : "cpu", "cuda" or "auto"
        Where the past is kept: in this process's memory or on a GPU (which needs
        ``onlinefw[gpu]``); "auto" takes a GPU if there is one. With ``workers`` the device is
        theirs, one GPU each.
    workers : int, optional
        Spread the data over so many workers of a Ray cluster (:mod:`onlinefw.distributed`): a
        running one, or a local one that is started; by default this process keeps them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients.
    intercept_ : float
        The intercept.
    gap_ : float
        The certificate of the current coefficients, computed when asked for: for a convex loss,
        the mean loss over the rows kept is at most this far above its minimum over the set.
    radius_ : float
        The radius in use.
    scale_ : ndarray or None
        What columns are divided by before they are learned.
    n_rounds_, n_observations_ : int
        Rounds played, and rows learned.
    objective_ : Objective
        What is kept of the past.
    history_ : dict of arrays
        t, loss (paid before learning), gap, step_size, kind, seconds, ...: ready for pandas.
    path_ : dict
        t, seconds and coef (sparse, a row for each t): coefficients over time.

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything and stream the rows in batches of ``batch_size``.

        While radii race each other, the rows are played in at least ten rounds (if there are a
        hundred rows).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or ParquetRows
            The rows. Or files (:class:`onlinefw.distributed.ParquetRows`) with targets as well, in
            batches of their own size and order, which ``workers`` read themselves (this process
            does where sums of rows suffice, for the square loss with few features; while radii
            race each other; and where columns are scaled).
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            How much each row counts; rows of weight 0 are left out before batches are made.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Play one round with these rows; parameters as for :meth:`fit`.

        X may also be one batch of ParquetRows.
        """
        return self._partial_fit(X, y, sample_weight)

    # Targets --------------------------------------------------------------------------------------

    def _check_y(self, y: Any, first: bool, classes: Any = None) -> Array:
        y = np.asarray(y)
        if y.dtype.kind in "OUS":
            try:
                y = y.astype(float)
            except (TypeError, ValueError) as error:
                raise ValueError(f"y must be numeric: {error}") from None
        return check_targets(y.astype(float, copy=False), len(y), self._loss())

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
        z = self._scores(X)[:, 0]
        # A family's loss is G(z) - y z, and its mean is G'(z) = the derivative at y = 0.
        loss = self._run.loss
        return loss.derivative(z, 0.0).astype(z.dtype) if isinstance(loss, FAMILIES) else z
