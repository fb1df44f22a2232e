"""Rows in one memory, with the predictions of several models: what ``host/`` and ``cuda/`` share.

The places differ in three parts only: how rows are stored and multiplied, how arrays grow, and how
a loss is summed over rows. The class of each place names its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from .._devices import namespace, to_host
from .._typing import Array, State
from ..atoms import Atom, SignedCoordinate
from ..iterates import DenseIterate
from ..linalg import row_products
from ..losses import Loss
from .pending import PendingMove

__all__ = ["StoredRows", "feature_shape"]


class Held(NamedTuple):
    """All that grows with every batch; a new one replaces the old in one assignment."""

    rows: Any
    columns: Any  # weights, then predictions and targets of each model


class StoredRows(ABC):
    """:class:`~onlinefw.past.protocols.RowsPast` in the memory of one process or GPU.

    All but the sums over rows, which a subclass adds.
    """

    opens_handles = False
    dense: ClassVar[Any]
    sparse: ClassVar[Any]
    columns: ClassVar[Any]
    row_loss: ClassVar[Any]
    row_line: ClassVar[Any]

    def __init__(self) -> None:
        self.iterates: list[DenseIterate | None] = []
        self._losses: list[Any] = []
        self._waits: list[bool] = []
        self._held = Held(None, self.columns.empty((float,)))
        self._pending: list[PendingMove | None] = []
        # The theta whose predictions are held (with a move that waits); None while they change.
        self._theta: list[Array | None] = []
        self._lines: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._held.columns)

    def close(self) -> None:  # noqa: B027 (an empty method on purpose)
        """Nothing is held outside this process."""

    def add_model(self, loss: Loss, iterate: DenseIterate | None, waits: bool) -> int:
        self.iterates.append(iterate)
        self._losses.append(self.row_loss(loss))
        self._waits.append(waits)
        self._pending.append(None)
        self._theta.append(None)
        self._held = Held(None, self.columns.empty((float,) * (1 + 2 * len(self._losses))))
        return len(self._losses) - 1

    def keep_models(self, models: list[int]) -> None:
        rows, columns = self._held
        chosen = [0]
        for m in models:
            self._weighed(m)
            chosen += 2 * m + 1, 2 * m + 2
        self.iterates = [self.iterates[m] for m in models]
        self._losses = [self._losses[m] for m in models]
        self._waits = [self._waits[m] for m in models]
        self._pending, self._theta = [None] * len(models), [self._theta[m] for m in models]
        self._changed()
        self._held = Held(rows, columns.chosen(chosen))

    def models(self) -> list[tuple[Loss, DenseIterate | None, bool]]:
        losses = [row_loss.loss for row_loss in self._losses]
        return list(zip(losses, self.iterates, self._waits, strict=True))

    # Data -----------------------------------------------------------------------------------------

    def products(self, X: Any, thetas: Array) -> Array:
        if isinstance(X, np.ndarray) or sparse.issparse(X):
            return row_products(X, thetas)
        return to_host(X.astype(float) @ namespace(X).asarray(thetas))

    def append(self, X: Any, Z: Array, Y: Array, w: Array) -> None:
        rows, columns = self._held
        if rows is None:
            rows = (self.sparse if sparse.issparse(X) else self.dense)(X.shape[1:])
            for m in range(len(self._losses)):
                self.agree(m)
        values = [w]
        for m in range(len(self._losses)):
            values += Z[:, m], Y[:, m]
        self._changed()
        self._held = Held(rows.extended(X), columns.extended(*values))

    def weigh(self, rows: Array, weight: float | Array) -> None:
        self._changed()
        self._held.columns.arrays[0][rows] = weight

    def rescale(self, factor: float) -> None:
        self._changed()
        w = self._held.columns.arrays[0]
        w *= factor

    def keep(self, mask: Array) -> None:
        for m in range(len(self._pending)):
            self._weighed(m)
        rows, columns = self._held
        self._changed()
        self._held = Held(rows.kept(mask), columns.kept(mask))

    def arrange(self) -> None:
        rows = self._held.rows
        if rows is not None and (merged := rows.merged()) is not rows:
            self._held = self._held._replace(rows=merged)

    # Moving ---------------------------------------------------------------------------------------

    def _weighed(self, m: int) -> tuple[Any, Any, Any]:
        """Return z, y and w of all rows, after carrying out a move that waits."""
        arrays, iterate = self._held.columns.arrays, self.iterates[m]
        z = arrays[2 * m + 1]
        if iterate is not None and self._theta[m] is not iterate.theta:
            self.refresh(m)  # a move was interrupted between theta and its predictions
        elif self._pending[m] is not None:
            self._carry_out(m)
            self.agree(m)
        return z, arrays[2 * m + 2], arrays[0]

    def _for_loss(self, m: int) -> tuple[Any, Any, Any]:
        """Return the same where the loss is evaluated."""
        return self._weighed(m)

    def _carry_out(self, m: int) -> None:
        """Carry out the move that waits."""
        rows, columns = self._held
        pending = self._pending[m]
        assert pending is not None
        a, step = pending.image
        self._theta[m] = self._pending[m] = None
        rows.move(columns.arrays[2 * m + 1], pending.keep, step, a, pending.n)

    def agree(self, m: int) -> None:
        iterate = self.iterates[m]
        self._theta[m] = None if iterate is None else iterate.theta

    def _changed(self, m: int | None = None) -> None:
        """Forget what was derived from the predictions of one model, or of all."""
        if m is None:
            self._lines = {}
        else:
            self._lines.pop(m, None)

    def move(self, m: int, atom: Atom, step: float) -> None:
        rows = self._held.rows
        if rows is None:
            return
        self._changed(m)
        if self._pending[m] is not None:
            self._carry_out(m)
        alone = self._waits[m] and len(self._losses) == 1
        if alone and rows.fuses(self._losses[m]) and not isinstance(atom, SignedCoordinate):
            a = np.asarray(atom.dense(), float).reshape(-1)
            self._pending[m] = PendingMove(1.0 - step, (a, step), len(rows))
        else:
            image = atom.image(rows)
            self._theta[m] = None
            self._blend(self._held.columns.arrays[2 * m + 1], 1.0 - step, image, step)
        self.agree(m)

    @staticmethod
    @abstractmethod
    def _blend(z: Any, keep: float, image: Any, step: float) -> None:
        """Let z <- keep z + step image."""

    def refresh(self, m: int) -> None:
        rows, columns = self._held
        if rows is None:
            return
        iterate = self.iterates[m]
        assert iterate is not None
        image = rows.matvec(iterate.theta.reshape(-1))
        self._changed(m)
        self._theta[m] = self._pending[m] = None
        columns.arrays[2 * m + 1][...] = image
        self.agree(m)

    # Lines ----------------------------------------------------------------------------------------

    def line(self, m: int, atom: Atom, b: float) -> tuple[float, float, float] | None:
        loss, (z, _, _) = self._losses[m], self._weighed(m)
        direction = atom.image(self._held.rows) - z
        self._begin(m, direction)
        return loss.parabola(*self._for_loss(m), b, direction) if loss.loss.quadratic else None

    def change(self, m: int, chosen: Array, change: Array) -> None:
        self._begin(m, self._held.rows.columns(chosen, change))

    def _begin(self, m: int, direction: Any) -> None:
        self._lines[m] = self.row_line(self._losses[m], *self._for_loss(m), direction)

    def line_value(self, m: int, t: float, b: float) -> float:
        return self._lines[m].value(t, b)

    def line_slope(self, m: int, t: float, b: float) -> float:
        return self._lines[m].slope(t, b)

    def advance(self, m: int, t: float) -> None:
        direction = self._lines[m].direction
        self._changed(m)
        if self._pending[m] is not None:
            self._carry_out(m)
        self._theta[m] = None
        self._blend(self._held.columns.arrays[2 * m + 1], 1.0, direction, t)
        self.agree(m)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        rows, columns = self._held
        w, *others = (np.array(to_host(values)) for values in columns.arrays)
        models = []
        for m, pending in enumerate(self._pending):
            a, step = (None, 0.0) if pending is None else pending.image
            waiting = None if pending is None else {"a": a, "step": step, "count": pending.n}
            models.append({"z": others[2 * m], "y": others[2 * m + 1], "pending": waiting})
        return {"rows": None if rows is None else rows.state_dict(), "w": w, "models": models}

    def load_state(self, state: State) -> None:
        w, rows = np.array(state["w"], float), state["rows"]
        if w.ndim != 1 or not (w >= 0.0).all():
            raise ValueError(
                "the weights of the rows must be a flat array of numbers of at least 0"
            )
        if len(state["models"]) != len(self._losses):
            raise ValueError(
                f"the state holds the predictions of {len(state['models'])} models, "
                f"but {len(self._losses)} learn from these rows"
            )
        values = [w]
        for model in state["models"]:
            values += np.array(model["z"], float), np.array(model["y"], float)
        if any(column.shape != w.shape for column in values):
            raise ValueError("predictions, targets and weights of the rows differ in number")
        if rows is not None:
            kinds = {"dense": self.dense, "sparse": self.sparse}
            if rows["kind"] not in kinds:
                raise ValueError(f"unknown kind of rows {rows['kind']!r} in the state")
            rows = kinds[rows["kind"]].from_state(rows, feature_shape(rows))
        if (0 if rows is None else len(rows)) != w.size:
            raise ValueError("rows and their weights differ in number")
        pending = [_pending(model["pending"], rows, w.size) for model in state["models"]]
        columns = self.columns.empty((float,) * len(values)).extended(*values)
        self._pending = pending
        self._changed()
        self._held = Held(rows, columns)
        for m in range(len(self._losses)):
            self.agree(m)


def feature_shape(rows: State) -> tuple[int]:
    """Return the shape of one row, from the state of rows."""
    if rows["kind"] == "dense":
        return (int(np.shape(rows["data"])[-1]),)
    return (int(np.size(rows["bulk_indptr"])) - 1,)


def _pending(state: State | None, rows: Any, n: int) -> PendingMove | None:
    if state is None:
        return None
    a, step, count = np.array(state["a"], float), float(state["step"]), int(state["count"])
    if rows is None or a.shape != (int(np.prod(rows.shape)),) or not 0 <= count <= n:
        raise ValueError("a move that waits does not fit the rows")
    return PendingMove(1.0 - step, (a, step), count)
