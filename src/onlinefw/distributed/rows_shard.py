"""Some rows of the past, in the process of a worker."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy import sparse

from .._devices import check_device, to_host
from .._threads import one_blas_thread
from .._typing import Array, Shape
from ..atoms import Atom
from ..losses import Loss
from ..objectives.intercept import InterceptRows
from ..objectives.linear import LinearObjective
from ..objectives.places import at_home, new_rows
from ..objectives.row_store import RowStore
from ..objectives.rows import DenseRows, Rows, SparseRows
from .rows_in_files import ReadAhead

__all__ = ["RowsShard", "all_rows", "as_arrays", "as_rows"]


def as_arrays(X: Any) -> list[Array]:
    """Return rows as plain arrays: one for dense rows, three for sparse ones."""
    if not sparse.issparse(X):
        return [np.ascontiguousarray(X)]
    X = sparse.csr_array(X)
    return [X.data, X.indices, X.indptr]


def as_rows(arrays: list[Array], n_features: int) -> Any:
    """Return the rows again.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from onlinefw.distributed.rows_shard import as_arrays, as_rows
    >>> as_rows(as_arrays(sp.csr_array([[0.0, 2.0]])), 2).toarray()
    array([[0., 2.]])
    """
    if len(arrays) == 1:
        return arrays[0]
    data, indices, indptr = arrays
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))


def all_rows(rows: Rows | None) -> Any:
    """Return stored rows, wherever they are, as one array or (sparse ones) one CSR matrix."""
    rows = at_home(rows)
    if isinstance(rows, DenseRows):
        return rows.data
    assert isinstance(rows, SparseRows)
    rows._merge()
    bulk = (rows._data, rows._indices, rows._indptr)
    return sparse.csc_array(bulk, shape=(len(rows), rows.n_features)).tocsr()


class RowsShard:
    """A :class:`RowStore` with its objectives ("lanes"), all whose means are sums.

    Rows and predictions are in memory or on a GPU; what comes and goes is in numpy arrays either
    way. The total weight is that of all shards, which only the driver knows; here it is 1.
    """

    def __init__(
        self,
        shape: Shape,
        dtype: Any,
        is_sparse: bool,
        losses: list[Loss],
        fit_intercept: bool,
        device: str,
    ) -> None:
        self.store = RowStore(device=check_device(device))
        self.store.total_weight = 1.0
        self.store.rows = new_rows(self.store.device, shape, dtype, is_sparse)
        self._is_sparse = is_sparse
        size: dict[str, Any] = {"shape": shape} if len(shape) == 2 else {"n_features": shape[0]}
        self.lanes = [
            LinearObjective(loss, fit_intercept=fit_intercept, store=self.store, **size)
            for loss in losses
        ]
        self._lines: dict[int, tuple[Atom, Any]] = {}
        self._trials: dict[int, Any] = {}
        self._files = ReadAhead(shape, losses[0])
        self._staged: tuple[Any, Array, Array, Array] | None = None  # rows that may be kept

    @property
    def rows(self) -> Rows:
        """The rows."""
        assert self.store.rows is not None
        return self.store.rows

    def working(self) -> AbstractContextManager[Any]:
        """Return a context to carry out a message in."""
        return one_blas_thread()

    def wait(self) -> None:
        """Do nothing: the answer says that all earlier messages have been carried out."""

    # Data -----------------------------------------------------------------------------------------

    def append(self, Z: Array, Y: Array, w: Array, *arrays: Array) -> None:
        """Add rows, with a column of predictions and of targets for each lane."""
        X = as_rows(list(arrays), int(np.prod(self.rows.shape)))
        for lane, z, y in zip(self.lanes, Z.T, Y.T, strict=True):
            lane._receive(X, z, y, w)
        self.store._add(X, [], [], w)

    def load(self, Y: Array, w: Array, *arrays: Array) -> None:
        """Add rows of the log; predictions follow when all are there."""
        self.append(np.zeros(Y.shape), Y, w, *arrays)

    def follow(self, lane: int, theta: Array) -> None:
        """Know theta, which predictions agree with already."""
        iterate: Any = self.lanes[lane].iterate
        iterate.place(theta)

    def stage(self, place: tuple[Any, ...], b: float, all_weights: bool) -> Any:
        """Read a batch of a file, which is kept if the driver says so.

        Return its mean loss, its total weight, how many of its rows count and (if wanted) all
        their weights; or what is wrong with it.
        """
        try:
            X, y, w = self._files.read(place)
        except ValueError as error:
            return str(error)
        z = self.lanes[0]._predicted(X)
        self._staged = X, z, y, w
        loss = self._at(0, b)._loss_of(z, y, w)
        return loss, float(w.sum()), int(np.count_nonzero(w)), w if all_weights else None

    def keep_staged(self) -> None:
        """Add the rows that were read last."""
        assert self._staged is not None
        (X, z, y, w), self._staged = self._staged, None
        self._add_file(X, z, y, w)

    def load_file(self, place: tuple[Any, ...]) -> None:
        """Add rows that are in a file; predictions follow when all are there."""
        X, y, w = self._files.read(place)
        self._add_file(X, np.zeros(y.size), y, w)

    def _add_file(self, X: Array, z: Array, y: Array, w: Array) -> None:
        arrays = as_arrays(sparse.csr_array(X) if self._is_sparse else X)
        self.append(z[:, None], y[:, None], w, *arrays)

    def announce(self, place: tuple[Any, ...]) -> None:
        """Begin to read a batch that will be staged."""
        self._files.announce(place)

    def widen(self, dtype: str) -> None:
        """Keep numbers in a wider type from now on."""
        self.rows.append(np.empty((0, int(np.prod(self.rows.shape))), dtype))

    def set_weights(self, rows: Array, weight: float) -> None:
        """Change the weights of some rows."""
        self.store._set_weights(rows, weight)

    def keep(self, mask: Array) -> None:
        """Forget the rows where ``mask`` is False."""
        if mask.size:
            self.store._keep(mask)

    def keep_only(self, serials: Array, weights: Array) -> None:
        """Of all rows loaded, keep those with these numbers, with other weights."""
        mask = np.zeros(len(self.rows), bool)
        mask[serials] = True
        self.keep(mask)
        self.store._set_all_weights(weights)

    # Moves ----------------------------------------------------------------------------------------

    def move(self, lane: int, atom: Atom | None, step: float) -> None:
        """Move predictions along an atom; None is the one of the last line."""
        if atom is None:
            atom = self._lines[lane][0]
        self._lines.pop(lane, None)
        self.lanes[lane].move(atom, step)
        self.lanes[lane]._moves = 0  # the driver says when predictions are recomputed

    def place(self, lane: int, theta: Array) -> None:
        """Recompute predictions from theta."""
        self.lanes[lane].place(theta)

    # Sums -----------------------------------------------------------------------------------------

    def _at(self, lane: int, b: float) -> LinearObjective:
        objective = self.lanes[lane]
        objective._b, objective._b_due = b, False
        return objective

    def gradients(self, lanes: list[int], intercepts: list[float]) -> tuple[None, Array]:
        """Return (nothing and) the sums of gradients of some lanes, a column each."""
        if len(self.rows) == 0:
            return None, np.zeros((int(np.prod(self.rows.shape)), len(lanes)))
        due = [self._at(lane, b) for lane, b in zip(lanes, intercepts, strict=True)]
        for objective in self.lanes:
            objective._gradient = np.empty(0)
        for objective in due:
            objective._gradient = None
        self.store.renew_gradients()
        return None, np.column_stack([objective.gradient().reshape(-1) for objective in due])

    def value(self, lane: int, b: float) -> float:
        """Return the sum of the losses."""
        return self._at(lane, b)._carried.total(b)

    def steepest(self, lane: int, b: float) -> float:
        """Return the largest slope."""
        return self._at(lane, b)._steepest() if len(self.rows) else 0.0

    def _sums(self, lane: int) -> InterceptRows:
        return self.lanes[lane]._carried.row_sums()

    def intercept_sums(self, lane: int, b: float) -> tuple[float, float]:
        """Return the sums of slopes and curvatures."""
        return self._sums(lane).sums(b)

    def intercept_value(self, lane: int, b: float) -> float:
        """Return the sum of losses."""
        return self._sums(lane).value(b)

    def intercept_limits(self, lane: int) -> tuple[float, float]:
        """Return between which intercepts some row is undecided."""
        return self._sums(lane).limits()

    def residuals(self, lane: int) -> tuple[Array, Array]:
        """Return y - z and w of the rows."""
        return self._sums(lane).residuals()

    def line(self, lane: int, atom: Atom, b: float) -> tuple[float, float, float] | None:
        """Start a line; return value, slope and curvature of a parabola."""
        line = self._at(lane, b).line(atom) if len(self.rows) else _Nothing()
        self._lines[lane] = (atom, line)
        if not self.lanes[lane].loss.quadratic:
            return None
        return line.value(0.0), line.slope(0.0), float(line.curvature or 0.0)

    def line_value(self, lane: int, c: float) -> float:
        """Return the loss along the line."""
        return self._lines[lane][1].value(c)

    def line_slope(self, lane: int, c: float) -> float:
        """Return its derivative."""
        return self._lines[lane][1].slope(c)

    def second_order(self, lane: int, chosen: Array, b: float) -> tuple[Array, Array, float]:
        """Return the sums of a second-order model."""
        if len(self.rows) == 0:
            return np.zeros((chosen.size, chosen.size)), np.zeros(chosen.size), 0.0
        return self._at(lane, b)._second_order(chosen)

    def trial(self, lane: int, chosen: Array, change: Array) -> None:
        """Start a change of some coordinates."""
        objective = self.lanes[lane]
        self._trials[lane] = objective._trial(chosen, change) if len(self.rows) else _Nothing()

    def trial_value(self, lane: int, part: float, b: float) -> float:
        """Return the loss after a part of the change."""
        return self._trials[lane].value(part, b)

    def trial_move(self, lane: int, part: float, chosen: Array, change: Array) -> None:
        """Move predictions, and the theta here."""
        self._trials.pop(lane).move(part)
        iterate: Any = self.lanes[lane].iterate
        iterate.shift(chosen, part * change)
        self.lanes[lane]._forget_derived()

    def gram_product(self, v: Array) -> Array:
        """Return X' diag(w) X v."""
        if len(self.rows) == 0:
            return np.zeros(v.size)
        return self.rows.rmatvec(self.store.w * to_host(self.rows.matvec(v)))

    # State ----------------------------------------------------------------------------------------

    def held_rows(self) -> list[Array]:
        """Return the rows and their weights, as arrays."""
        return [*as_arrays(all_rows(self.rows)), self.store.w]

    def held_weights(self) -> Array:
        """Return the weights of the rows."""
        return self.store.w

    def held_lane(self, lane: int) -> tuple[Array, Array]:
        """Return predictions and targets of a lane."""
        carried = self.lanes[lane]._carried
        return carried.values(), carried.targets()


class _Nothing:
    """Sums over no rows."""

    curvature = 0.0

    def value(self, *at: float) -> float:
        return 0.0

    def slope(self, c: float) -> float:
        return 0.0

    def move(self, part: float) -> None:
        pass
