"""LIBSVM text: one block to one batch of sparse rows."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from .._typing import Array
from .._validation import MOST
from .batches import Batch, numbered
from .cells import EXACT, id_cell, ids_from_cells, number_cell, remedy_for, usable
from .errors import BadRow, shown
from .plans import RowPlan

__all__ = ["LibsvmParser"]


#: Outside comments; Python takes 1_0 for 10, and so does scikit-learn.
_UNDERSCORE = re.compile(rb"^[^#\n]*_", re.MULTILINE)


class LibsvmParser:
    """Blocks of ``label index:value ...`` lines to batches, as a plan for rows wants them."""

    def __init__(self, plan: RowPlan) -> None:
        self.plan = plan
        #: Memory follows the largest index, so one wrong index is a bad row.
        self._most = MOST if plan.n_features is None else plan.n_features

    def at_once(self, data: bytes, start: dict[str, int]) -> Batch | None:
        """The batch of one block, or None if anything is wrong in it."""
        if b"_" in data and _UNDERSCORE.search(data):
            return None
        try:
            X, y = load_svmlight_file(
                io.BytesIO(data),
                n_features=self.plan.n_features,
                dtype=np.float64,
                zero_based=self.plan.zero_based,
            )
        except (ValueError, OverflowError):
            return None
        if X.shape[1] > self._most or not (usable(X.data) and usable(y, self.plan.loss)):
            return None
        if self.plan.labels and len(y) and np.abs(y).max() >= EXACT:
            return None
        return Batch(self._fields(X, y), numbered(start, len(y)), [], len(y), start)

    def _fields(self, X: Any, y: Array) -> dict[str, Any]:
        X = X.astype(self.plan.dtype, copy=False)
        if not self.plan.needs_target:
            return {"X": X, "y": None}
        if self.plan.labels:
            y = ids_from_cells([id_cell(label)[0] for label in y.tolist()])
        return {"X": X, "y": y}

    def one_by_one(self, data: bytes, start: dict[str, int]) -> Batch:
        """The batch of one block, each line checked by itself."""
        rows: list[int] = []
        targets: list[float] = []
        indices: list[int] = []
        values: list[float] = []
        ends = [0]
        bad: list[BadRow] = []
        row = start["row"]
        for line, raw in enumerate(data.split(b"\n"), start["line"] + 1):
            tokens = raw.partition(b"#")[0].decode("utf-8", "replace").split()
            if not tokens:
                continue
            row += 1
            try:
                target, pairs = self._row(tokens)
            except _Malformed as error:
                bad.append(BadRow(error.reason, str(error), row, line, remedy=error.remedy))
                continue
            rows.append(row)
            targets.append(target)
            indices += [index for index, _ in pairs]
            values += [value for _, value in pairs]
            ends.append(len(indices))
        width = self.plan.n_features
        if width is None:
            width = max(indices, default=-1) + 1
        X = sp.csr_matrix(
            (np.array(values), np.array(indices, dtype=np.int32), ends), shape=(len(rows), width)
        )
        numbers = np.array(targets, dtype=np.float64)
        row_numbers = np.array(rows, dtype=np.int64)
        return Batch(self._fields(X, numbers), row_numbers, bad, len(rows) + len(bad), start)

    def _row(self, tokens: list[str]) -> tuple[float, list[tuple[int, float]]]:
        target, reason, problem = number_cell(tokens[0], self.plan.loss)
        if reason:
            raise _Malformed(reason, f"the label: {problem}", remedy_for(reason))
        if self.plan.labels and abs(target) >= EXACT:
            raise _Malformed(
                "not exact",
                f"the label {shown(tokens[0])} has more digits than LIBSVM's numbers keep",
                "number the classes from 0",
            )
        pairs: list[tuple[int, float]] = []
        last = -1
        for token in tokens[1:]:
            name, colon, cell = token.partition(":")
            if name == "qid":
                continue
            if not colon or not (name.isascii() and name.isdigit()):
                raise _Malformed("malformed", f"{shown(token)} is not of the form index:value")
            # More digits than any index has: Python reads no more than 4300.
            index = int(name[:20]) - (not self.plan.zero_based)
            if index < 0:
                raise _Malformed(
                    "index 0", f"{shown(token)} has index 0", "count from 1, or say --zero-based"
                )
            if index <= last:
                raise _Malformed(
                    "out of order",
                    f"index {name} does not come after the one before it",
                    "sort the indices of each row",
                )
            value, reason, problem = number_cell(cell)
            if reason:
                raise _Malformed(reason, f"{shown(token)}: {problem}", remedy_for(reason))
            last = index
            pairs.append((index, value))
        if last >= self._most:
            raise _Malformed(
                "index too large",
                f"index {last + (not self.plan.zero_based)} is beyond the {self._most} features",
                "correct it, or say how many there are (--n-features)",
            )
        return target, pairs


class _Malformed(Exception):
    def __init__(self, reason: str, problem: str, remedy: str = "correct it") -> None:
        super().__init__(problem)
        self.reason, self.remedy = reason, remedy
