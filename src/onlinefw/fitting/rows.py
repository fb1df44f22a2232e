"""A session that learns a sparse linear model from rows of features."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from sklearn.base import clone

from .._typing import Array
from ..estimators import FrankWolfeClassifier, FrankWolfeRegressor, RadiusSearch
from ..estimators.linear_model import MOST_SUMS
from ..losses import Loss
from ..objectives.places import device_here
from ..readers import DataError
from .scaling import Scaling
from .scores import ErrorRate, SquaredError
from .session import Session

__all__ = ["RowsSession"]

#: The first rows settle the scale of the columns, the classes and (if asked to) the radius.
FIRST_ROWS = 5000
#: Rounds of the search for a radius: more take long and tell no more.
SEARCH_ROUNDS = 20
#: More labels than this, and most of them different: they are numbers, it seems.
MANY_CLASSES = 20
#: Rows kept of a longer stream, drawn at random.
MAX_PAST = 200_000


class RowsSession(Session):
    """Regression or classification from rows.

    Parameters
    ----------
    kind : {"regression", "classification"}
        What is learned.
    radius : float or "auto"
        Of the ball; "auto" compares radii by predicting the first rows before learning them.
    scale : bool
        Put the columns of dense rows on one scale first, that of the first rows.
    classes : array-like, optional
        All labels that may come; by default those of the first rows.
    max_past : int
        Rows kept, at most (a random sample of all); what is learned in constant memory anyway
        (the square loss with few features) keeps all.
    **settings
        Of :class:`~onlinefw.FrankWolfeRegressor` or :class:`~onlinefw.FrankWolfeClassifier`, or of
        :class:`~onlinefw.fitting.session.Session`.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace as Chunk
    >>> from onlinefw.fitting.rows import RowsSession
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 4))
    >>> session = RowsSession("regression", batch_size=50)
    >>> session.read(Chunk(X=X, y=3.0 * X[:, 2] + 1.0))
    >>> while session.n_waiting:
    ...     session.play()
    >>> session.score.value < 0.1
    True
    """

    least_batch = 256  # a round re-optimises all coefficients: fewer and better ones

    def __init__(
        self,
        kind: str,
        *,
        radius: float | str = "auto",
        scale: bool = True,
        classes: Any = None,
        max_past: int = MAX_PAST,
        batch_size: int | str = "auto",
        test_share: float = 0.0,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(batch_size=batch_size, test_share=test_share, seed=seed)
        self.kind, self.radius, self.scale = kind, radius, scale
        self.classes: Array | None = None if classes is None else np.unique(classes)
        self._classes_were_given = classes is not None
        self._file: str | None = None
        self.max_past = max_past
        estimator = FrankWolfeRegressor if kind == "regression" else FrankWolfeClassifier
        if kind == "classification":
            settings.setdefault("loss", "logistic")
        self.model = estimator(random_state=seed, path_size=0, **settings)
        self.score = self.new_score()
        self.scaling: Scaling | None = None

    def new_score(self) -> SquaredError | ErrorRate:
        """Return a score that has counted nothing."""
        return SquaredError() if self.kind == "regression" else ErrorRate()

    @property
    def loss(self) -> Loss | None:
        """The loss of numbers; labels become what their loss needs."""
        return super().loss if self.kind == "regression" else None

    def read(self, chunk: Any) -> None:
        """Take rows in."""
        y = _plain(chunk.y)
        self._file = getattr(chunk, "file", None)
        if self.kind == "classification" and self.classes is not None:
            self._check_labels(chunk, y, self.classes)
        self._put(chunk.X, y)

    def _check_labels(self, chunk: Any, y: Array, known: Array) -> None:
        """Refuse a label that the model was not made for, before anything changes."""
        new = np.flatnonzero(~np.isin(y, known))
        if new.size:
            rows = getattr(chunk, "rows", None)
            where = "those of the first rows"
            remedy = "name all labels with --classes, or mix the rows"
            if self._classes_were_given:
                where, remedy = "--classes", "add it there, or correct the row"
            raise DataError(
                f"the label {y[new[0]].item()!r} is not one of {where}, "
                f"{', '.join(repr(label) for label in known.tolist())}",
                file=self._file,
                row=None if rows is None else int(rows[new[0]]),
                remedy=remedy,
            )

    @property
    def ready(self) -> bool:
        """Whether there are rows for a round, and enough for the first one."""
        if self.scaling is not None:
            return super().ready
        return len(self._waiting) >= max(FIRST_ROWS, self.batch_length) and self._has_classes

    @property
    def _has_classes(self) -> bool:
        if self.kind == "regression" or self.classes is not None:
            return True
        return len(np.unique(self._waiting.look()[1])) > 1

    def play(self) -> None:
        """Play a round; before the first, settle what the first rows decide."""
        if self.scaling is None:
            self._start(*self._waiting.look())
        super().play()

    def _start(self, X: Any, y: Array) -> None:
        scaling = Scaling.of(X) if self.scale else Scaling()
        if self.kind == "classification" and self.classes is None:
            self.classes = np.unique(y)
            if len(self.classes) < 2:
                raise DataError(
                    f"every row has the label {self.classes[0].item()!r}: there is nothing to "
                    "tell apart",
                    file=self._file,
                    remedy="check --target, and that the rows are of at least two classes",
                )
            if len(self.classes) > max(MANY_CLASSES, len(y) // 2):
                raise DataError(
                    f"{len(self.classes):,} of the first {len(y):,} rows have labels of their own",
                    file=self._file,
                    remedy="numbers are for ofw fit regression; labels are named with --classes",
                )
        if self.expected_rows is None or self.expected_rows > self.max_past:
            self.model.set_params(past=self._bounded(X.shape[1]), max_past=self._kept(X.shape[1]))
        if self.radius == "auto":
            size = max(self.batch_length, ceil(X.shape[0] / SEARCH_ROUNDS))
            # A few rows, in this process wherever the rest will be.
            here = device_here(self.model.device)
            few = clone(self.model).set_params(batch_size=size, epochs=1, workers=None, device=here)
            search = RadiusSearch(few)
            self.model.set_params(radius=search.fit(scaling.apply(X), y).best_radius_)
        else:
            self.model.set_params(radius=float(self.radius))
        self.scaling = scaling

    def _bounded(self, n_features: int) -> str:
        return "all" if self._is_constant(n_features) else "reservoir"

    def _kept(self, n_features: int) -> int | None:
        return None if self._is_constant(n_features) else self.max_past

    def _is_constant(self, n_features: int) -> bool:
        """Whether sums of the rows suffice, in constant memory."""
        return self.model.loss == "square" and n_features <= MOST_SUMS

    def _learn(self, X: Any, y: Array) -> None:
        assert self.scaling is not None
        X = self.scaling.apply(X)
        if self.rounds:
            self.score.add(y, self.model.predict(X))
        if self.kind == "classification":
            self.model.partial_fit(X, y, classes=self.classes)
        else:
            self.model.partial_fit(X, y)

    def _refine(self) -> None:
        self.model._play(None, None, None, None)

    def predictor(self) -> Any:
        """Return a copy of the model for rows that are not scaled, which predicts only."""
        from ..files.linear import with_coefficients

        assert self.scaling is not None
        pairs = [
            self.scaling.undo(coef, intercept)
            for coef, intercept in zip(self.model._thetas, self.model._intercepts, strict=True)
        ]
        return with_coefficients(
            self.model, np.array([coef for coef, _ in pairs]), np.array([b for _, b in pairs])
        )

    def size(self) -> dict[str, int]:
        """Return how many coefficients are not zero, of all classes, and how many there are."""
        coef = self.model._thetas
        return {"nonzeros": int(np.count_nonzero(coef)), "coefficients": coef.size}

    def size_so_far(self) -> tuple[str, int]:
        """Return the number of coefficients that are not zero."""
        return "nonzeros", self.size()["nonzeros"]

    @property
    def columns_are_scaled(self) -> bool:
        """Whether the radius is one for other units than those of the rows."""
        return self.scaling is not None and self.scaling.center is not None

    def test_score(self) -> SquaredError | ErrorRate:
        """Score the model on the rows that were held out."""
        score = self.new_score()
        if self.n_test:
            X, y = self._test.look()
            self._count(X, y, score)
        return score

    def score_chunk(self, chunk: Any, score: Any) -> None:
        """Count how well the model predicts rows."""
        self._count(chunk.X, _plain(chunk.y), score)

    def _count(self, X: Any, y: Array, score: Any) -> None:
        assert self.scaling is not None
        score.add(y, self.model.predict(self.scaling.apply(X)))


def _plain(y: Array) -> Array:
    """Return labels that are text as an array of text, not of objects."""
    return y.astype(str) if y.dtype == object else y
