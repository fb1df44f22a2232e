"""Streaming classification as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from .._typing import Array, Shape
from ..algorithms import NewtonSteps
from ..losses import Bernoulli, Logistic, Loss, Sigmoid, Square
from ..sets import ConvexSet
from .linear_model import LinearModel

__all__ = ["FrankWolfeClassifier"]


def _has_probabilities(model: FrankWolfeClassifier) -> bool:
    loss = model.loss_
    if isinstance(loss, (Logistic, Bernoulli)):
        return True
    raise AttributeError(f'{loss} gives no probabilities; use loss="logistic" for predict_proba')


class FrankWolfeClassifier(ClassifierMixin, LinearModel):
    """Sparse or low-rank linear classification from a stream of rows, by online Frank-Wolfe.

    The default loss is bounded, so that wrong labels do little harm. More than two classes are
    learned one against the rest, in one pass over the rows for all of them.

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
        "sigmoid" (robust against wrong labels, not convex), "logistic" (convex, with
        probabilities), "bernoulli" (the same), "square", or an object of :mod:`onlinefw.losses`.
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
    classes_ : ndarray
        The class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
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
        What is kept of the past (a list of one per class, if there are more than two).
    history_ : dict of arrays
        t, loss (paid before learning), gap, step_size, kind, seconds, ...: ready for pandas.
    path_ : dict
        t, seconds and coef (sparse, a row for each t): coefficients over time.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> rng = np.random.default_rng(0)
    >>> model = ofw.FrankWolfeClassifier(radius=2.0)
    >>> for _ in range(50):  # rows keep arriving, a quarter of them with the wrong label
    ...     X = rng.standard_normal((20, 100))
    ...     label = np.where((X[:, 0] > X[:, 1]) ^ (rng.random(20) < 0.25), "yes", "no")
    ...     model = model.partial_fit(X, label, classes=["no", "yes"])
    >>> X = rng.standard_normal((1000, 100))
    >>> model.score(X, np.where(X[:, 0] > X[:, 1], "yes", "no")) > 0.9
    True
    """

    classes_: Array
    _losses = {  # noqa: RUF012 (never changed)
        "sigmoid": Sigmoid,
        "logistic": Logistic,
        "bernoulli": Bernoulli,
        "square": Square,
    }

    def __init__(
        self,
        constraint: str | ConvexSet = "l1",
        radius: float | str = "auto",
        *,
        loss: str | Loss = "sigmoid",
        away_steps: bool = False,
        step: Any = None,
        batch_size: int = 256,
        epochs: int = 1,
        inner_steps: int | str = "auto",
        corrective: str | NewtonSteps | None = "auto",
        fit_intercept: bool = True,
        scale: bool | str = "auto",
        past: str = "all",
        max_past: int | None = None,
        coef_shape: Shape | None = None,
        expected_size: int | None = None,
        shuffle: bool = False,
        random_state: Any = None,
        history_size: int = 10_000,
        path_size: int = 100,
        verbose: int = 0,
        device: str = "cpu",
        workers: int | None = None,
    ) -> None:
        super().__init__(
            constraint,
            radius,
            loss=loss,
            away_steps=away_steps,
            step=step,
            batch_size=batch_size,
            epochs=epochs,
            inner_steps=inner_steps,
            corrective=corrective,
            fit_intercept=fit_intercept,
            scale=scale,
            past=past,
            max_past=max_past,
            coef_shape=coef_shape,
            expected_size=expected_size,
            shuffle=shuffle,
            random_state=random_state,
            history_size=history_size,
            path_size=path_size,
            verbose=verbose,
            device=device,
            workers=workers,
        )

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Play one round with these rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            The rows.
        y : array-like of shape (n,)
            Their labels.
        classes : array-like
            All labels that will ever come; needed in the first call only.
        sample_weight : array-like of shape (n,), optional
            How much each row counts.
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def _check_y(self, y: Any, first: bool, classes: Any = None) -> Array:
        check_classification_targets(y)
        streamed = classes is not None or not first
        if first:
            known = np.unique(y if classes is None else np.asarray(classes))
        else:
            known = np.asarray(self.classes_)
            if classes is not None and not np.array_equal(known, np.unique(classes)):
                raise ValueError(
                    f"classes={list(classes)!r} differ from the first call's, {list(known)!r}"
                )
        unknown = np.setdiff1d(y, known)
        if unknown.size:
            raise ValueError(
                f"y has the label {unknown[0]!r}, which is not one of the classes {list(known)!r}; "
                "name all of them in the first partial_fit"
            )
        if known.size < 2:
            raise ValueError(
                f"a classifier needs at least 2 classes, got one class, {known[0]!r}"
                + ("" if streamed else "; stream with partial_fit(X, y, classes=[...])")
            )
        self.classes_ = known
        return np.searchsorted(known, y)

    def _plain_y(self, y: Any, n: int) -> Array | None:
        if type(y) is not np.ndarray or y.shape != (n,) or y.dtype != self.classes_.dtype:
            return None
        if y.dtype.kind == "O":
            return None
        indices = np.searchsorted(self.classes_, y)
        indices[indices == self.classes_.size] = 0
        return indices if (self.classes_[indices] == y).all() else None

    def _n_models(self) -> int:
        return 1 if self.classes_.size == 2 else self.classes_.size

    def _targets(self, y: Array) -> list[Array]:
        low = 0.0 if isinstance(self._run.loss, Bernoulli) else -1.0
        if self.classes_.size == 2:
            return [np.where(y == 1, 1.0, low)]
        return [np.where(y == k, 1.0, low) for k in range(self.classes_.size)]

    def _labels(self, y: Array) -> Array:
        return self.classes_[y]

    @property
    def coef_(self) -> Array:
        """The coefficients, a row for each class (for the second, if there are two)."""
        return self._fitted("coef_").coefficients[0].copy()

    @property
    def intercept_(self) -> Array:
        """The intercepts."""
        return self._fitted("intercept_").coefficients[1].copy()

    def decision_function(self, X: Any) -> Array:
        """Return <coef, x> + intercept: of shape (n,) for two classes, else (n, n_classes)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Return the most likely label of each row."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0.0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return probabilities; of more than two classes, one against the rest, normalised."""
        p = expit(self._scores(X))
        if p.shape[1] == 1:
            return np.hstack((1.0 - p, p))
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1])

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
