"""The rows that are kept of the past, spread over workers: whole batches in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .._arrays import received_here
from .._growing import GrowingArray
from .._typing import Array
from ..atoms import Atom
from ..objectives.from_files import naming
from ..objectives.places import new_rows
from ..objectives.row_store import RowStore
from ..objectives.rows import Rows
from .batch_log import BatchLog
from .cluster import check_workers
from .elsewhere import Elsewhere
from .errors import ClusterLost
from .rows_shard import RowsShard, as_arrays, as_rows
from .shards import Message, Shards

__all__ = ["ShardedRowStore"]


class ShardedRowStore(RowStore, Elsewhere):
    """A :class:`~onlinefw.objectives.row_store.RowStore` whose rows are with workers.

    Parameters
    ----------
    past, max_past, random_state
        As there.
    workers : int
        How many.
    device : "cpu" or "cuda"
        Where their rows live; each on "cuda" has a GPU of its own.
    log_dir : path, optional
        Where to log the batches that workers have received.
    """

    home_class = RowStore

    def __init__(
        self,
        past: str = "all",
        max_past: int | None = None,
        random_state: Any = None,
        *,
        workers: int,
        device: str = "cpu",
        log_dir: Any = None,
    ) -> None:
        super().__init__(past, max_past, random_state)
        self.device = device  # of the workers: nothing is on one of this process
        self.workers = check_workers(workers)
        self.log_dir = log_dir
        self._n: int = workers
        self._made: tuple[Shards, BatchLog] | None = None  # when the first batch has shown its kind
        self._dtype: Any = None
        self._is_sparse = False
        self._next = 0
        self._sent = [0] * workers
        #: Which worker got how many rows, batch after batch.
        self._batches: list[tuple[int, int]] = []
        # Where rows may be forgotten: whose each is, and its number among all it ever got.
        self._owner, self._serial = GrowingArray(dtype=np.int32), GrowingArray(dtype=np.int64)
        self._places: list[tuple[Any, ...]] = []  # of the batches that workers have read themselves
        self._followed = False  # whether the shards know theta
        #: What a lane has begun: the atom and intercept of a line, the change of a trial.
        self.lines: dict[int, tuple[Atom, float]] = {}
        self.trials: dict[int, tuple[Array, Array]] = {}

    @property
    def shards(self) -> Shards:
        """The shards."""
        assert self._made is not None
        return self._made[0]

    def close(self) -> None:
        """Give the workers back; the log goes, too."""
        if self._made is not None:
            shards, log = self._made
            shards.close()
            log.close()

    @property
    def n_kept(self) -> int:
        """How many rows count."""
        return self.n_seen if self.past == "all" else int(np.count_nonzero(self.w))

    # Data -----------------------------------------------------------------------------------------

    def check(self, X: Any, targets: list[Any], sample_weight: Any, shape: Any) -> Any:
        """Return rows, targets and weights, or refuse them; without workers, before all."""
        if self._made is not None:
            self.shards.check_alive()
        return super().check(received_here("X", X, self.device), targets, sample_weight, shape)

    def _observe_file(self, batch: Any) -> list[float]:
        """Let a worker read the rows, which stay with it."""
        if len(self.lanes) > 1:
            return super()._observe_file(batch)
        lane: Any = self.lanes[0]
        k = batch.partition % self._n
        with naming(batch):
            lane._agree_on(batch.shape[1:])
            dtype = batch.dtype
        loss, weight, n_new, w = self._staged(k, batch, lane)
        self._widen(dtype)
        lane._receive_file(batch)
        assert self._made is not None
        shards, log = self._made
        log.append(k, [np.array([len(self._places)])])
        self._places.append(batch.place)
        shards.tell("keep_staged", self._only(k, ()))
        self._arrived(k, batch.shape[0], w)
        self._count(n_new, weight)
        if batch.following is not None:
            following = batch.following.partition % self._n
            shards.tell("announce", self._only(following, (batch.following.place,)))
        return [loss]

    def _staged(self, k: int, batch: Any, lane: Any) -> tuple[float, float, int, Array | None]:
        """Let worker k read a batch: what is amiss with it is said before anything changes."""
        is_first = self._made is None
        if is_first:
            self._make(batch)
        try:
            self._lead()
            question = (batch.place, lane.intercept, self.past != "all")
            answer = self.shards.ask("stage", self._only(k, question))[k]
            if isinstance(answer, str):
                raise ValueError(answer)
            with naming(batch):
                self._check_losses([answer[0]])
            return answer
        except BaseException:
            if is_first:  # the next batch may be of another kind
                self.close()
                self._made, self._followed = None, False
            raise

    def _lead(self) -> None:
        """Let the shards know theta, of which they only hear moves otherwise."""
        if not self._followed:
            for number, lane in enumerate(self.lanes):
                if lane.theta is not None:
                    self.tell("follow", number, np.asarray(lane.theta))
            self._followed = True

    def _only(self, k: int, args: tuple[Any, ...]) -> list[tuple[Any, ...] | None]:
        """Arguments for worker k alone."""
        return [args if j == k else None for j in range(self._n)]

    def _add(self, X: Any, zs: list[Array], ys: list[Array], w: Array) -> None:
        k, self._next = self._next, (self._next + 1) % self._n
        self._give(k, X, np.column_stack(zs), np.column_stack(ys), w)

    def _prepare(self, X: Any) -> None:
        """Make the shards, or widen the numbers that they hold."""
        if self._made is None:
            self._make(X)
        self._widen(X.dtype)

    def _make(self, X: Any) -> None:
        """Make shards for rows like these (or for a batch of a file)."""
        self._is_sparse, self._dtype = sparse.issparse(X), X.dtype
        self._shape = self.lanes[0].shape or X.shape[1:]
        args = [self._args(self.device)] * self._n
        shards = Shards(self._n, self.device, RowsShard, args, self._rebuild)
        self._made = shards, BatchLog(self._n, self.log_dir)

    def _widen(self, dtype: Any) -> None:
        wider = np.result_type(dtype, self._dtype)
        if wider != self._dtype:
            self._dtype = wider
            self._tell_all("widen", wider.str)

    def _args(self, device: str) -> tuple[Any, ...]:
        losses, intercept = [lane.loss for lane in self.lanes], self.lanes[0].fit_intercept
        return self._shape, self._dtype, self._is_sparse, losses, intercept, device

    def _give(self, k: int, X: Any, Z: Array, Y: Array, w: Array) -> None:
        assert self._made is not None
        shards, log = self._made
        if sparse.issparse(X) and not self._is_sparse:
            X = X.toarray()
        elif self._is_sparse:
            X = sparse.csr_array(X)
        arrays = as_arrays(X)
        log.append(k, [Y, w, *arrays])
        shards.tell("append", self._only(k, (Z, Y, w, *arrays)))
        self._arrived(k, X.shape[0], w)

    def _arrived(self, k: int, n: int, w: Array | None) -> None:
        """Take note of n more rows with worker k; where rows may be forgotten, of their weights."""
        self.lines.clear()
        if self.past == "all":
            self._batches.append((k, n))
        else:
            assert w is not None
            self._w.append(w)
            self._owner.append(np.full(n, k))
            self._serial.append(np.arange(self._sent[k], self._sent[k] + n))
        self._sent[k] += n

    def _set_weights(self, rows: Array, weight: float) -> None:
        super()._set_weights(rows, weight)
        owner = self._owner.data
        chosen = np.zeros(owner.size, bool)
        chosen[rows] = True
        local = [np.flatnonzero(chosen[owner == k]) for k in range(self._n)]
        self.shards.tell("set_weights", [(r, weight) if r.size else None for r in local])

    def _give_back(self) -> None:
        mask, owner = self.kept, self._owner.data
        self.shards.tell("keep", [(mask[owner == k],) for k in range(self._n)])
        for column in (self._w, self._owner, self._serial):
            column.keep(mask)

    # Messages -------------------------------------------------------------------------------------

    def _tell_all(self, method: str, *args: Any) -> None:
        self.shards.tell(method, [args] * self._n)

    def ask(self, method: str, *args: Any) -> list[Any]:
        """Ask all shards."""
        return self.shards.ask(method, [args] * self._n)

    def tell(self, method: str, *args: Any) -> None:
        """Tell all shards, if there are any yet."""
        if self._made is not None:
            self._tell_all(method, *args)

    def renew_gradients(self) -> None:
        """Make all gradients that are out of date, in one pass over the rows."""
        due = [k for k, lane in enumerate(self.lanes) if lane._gradient is None]
        intercepts = [self.lanes[k].intercept for k in due]
        _, total = self.shards.ask_sum("gradients", (due, intercepts))
        for k, gradient in zip(due, total.T, strict=True):
            self.lanes[k]._set_gradient(gradient / self.total_weight)

    def _rebuild(self, k: int) -> Iterator[Message]:
        """What a restarted worker is told."""
        assert self._made is not None
        for record in self._made[1].records(k):
            if len(record) == 1:  # a batch that is in a file
                yield "load_file", (self._places[int(record[0][0])],)
            else:
                yield "load", tuple(record)
        if self.past != "all":
            mine = self._owner.data == k
            yield "keep_only", (self._serial.data[mine], self.w[mine])
        for number, lane in enumerate(self.lanes):
            if lane.theta is not None:
                yield "place", (number, np.asarray(lane.theta))
        for number, (atom, b) in self.lines.items():
            yield "line", (number, atom, b)
        for number, (chosen, change) in self.trials.items():
            yield "trial", (number, chosen, change)

    # State ----------------------------------------------------------------------------------------

    def _gathered(self, method: str, *args: Any) -> list[Any]:
        """Ask all shards; if they are lost, shards that are made here from the log."""
        try:
            return self.ask(method, *args)
        except ClusterLost:
            return [getattr(self._rebuilt_here(k), method)(*args) for k in range(self._n)]

    def _rebuilt_here(self, k: int) -> RowsShard:
        shard = RowsShard(*self._args("cpu"))
        for method, args in self._rebuild(k):
            getattr(shard, method)(*args)
        return shard

    def _in_order(self, parts: list[Any]) -> Any:
        """Rows (or what belongs to them) of all shards, in the order in which they came."""
        owner = np.repeat(*np.array(self._batches).T) if self.past == "all" else self._owner.data
        places = np.argsort(np.argsort(owner, kind="stable"), kind="stable")
        stack = sparse.vstack if sparse.issparse(parts[0]) else np.concatenate
        return stack(parts)[places]

    def home_rows(self) -> tuple[Rows | None, Array]:
        """Return all rows and their weights, in this process."""
        if self._made is None:
            return None, np.empty(0)
        shape = self.lanes[0].shape
        assert shape is not None
        *parts, w = zip(*self._gathered("held_rows"), strict=True)
        X = [as_rows(list(arrays), int(np.prod(shape))) for arrays in zip(*parts, strict=True)]
        rows = new_rows("cpu", shape, self._dtype, self._is_sparse)
        rows.append(self._in_order(X))
        return rows, self._in_order(list(w))

    def home_weights(self) -> Array:
        """Return the weights of all rows, in this process."""
        return self._in_order(self._gathered("held_weights")) if self._made else np.empty(0)

    def home_lane(self, lane: int) -> tuple[Array, Array]:
        """Return predictions and targets of a lane, in this process."""
        if self._made is None:
            return np.empty(0), np.empty(0)
        z, y = zip(*self._gathered("held_lane", lane), strict=True)
        return self._in_order(list(z)), self._in_order(list(y))

    def home_state(self) -> dict[str, Any]:
        """Return the attributes of the same store in one process."""
        rows, w = self.home_rows()
        weights = GrowingArray()
        weights.append(w)
        names = ("past", "max_past", "lanes", "n_seen", "total_weight", "_rng", "_w_there")
        same = {name: getattr(self, name) for name in names}
        return {**same, "device": "cpu", "rows": rows, "_w": weights}

    def state_dict(self) -> dict[str, Any]:
        """Return what a store in one process would."""
        store = RowStore(self.past, self.max_past)
        store.__dict__.update(self.home_state())
        return RowStore.state_dict(store)
