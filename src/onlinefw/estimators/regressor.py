"""Streaming regression as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from .._typing import Array
from ..losses import (
    Bernoulli,
    Correntropy,
    Exponential,
    Gaussian,
    Poisson,
    Square,
)
from .from_files import LearnsFromFiles

__all__ = ["FrankWolfeRegressor"]


class FrankWolfeRegressor(RegressorMixin, LearnsFromFiles):
    """Sparse or low-rank linear regression from a stream of rows, by online Frank-Wolfe.

    One ``partial_fit`` is one round: the model is right *now*, and ``gap_`` says how far from
    optimal it is on the rows seen.

    Parameters
    ----------
    constraint : str or ConvexSet
        Where the coefficients live: "l1" (sparse), "trace" (low rank, with ``coef_shape``), "l2",
        "linf", "simplex", or a set of :mod:`onlinefw.sets`.
    radius : float
        Of the set, if it is given by name. :class:`~onlinefw.RadiusSearch` finds one.
    loss : str or Loss
        "square", "correntropy" (robust: errors much larger than sqrt(sigma) count alike; the name
        means sigma = 1, pass ``Correntropy(sigma)`` for others), "gaussian", "poisson",
        "bernoulli", "exponential", or an object of :mod:`onlinefw.losses`.
    away_steps : bool
        Use O-AW instead of O-FW (polytopes such as "l1").
    step : None, "line-search" or step rule
        None searches the step with ``inner_steps="auto"``, and is the paper's 2 / (t + 1) with a
        number of them.
    batch_size : int
        Rows a round in ``fit``; one ``partial_fit`` is one round whatever its length.
    epochs : int
        Passes of ``fit``. From the second on nothing is stored again: rounds go on with the rows
        already held.
    inner_steps : int or "auto"
        Steps a round; 1 is the paper's setting. "auto" takes steps until the gap is below 1% of
        the mean loss of the rows kept, 20 at most (plain steps more while there are few rows).
    corrective : "auto", None or NewtonSteps
        On the l1 ball with O-FW: let each step re-optimise all active coefficients. "auto" does so
        with ``inner_steps="auto"``.
    fit_intercept : bool
        Add an intercept, which is outside the set.
    past : "all", "recent" or "reservoir"
        Which rows count: all (the algorithm of the paper; memory grows), the newest ``max_past``,
        or a uniform random sample of so many. The gap then certifies the mean over the rows kept.
    max_past : int, optional
        How many rows to keep, unless all.
    coef_shape : (int, int), optional
        For matrix-shaped features: rows are matrices of this shape, flattened in C order.
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
        Where what is kept of the past lives: in this process's memory or on a GPU (which needs
        ``onlinefw[gpu]``); "auto" takes a GPU if there is one. With ``workers`` the device is
        theirs, one GPU each.
    workers : int, optional
        Spread the data over so many workers of a Ray cluster (:mod:`onlinefw.distributed`): a
        running one, or a local one that is started; by default they are in this process.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The coefficients.
    intercept_ : float
        The intercept.
    gap_ : float
        The certificate of the current coefficients, computed when asked for: for a convex loss,
        the mean loss over the rows kept is at most this far above its minimum over the set.
    n_rounds_ : int
        Rounds played.
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

    def _check_y(self, y: Any, first: bool, classes: Any = None) -> Array:
        y = np.asarray(y)
        if y.dtype.kind in "OUS":
            try:
                y = y.astype(float)
            except (TypeError, ValueError) as error:
                raise ValueError(f"y must be numeric: {error}") from None
        y = y.astype(float, copy=False)
        self._loss().check_targets(y)
        return y

    @property
    def coef_(self) -> Array:
        """The coefficients."""
        return self._thetas[0]

    @property
    def intercept_(self) -> float:
        """The intercept."""
        return float(self._intercepts[0])

    def predict(self, X: Any) -> Array:
        """Return <coef, x> + intercept, or the mean of the family that the loss belongs to."""
        z = self._scores(X)[:, 0]
        # A family's loss is G(z) - y z, and its mean is G'(z) = the derivative at y = 0.
        families = (Bernoulli, Poisson, Exponential)
        loss = self._loss()
        return loss.derivative(z, 0.0).astype(z.dtype) if isinstance(loss, families) else z
