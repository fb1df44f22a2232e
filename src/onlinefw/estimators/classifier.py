"""Streaming classification as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from .._typing import Array
from ..losses import Bernoulli, Logistic, Sigmoid, Square
from .linear_model import LinearModel
from .shared_docs import documented, with_defaults

__all__ = ["FrankWolfeClassifier"]


@documented
class FrankWolfeClassifier(ClassifierMixin, LinearModel):
    """Sparse or low-rank linear classification from a stream of rows, by online Frank-Wolfe.

    The default loss is bounded, so that wrong labels do little harm. More than two classes are
    learned one against the rest, in one pass over the rows for all of them.

    Parameters
    ----------
    {the_set}
    loss : str or Loss
        "sigmoid" (robust against wrong labels, not convex), "logistic" (convex, with
        probabilities), "bernoulli" (the same), "square", or an object of :mod:`onlinefw.losses`.
    {how_to_learn}

    Attributes
    ----------
    classes_ : ndarray
        The class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    {certificate}
    objective_ : Objective
        What is kept of the past (a list of one per class, if there are more than two).
    {records}

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

    __init__ = with_defaults(LinearModel.__init__, loss="sigmoid")

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        ids: Any = None,
    ) -> Self:
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
        ids : array-like of shape (n,), optional
            Whose each row is, text or whole numbers, so that ``forget`` can remove it; only where
            rows are kept.
        """
        return self._partial_fit(X, y, sample_weight, classes, ids)

    def learn(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        batch_size: int = 1,
        classes: Any = None,
        ids: Any = None,
    ) -> Array:
        """Play rows in the order given, each predicted before it is learned.

        Parameters
        ----------
        X, y, sample_weight, classes, ids
            As for ``partial_fit``; without ``classes``, those in the first call's y.
        batch_size : int
            How many are learned at a time.

        Returns
        -------
        ndarray
            The label that was predicted for each before it was learned; before any data that is the
            first class.
        """
        return self._learn_in_order(X, y, sample_weight, batch_size, classes, ids)

    def _guess(self, n: int) -> Array:
        return np.full(n, self.classes_[0])

    def _check_y(self, y: Any, first: bool, classes: Any = None) -> Array:
        check_classification_targets(y)
        streamed = classes is not None or not first
        if first:
            known = np.unique(y if classes is None else np.asarray(classes))
        else:
            known = np.asarray(self.classes_)
            if classes is not None and not np.array_equal(known, np.unique(classes)):
                raise ValueError(
                    f"classes={np.asarray(classes).tolist()} differ from the first call's, "
                    f"{known.tolist()}"
                )
        unknown = np.setdiff1d(y, known)
        if unknown.size:
            raise ValueError(
                f"y has the label {unknown.tolist()[0]!r}, which is not one of the classes "
                f"{known.tolist()}; "
                "name all of them in the first partial_fit"
            )
        if known.size < 2:
            raise ValueError(
                f"a classifier needs at least 2 classes, got one class, {known.tolist()[0]!r}"
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
        return self._answers(self._scores(X))

    def _answers(self, scores: Array) -> Array:
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0.0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    @property
    def predict_proba(self) -> Callable[[Any], Array]:
        """Return probabilities; of more than two classes, one against the rest, normalised.

        Only the logistic and bernoulli losses have them.
        """
        self._check_probabilities("predict_proba")
        return self._probabilities

    @property
    def predict_log_proba(self) -> Callable[[Any], Array]:
        """Return the logarithms of the probabilities."""
        self._check_probabilities("predict_log_proba")
        return self._log_probabilities

    def _check_probabilities(self, wanted: str) -> None:
        loss = self.loss_
        if not isinstance(loss, (Logistic, Bernoulli)):
            # An AttributeError, so that hasattr says no: scikit-learn asks in this way.
            raise AttributeError(
                f'{loss} gives no probabilities: {wanted} needs loss="logistic" (or "bernoulli")'
            )

    def _probabilities(self, X: Any) -> Array:
        p = expit(self._scores(X))
        if p.shape[1] == 1:
            return np.hstack((1.0 - p, p))
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1])

    def _log_probabilities(self, X: Any) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._probabilities(X))
