"""A session that learns a sparse linear model from rows of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, State
from ..estimators import FrankWolfeClassifier, FrankWolfeRegressor
from ..estimators.base import FIRST_ROWS
from ..losses import Loss
from ..readers import DataError
from .column_counts import ColumnCounts
from .scores import ErrorRate, SquaredError
from .session import Session

__all__ = ["RowsSession"]

#: More classes than this, and than half the rows, look like numbers.
MANY_CLASSES = 20


class RowsSession(Session):
    """Regression or classification (the two ``kind``) from rows.

    ``classes`` are all labels that may come, by default those of the first rows. Of a stream that
    is long, or whose end is not known, a random sample is kept (``past="auto"``).

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
    >>> session.score.value < 0.2
    True
    """

    def __init__(self, kind: str, *, classes: Any = None, **settings: Any) -> None:
        self.kind = kind
        super().__init__(**settings)
        self.classes: Array | None = None if classes is None else np.unique(classes)
        self._classes_were_given = classes is not None
        self._file: str | None = None
        self.counts = ColumnCounts()

    def _new_model(self, settings: dict[str, Any]) -> FrankWolfeRegressor | FrankWolfeClassifier:
        estimator = FrankWolfeRegressor if self.kind == "regression" else FrankWolfeClassifier
        own: dict[str, Any] = {"random_state": self.seed, "path_size": 0, "past": "auto"}
        return estimator(**{**own, **settings})

    def new_score(self) -> SquaredError | ErrorRate:
        """Return a score that has counted nothing."""
        return SquaredError() if self.kind == "regression" else ErrorRate()

    @property
    def loss(self) -> Loss | None:
        """The loss of a regression; None for labels, which the model encodes for its loss."""
        return super().loss if self.kind == "regression" else None

    def read(self, chunk: Any) -> None:
        """Take rows in."""
        y = self._known(chunk.y)
        self._file = getattr(chunk, "file", None)
        if self.kind == "classification" and self.classes is not None:
            self._check_labels(chunk, y, self.classes)
        self._put(chunk.X, y)

    def _known(self, y: Array) -> Array:
        """Return labels as those of the model: 1 and "1" are the same."""
        if y.dtype == object:
            y = y.astype(str)  # an array of text, not of objects
        if self.classes is None or y.dtype.kind == self.classes.dtype.kind:
            return y
        if self.classes.dtype.kind == "U":
            return y.astype(str)
        by_text = {str(label): label for label in self.classes.tolist()}
        texts = y.tolist()
        if not by_text.keys() >= set(texts):
            return y  # some are new
        return np.array([by_text[text] for text in texts], dtype=self.classes.dtype)

    def _check_labels(self, chunk: Any, y: Array, known: Array) -> None:
        """Refuse a label that the model was not made for, before anything changes."""
        among = known.astype(str) if y.dtype.kind == "U" else known
        new = np.flatnonzero(~np.isin(y, among))
        if new.size:
            rows = getattr(chunk, "rows", None)
            where = "those of the first rows"
            remedy = "correct the row, or begin anew and name all labels with --classes"
            if self._classes_were_given:
                where, remedy = "--classes", "correct the row, or begin anew and add it there"
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
        if self.rounds:
            return super().ready
        return len(self._waiting) >= max(FIRST_ROWS, self.batch_length) and self._has_classes

    @property
    def _has_classes(self) -> bool:
        if self.kind == "regression" or self.classes is not None:
            return True
        return len(np.unique(self._waiting.look()[1])) > 1

    def _prepare(self, X: Any, y: Array) -> None:
        if self.kind == "regression":
            self.model.prepare(X, y)
            return
        if self.classes is None:
            self.classes = self._found_classes(y)
        self.model.prepare(X, y, classes=self.classes)

    def _found_classes(self, y: Array) -> Array:
        classes = np.unique(y)
        if len(classes) < 2:
            raise DataError(
                f"every row has the label {classes[0].item()!r}: there is nothing to tell apart",
                file=self._file,
                remedy="check --target, and that the rows are of at least two classes",
            )
        if len(classes) > max(MANY_CLASSES, len(y) // 2):
            raise DataError(
                f"{len(classes):,} of the first {len(y):,} rows have labels of their own",
                file=self._file,
                remedy="numbers are for ofw fit regression; labels are named with --classes",
            )
        return classes

    def _learn(self, X: Any, y: Array) -> Array:
        predicted = super()._learn(X, y)
        self.counts.add(X)
        return predicted

    def size(self) -> dict[str, int]:
        """Return how many coefficients are not zero, of all classes, and how many there are."""
        coef = self.model.coef_
        return {"nonzeros": int(np.count_nonzero(coef)), "coefficients": coef.size}

    def size_so_far(self) -> tuple[str, int]:
        """Return the number of coefficients that are not zero."""
        return "nonzeros", self.size()["nonzeros"]

    def score_chunk(self, chunk: Any, score: Any) -> None:
        """Count how well the model predicts rows."""
        y, predicted = self._known(chunk.y), self._predict(chunk.X)
        score.add(y, predicted.astype(str) if y.dtype.kind == "U" else predicted)

    def _settings(self) -> State:
        return {**super()._settings(), "kind": self.kind}

    def state_dict(self) -> State:
        """Return everything: the model itself, and plain values and arrays beside it."""
        labels = {"classes": self.classes, "classes_were_given": self._classes_were_given}
        return {**super().state_dict(), **labels, "seen": self.counts.seen}

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        super().load_state(state)
        self.classes = state["classes"]
        self._classes_were_given = bool(state["classes_were_given"])
        self.counts = ColumnCounts(state.get("seen", ()))  # older checkpoints did not count
