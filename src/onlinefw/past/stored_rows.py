"""Rows in one memory, and the predictions of several models: the verbs that all memories share.

The places differ in three parts only: how rows are stored and multiplied, how arrays grow, and how
a loss is summed over rows. ``host/`` and ``cuda/`` name theirs.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from .._devices import namespace, to_host
from .._typing import Array, State
from ..atoms import Atom, SignedCoordinate
from ..iterates import DenseIterate
from ..losses import Loss, SignedLabels
from .pending import PendingMove

__all__ = ["StoredRows"]


class Held(NamedTuple):
    """All that grows with every batch; a new one takes the place of the old in one assignment."""

    rows: Any
    w: Any
    z: tuple[Any, ...]
    y: tuple[Any, ...]


class StoredRows:
    """:class:`~onlinefw.past.protocols.RowsPast` in one memory."""

    opens_handles = False
    dense: ClassVar[Any]
    sparse: ClassVar[Any]
    growing: ClassVar[Any]
    row_loss: ClassVar[Any]

    def __init__(self) -> None:
        self.iterates: list[DenseIterate | None] = []
        self._losses: list[Any] = []
        self._waits: list[bool] = []
        self._held = Held(None, self.growing(), (), ())
        self._pending: list[PendingMove | None] = []
        self._lines: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._held.w)

    def close(self) -> None:
        """Nothing is held outside this process."""

    def add_model(self, loss: Loss, iterate: DenseIterate | None, waits: bool) -> int:
        """Let one more model learn from the rows, before the first have come; return its number.

        ``waits`` says that gradients alone ask for its predictions, so that a move may wait for
        the next one.
        """
        held = self._held
        self.iterates.append(iterate)
        self._losses.append(self.row_loss(loss))
        self._waits.append(waits)
        self._pending.append(None)
        self._held = held._replace(z=(*held.z, self.growing()), y=(*held.y, self.growing()))
        return len(self._losses) - 1

    # Data -----------------------------------------------------------------------------------------

    def products(self, X: Any, thetas: Array) -> Array:
        """Return X T for rows that are not held, a column of T for each model."""
        xp = namespace(X)
        if xp is not np:
            return to_host(X.astype(float) @ xp.asarray(thetas))
        return np.asarray(X @ thetas, dtype=float)

    def append(self, X: Any, Z: Array, Y: Array, w: Array) -> None:
        """Add rows with their weights, and a column of predictions and targets for each model."""
        held = self._held
        rows = held.rows
        if rows is None:
            rows = (self.sparse if sparse.issparse(X) else self.dense)(X.shape[1:])
        longer = Held(
            rows.extended(X),
            held.w.extended(w),
            tuple([z.extended(column) for z, column in zip(held.z, Z.T, strict=True)]),
            tuple([y.extended(column) for y, column in zip(held.y, Y.T, strict=True)]),
        )
        self._lines = {}
        self._held = longer

    def weigh(self, rows: Array, weight: float) -> None:
        """Give some rows (by their places) another weight; 0 forgets them."""
        self._held.w.data[rows] = weight

    def keep(self, mask: Array) -> None:
        """Remove the rows where ``mask`` is False."""
        for m in range(len(self._pending)):
            self._up_to_date(m)
        held = self._held
        self._lines = {}
        self._held = Held(
            held.rows.kept(mask),
            held.w.kept(mask),
            tuple(z.kept(mask) for z in held.z),
            tuple(y.kept(mask) for y in held.y),
        )

    # Moving ---------------------------------------------------------------------------------------

    def _up_to_date(self, m: int) -> Any:
        """Return all predictions of a model, after a move that has waited."""
        z, pending = self._held.z[m].data, self._pending[m]
        if pending is not None:
            a, step = pending.image
            self._pending[m] = None
            self._held.rows.move(z, pending.keep, step, a, pending.count)
        return z

    def _weighed(self, m: int) -> tuple[Any, Any, Any]:
        """Return z, y and w of all rows."""
        return self._up_to_date(m), self._held.y[m].data, self._held.w.data

    def move(self, m: int, atom: Atom, step: float) -> None:
        """Let z <- (1 - step) z + step X a for one model, now or with the next read of the rows."""
        rows = self._held.rows
        if rows is None:
            return
        self._lines.pop(m, None)
        z = self._up_to_date(m)
        alone = self._waits[m] and len(self._losses) == 1
        if alone and rows.fuses(self._losses[m]) and not isinstance(atom, SignedCoordinate):
            a = np.asarray(atom.dense(), float).reshape(-1)
            self._pending[m] = PendingMove(1.0 - step, (a, step), len(self))
        else:
            self._blend(z, 1.0 - step, atom.image(rows), step)

    @staticmethod
    def _blend(z: Any, keep: float, image: Any, step: float) -> None:
        """Let z <- keep z + step image."""
        raise NotImplementedError

    def refresh(self, m: int) -> None:
        """Compute all predictions of one model from its iterate again."""
        if self._held.rows is None:
            return
        iterate = self.iterates[m]
        assert iterate is not None
        image = self._held.rows.matvec(iterate.theta.reshape(-1))
        self._lines.pop(m, None)
        self._pending[m] = None
        self._blend(self._held.z[m].data, 0.0, image, 1.0)

    # Lines ----------------------------------------------------------------------------------------

    def line(self, m: int, atom: Atom, b: float) -> tuple[float, float, float] | None:
        """Begin a line z + t (X a - z); of a quadratic loss, return value, slope, curvature at 0."""
        z, y, w = self._weighed(m)
        self._lines[m] = direction = atom.image(self._held.rows) - z
        loss = self._losses[m]
        return loss.parabola(z, y, w, b, direction) if loss.loss.quadratic else None

    def change(self, m: int, chosen: Array, change: Array) -> None:
        """Begin a line z + t (X_S c): some coordinates of theta change."""
        self._up_to_date(m)
        self._lines[m] = self._held.rows.columns(chosen, change)

    def line_value(self, m: int, t: float, b: float) -> float:
        """Return the sum of w phi(z(t) + b, y) along the line that was begun."""
        z, y, w = self._weighed(m)
        return self._losses[m].total(z + t * self._lines[m], y, w, b)

    def line_slope(self, m: int, t: float, b: float) -> float:
        """Return the derivative of that in t."""
        z, y, w = self._weighed(m)
        direction = self._lines[m]
        return float(self._losses[m].slopes(z + t * direction, y, w, b) @ direction)

    def advance(self, m: int, t: float) -> None:
        """Move the predictions to z(t) on the line that was begun."""
        self._blend(self._up_to_date(m), 1.0, self._lines.pop(m), t)

    # Sums -----------------------------------------------------------------------------------------

    def gradients(self, models: list[int], intercepts: list[float]) -> Array:
        """Return X' (w phi'(z + b, y)) of some models, a column each, from one read of the rows."""
        rows, pairs = self._held.rows, list(zip(models, intercepts, strict=True))
        if len(pairs) > 1:
            each = [self._losses[m].slopes(*self._weighed(m), b) for m, b in pairs]
            return rows.rmatvec(namespace(each[0]).column_stack(each))
        ((m, b),) = pairs
        loss = self._losses[m]
        if not rows.fuses(loss):
            return rows.rmatvec(loss.slopes(*self._weighed(m), b))[:, None]
        held, pending = self._held, self._pending[m]
        self._pending[m] = None
        return rows.fused_gradient(loss, pending, held.z[m].data, held.y[m].data, held.w.data, b)[
            :, None
        ]

    def total(self, m: int, b: float) -> float:
        """Return the sum of w phi(z + b, y)."""
        return self._losses[m].total(*self._weighed(m), b)

    def slope_sums(self, m: int, b: float) -> tuple[float, float]:
        """Return the sums of w phi'(z + b, y) and of w phi''(z + b, y)."""
        return self._losses[m].sums(*self._weighed(m), b)

    def limits(self, m: int) -> tuple[float, float]:
        """Return the smallest and the largest intercept that leave some row undecided."""
        z, y, w = self._weighed(m)
        labels = isinstance(self._losses[m].loss, SignedLabels)
        at = (-z if labels else y - z)[w > 0.0]
        return (float(at.min()), float(at.max())) if at.size else (np.inf, -np.inf)

    def residuals(self, m: int) -> tuple[Array, Array]:
        """Return y - z and w of all rows, in any order."""
        z, y, w = self._weighed(m)
        return to_host(y - z), to_host(w)

    def steepest(self, m: int, b: float) -> float:
        """Return the largest w |phi'(z + b, y)|."""
        return float(abs(self._losses[m].slopes(*self._weighed(m), b)).max())

    def second_order(self, m: int, chosen: Array, b: float) -> tuple[Array, Array, float]:
        """Return X_S' D X_S, X_S' d and the sum of d, for curvatures d >= 0 of every row."""
        rows = self._held.rows.merged()
        if rows is not self._held.rows:
            self._held = self._held._replace(rows=rows)
        bends = self._losses[m].curvatures(*self._weighed(m), b)
        return (*rows.gram(chosen, bends), float(bends.sum()))

    def gram_product(self, vector: Array) -> Array:
        """Return X' diag(w) X v."""
        rows, w = self._held.rows, self._held.w.data
        return rows.rmatvec(w * rows.matvec(vector))

    def predictions(self, m: int) -> Array:
        """Return the z of one model at all rows that count, in their order."""
        z, _, w = self._weighed(m)
        return to_host(z[w > 0.0])

    # State ----------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return everything as plain arrays and numbers, the same from every place."""
        held, models = self._held, []
        for z, y, pending in zip(held.z, held.y, self._pending, strict=True):
            a, step = (None, 0.0) if pending is None else pending.image
            waiting = None if pending is None else {"a": a, "step": step, "count": pending.count}
            models.append({"z": _copy(z.data), "y": _copy(y.data), "pending": waiting})
        rows = None if held.rows is None else held.rows.state_dict()
        return {"rows": rows, "w": _copy(held.w.data), "models": models}

    def load_state(self, state: State) -> None:
        """Become what a ``state_dict`` described, wherever that was."""
        w, rows = np.array(state["w"], float), state["rows"]
        if w.ndim != 1 or not (w >= 0.0).all():
            raise ValueError("the weights of the rows must be a flat array of numbers from 0")
        if len(state["models"]) != len(self._losses):
            raise ValueError(
                f"the state holds the predictions of {len(state['models'])} models, "
                f"but {len(self._losses)} learn from these rows"
            )
        columns = {
            name: [np.array(model[name], float) for model in state["models"]] for name in ("z", "y")
        }
        if any(column.shape != w.shape for both in columns.values() for column in both):
            raise ValueError("there are not as many predictions and targets as weights of rows")
        if rows is not None:
            kinds = {"dense": self.dense, "sparse": self.sparse}
            if rows["kind"] not in kinds:
                raise ValueError(f"unknown kind of rows {rows['kind']!r} in the state")
            rows = kinds[rows["kind"]].from_state(rows, self._feature_shape(rows))
        if (0 if rows is None else len(rows)) != w.size:
            raise ValueError("there are not as many rows as weights of rows")
        pending = [_pending(model["pending"], rows, w.size) for model in state["models"]]
        self._lines, self._pending = {}, pending
        self._held = Held(
            rows,
            self.growing().extended(w),
            *(tuple(self.growing().extended(x) for x in columns[name]) for name in ("z", "y")),
        )

    @staticmethod
    def _feature_shape(rows: State) -> tuple[int]:
        if rows["kind"] == "dense":
            return (int(np.shape(rows["data"])[-1]),)
        return (int(np.size(rows["bulk_indptr"])) - 1,)


def _copy(values: Any) -> Array:
    return np.array(to_host(values))


def _pending(state: State | None, rows: Any, n: int) -> PendingMove | None:
    if state is None:
        return None
    a, step, count = np.array(state["a"], float), float(state["step"]), int(state["count"])
    if rows is None or a.shape != (int(np.prod(rows.shape)),) or not 0 <= count <= n:
        raise ValueError("a move that waits does not fit the rows")
    return PendingMove(1.0 - step, (a, step), count)
