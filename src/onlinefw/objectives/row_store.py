"""The rows that are kept of the past, read once for all the models that learn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._arrays import received, received_here
from .._devices import check_device, namespace
from .._growing import GrowingArray
from .._typing import Array, Shape, State
from .._validation import check_rows, check_targets, check_weights, check_whole
from .from_files import check_batch, is_in_a_file, observe_here
from .places import at_home, back_there, check_places, device_here, new_rows, new_weights
from .rows import Rows, rows_from_state

if TYPE_CHECKING:
    from .linear import LinearObjective

__all__ = ["RowStore", "row_store"]

PASTS = ("all", "recent", "reservoir")
BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class RowStore:
    """Rows with their weights: all of them, the newest, or a uniform random sample.

    Several :class:`LinearObjective` may share one (the classes of a classifier, the radii of a
    search): each carries its own predictions, and one pass over the rows makes all the gradients
    that are out of date.

    A forgotten row gets weight 0 at once; its memory is given back when such rows are half of all.

    Parameters
    ----------
    past : "all", "recent" or "reservoir"
        Which rows to keep.
    max_past : int, optional
        How many, unless all.
    random_state : int or Generator, optional
        Of the reservoir.
    device : "cpu", "cuda" or "auto"
        Where rows and predictions live: in this process's memory or on a GPU.
    """

    #: How many workers hold the rows; None: they are in this process.
    workers: int | None = None

    def __init__(
        self,
        past: str = "all",
        max_past: int | None = None,
        random_state: Any = None,
        device: str = "cpu",
    ) -> None:
        if past not in PASTS:
            raise ValueError(f"past must be one of {', '.join(PASTS)}, got {past!r}")
        if past == "all" and max_past is not None:
            raise ValueError(
                f'max_past={max_past!r} needs past="recent" or past="reservoir"; past="all" keeps '
                "every row"
            )
        if past != "all":
            if max_past is None:
                raise ValueError(f'past="{past}" needs max_past, the number of rows to keep')
            max_past = check_whole("max_past", max_past)
        self.past, self.max_past = past, max_past
        self.device = check_device(device)
        self.rows: Rows | None = None
        self.lanes: list[LinearObjective] = []
        self.n_seen = 0
        self.total_weight = 0.0
        self._w = GrowingArray()
        self._w_there = new_weights(self.device)  # the same numbers on the device
        self._rng = np.random.default_rng(random_state)

    @property
    def w(self) -> Array:
        """The weight of every row held; 0 for forgotten ones."""
        return self._w.data

    @property
    def weights_there(self) -> Any:
        """The weights where the rows are, with room behind them."""
        return self._w_there.buffer

    @property
    def kept(self) -> Array:
        """Which of the rows held still count."""
        return self._w.data > 0.0

    def close(self) -> None:
        """Give workers back, if there are any."""

    def use_device(self, device: str) -> None:
        """Move the rows, and all that is carried along with them, to a device of this process."""
        self.device = check_device(device)
        self.rows = back_there(self.device, at_home(self.rows))
        self._w_there = _copy_there(self.device, self._w)
        for lane in self.lanes:
            lane._use_device(self.device)

    def check(self, X: Any, targets: list[Any], sample_weight: Any, shape: Shape | None) -> Any:
        """Return rows, targets (one array per lane) and weights, or refuse them."""
        X = check_rows(received("X", X, self.device), shape)
        targets = [received_here("y", y, self.device) for y in targets]
        sample_weight = received_here("sample_weight", sample_weight, self.device)
        lanes = zip(targets, self.lanes, strict=True)
        ys = [check_targets(y, X.shape[0], lane.loss) for y, lane in lanes]
        w = check_weights(sample_weight, X.shape[0])
        for lane in self.lanes:
            lane._agree_on(X.shape[1:])
        return X, ys, w

    def observe(self, X: Any, targets: list[Any], sample_weight: Any = None) -> list[float]:
        """Add rows, with a target for each lane; return each lane's mean loss of them."""
        if is_in_a_file(X):
            check_batch(X, targets, sample_weight)
            return self._observe_file(X)
        X, ys, w = self.check(X, targets, sample_weight, self.lanes[0].shape)
        zs = [lane._predicted(X) for lane in self.lanes]
        losses = [lane._loss_of(z, y, w) for lane, z, y in zip(self.lanes, zs, ys, strict=True)]
        self._check_losses(losses)
        self._prepare(X)
        for lane, z, y in zip(self.lanes, zs, ys, strict=True):
            lane._receive(X, z, y, w)
        self._add(X, zs, ys, w)
        self._count(int(np.count_nonzero(w)), float(w.sum()))
        return losses

    def _observe_file(self, batch: Any) -> list[float]:
        """Add rows that are in a file."""
        return observe_here(self, batch)

    def _check_losses(self, losses: list[float]) -> None:
        if not np.isfinite(losses).any():  # of several models, some may be ruled out
            raise ValueError(
                f"{self.lanes[0].loss} of these rows is infinite at the current coefficients; "
                "rescale the features, or use a smaller radius"
            )

    def _count(self, n_new: int, weight: float) -> None:
        """Take note of rows that have been added: how many count, and how much."""
        self.n_seen += n_new
        if self.past == "all":
            self.total_weight += weight
        else:
            self._forget(n_new)

    def _prepare(self, X: Any) -> None:
        """Make a place for rows like these; what is amiss with it is said before all changes."""
        if self.rows is None:
            shape = self.lanes[0].shape or X.shape[1:]
            self.rows = new_rows(self.device, shape, X.dtype, sparse.issparse(X))

    def _add(self, X: Any, zs: list[Array], ys: list[Array], w: Array) -> None:
        """Put the rows where they stay; the lanes have taken their predictions and targets over."""
        assert self.rows is not None
        self.rows.append(X)
        self._w.append(w)
        if self._w_there is not None:
            self._w_there.append(w)

    def _forget(self, n_new: int) -> None:
        """Choose which rows stay, now that the last ``n_new`` (that count) have come."""
        assert self.max_past is not None
        w = self._w.data
        alive = np.flatnonzero(w > 0.0)
        excess = alive.size - self.max_past
        if excess > 0:
            gone = alive[:excess] if self.past == "recent" else self._drawn(alive, n_new)
            self._set_weights(gone, 0.0)
        if 2 * np.count_nonzero(w) < w.size:
            self._give_back()
        self.total_weight = float(self._w.data.sum())

    def _set_weights(self, rows: Array, weight: float) -> None:
        self._w.data[rows] = weight
        if self._w_there is not None:
            assert weight == 0.0
            self._w_there.zero(rows)

    def _set_all_weights(self, weights: Array) -> None:
        self._w.data[:] = weights
        self._w_there = _copy_there(self.device, self._w)

    def _give_back(self) -> None:
        """Give the memory of forgotten rows back."""
        self._keep(self.kept)

    def _keep(self, mask: Array) -> None:
        """Hold the rows where ``mask`` is True only."""
        assert self.rows is not None
        for lane in self.lanes:
            lane._keep(mask)
        self.rows.keep(mask)
        self._w.keep(mask)
        if self._w_there is not None:
            self._w_there.keep(mask)

    def _drawn(self, alive: Array, n_new: int) -> Array:
        """Return what leaves the reservoir, so that each row seen is in it with equal chance.

        Row number s (from 1) enters with probability max_past / s, in the place of a random one.
        """
        slots, new = alive[:-n_new].tolist(), alive[-n_new:].tolist()
        assert self.max_past is not None
        numbers = np.arange(self.n_seen - n_new, self.n_seen) + 1
        places = self._rng.integers(numbers).tolist()
        gone = []
        for row, place in zip(new, places, strict=True):
            if len(slots) < self.max_past:
                slots.append(row)
            elif place < self.max_past:
                gone.append(slots[place])
                slots[place] = row
            else:
                gone.append(row)
        return np.array(gone, dtype=np.intp)

    def renew_gradients(self) -> None:
        """Make all gradients that are out of date, in one pass over the rows."""
        assert self.rows is not None
        due = [lane for lane in self.lanes if lane._gradient is None]
        if len(due) == 1:
            due[0]._set_gradient(due[0]._own_gradient())
            return
        each = [lane._slopes() for lane in due]
        slopes = namespace(each[0]).column_stack(each)
        for lane, gradient in zip(due, self.rows.rmatvec(slopes).T, strict=True):
            lane._set_gradient(gradient / self.total_weight)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "rows": at_home(self.rows), "_w_there": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.device = device_here(self.device)
        self.rows = back_there(self.device, self.rows)
        self._w_there = _copy_there(self.device, self._w)

    def state_dict(self) -> State:
        """Return rows and weights, and how to go on choosing."""
        return {
            "past": self.past,
            "max_past": self.max_past,
            "rows": None if self.rows is None else self.rows.state_dict(),
            "w": self._w.data.copy(),
            "n_seen": self.n_seen,
            "total_weight": self.total_weight,
            "random": self._rng.bit_generator.state,
        }

    @classmethod
    def from_state(cls, state: State, shape: Shape | None, device: str = "cpu") -> RowStore:
        """Make the store that ``state_dict`` described, wherever it lived."""
        store = cls(state["past"], state["max_past"], device=device)
        if state["rows"] is not None:
            assert shape is not None
            store.rows = back_there(store.device, rows_from_state(state["rows"], shape))
        store._w.append(state["w"])
        store._w_there = _copy_there(store.device, store._w)
        store.n_seen = int(state["n_seen"])
        store.total_weight = float(state["total_weight"])
        store._rng = _generator_from_state(state["random"])
        return store


def row_store(
    past: str = "all",
    max_past: int | None = None,
    random_state: Any = None,
    device: str = "cpu",
    workers: int | None = None,
    log_dir: Any = None,
) -> RowStore:
    """Return a store in this process or, with ``workers``, on a Ray cluster."""
    if workers is None:
        return RowStore(past, max_past, random_state, device)
    from ..distributed.row_store import ShardedRowStore

    device, workers = check_places(device, workers)
    assert workers is not None
    return ShardedRowStore(
        past, max_past, random_state, workers=workers, device=device, log_dir=log_dir
    )


def _copy_there(device: str, weights: GrowingArray) -> Any:
    copy = new_weights(device)
    if copy is not None:
        copy.append(weights.data)
    return copy


def _generator_from_state(state: State) -> np.random.Generator:
    if state["bit_generator"] not in BIT_GENERATORS:
        raise ValueError(f"unknown random generator {state['bit_generator']!r} in the state")
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)
