"""What is done with cells that are missing or text, so that features are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .._typing import Array
from .errors import DataError
from .missing import RunningMeans
from .text_columns import TextColumn

__all__ = ["Missing", "Text", "Treatment"]

Missing = Literal["refuse", "mean", "drop"]
Text = Literal["one-hot", "hash"]


class Treatment:
    """How rows of features are made from columns of the data.

    Rows to learn from decide it as they come; rows to predict or to test with are treated as those
    were (``fixed``).
    """

    def __init__(self, missing: Missing = "refuse", text: Text | None = None) -> None:
        if missing not in ("refuse", "mean", "drop"):
            raise ValueError(f"missing must be 'refuse', 'mean' or 'drop', not {missing!r}")
        if text not in (None, "one-hot", "hash"):
            raise ValueError(f"text must be 'one-hot', 'hash' or None, not {text!r}")
        self.missing, self.text = missing, text
        #: The columns as the data call them; None before any were seen.
        self.columns: list[str] | None = None
        self.fixed = False
        self._texts: dict[str, TextColumn] | None = None if text else {}
        self._means = RunningMeans()

    @property
    def looks_for_text(self) -> bool:
        """Whether it is still to be found out which columns are text."""
        return self._texts is None

    def found(self, texts: dict[str, list[str]]) -> None:
        """Take these columns, with their categories, for text."""
        hashed = self.text == "hash"
        self._texts = {k: TextColumn(k, None if hashed else v) for k, v in texts.items()}

    def is_text(self, column: str) -> bool:
        """Whether a column is text, by the name under which it was learned."""
        return column in (self._texts or {})

    @property
    def names(self) -> list[str] | None:
        """What the features are called: those of a text column have its name and their own."""
        if self.columns is None:
            return None
        texts = self._texts or {}
        parts = [texts[name].names if name in texts else [name] for name in self.columns]
        return [name for part in parts for name in part]

    def features(self, numbers: Sequence[Array], texts: Sequence[Array], dtype: Any) -> Array:
        """Put columns of numbers and of text together, in the order of ``columns``."""
        assert self.columns is not None
        known = self._texts or {}
        left, texts_left = iter(numbers), iter(texts)
        parts = [
            known[name].numbers(next(texts_left).tolist()) if name in known else next(left)
            for name in self.columns
        ]
        X = np.empty((len(parts[0]), len(self.names or [])), dtype=dtype)
        at = 0
        for part in parts:
            width = 1 if part.ndim == 1 else part.shape[1]
            X[:, at : at + width] = part.reshape(-1, width)
            at += width
        return X

    def fill(self, X: Any) -> None:
        """Fill what is missing in rows, in place and in the order in which they are learned."""
        if self.missing == "mean" and isinstance(X, np.ndarray):
            self._means.fill(X, fixed=self.fixed)

    @property
    def does_anything(self) -> bool:
        """Whether cells may be other than numbers."""
        return self.missing != "refuse" or self.text is not None

    def state_dict(self) -> dict[str, Any] | None:
        """Return all of it as JSON values; None if every cell must be a number."""
        if not self.does_anything:
            return None
        texts = None if self._texts is None else {k: v.categories for k, v in self._texts.items()}
        return {
            "missing": self.missing,
            "text": self.text,
            "columns": self.columns,
            "texts": texts,
            **self._means.state_dict(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], *, fixed: bool = False) -> Treatment:
        """Go on from a state, or treat other rows as those were that it comes from."""
        try:
            self = cls(state["missing"], state["text"])
            self.columns = None if state["columns"] is None else [str(c) for c in state["columns"]]
            if state["texts"] is not None:
                self.found({str(k): [str(c) for c in v or []] for k, v in state["texts"].items()})
            self._means = RunningMeans(state["sums"], state["counts"])
            width = len(self.names or [])
            known = (self._means.sums, self._means.counts)
            if any(values is not None and values.shape != (width,) for values in known):
                raise ValueError("means of other columns")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(
                "how missing values and text were treated cannot be read from the model or "
                f"checkpoint ({error})",
                remedy="learn it anew",
            ) from None
        self.fixed = fixed
        return self
