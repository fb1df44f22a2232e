"""Rows spread over workers, which get whole batches in turn, with predictions and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from ..._arrays import here
from ..._batches import BatchHandle, naming
from ..._growing import GrowingArray
from ..._typing import Array, State
from ...iterates import DenseIterate
from ...losses import Loss
from . import rows_in_worker as in_worker
from .joins import first, sums, total
from .recovery import Message, Placement, Recovery
from .rows_state import joined_state, parts_of_state
from .split_past import SplitPast
from .splits import each_one, everybody, only
from .table import Table, Verb

__all__ = ["TABLE", "RowsPlacement"]

# Which shards are concerned -----------------------------------------------------------------------


def _holders(past: SplitPast, *args: Any) -> list[Any]:
    """Give the shards that have rows the same arguments; others have nothing to sum."""
    return [args if count else None for count in past.placement.counts]


def _positions(past: SplitPast, rows: Array, weight: float | Array) -> list[Any]:
    """Give each shard the positions of the chosen rows among its own, and their weights."""
    owners = past.placement.owners.data
    chosen, weights = np.zeros(owners.size, bool), np.zeros(owners.size)
    chosen[rows], weights[rows] = True, weight
    pieces: list[Any] = []
    for k in range(past.n):
        local = np.flatnonzero(chosen[owners == k])
        some = weight if isinstance(weight, float) else weights[owners == k][local]
        pieces.append((local, some) if local.size else None)
    return pieces


def _masks(past: SplitPast, mask: Array) -> list[Any]:
    owners = past.placement.owners.data
    parts = [mask[owners == k] for k in range(past.n)]
    return [(part,) if part.size else None for part in parts]


# Verbs that take more than one message ------------------------------------------------------------


def add_model(past: SplitPast, loss: Loss, iterate: DenseIterate | None, waits: bool) -> int:
    """Let one more model learn; its iterate stays in this process."""
    placement = past.placement
    past.model(loss, None, waits)
    placement.options.append((loss, waits))
    placement.iterates.append(iterate)
    return len(placement.iterates) - 1


def models(past: SplitPast) -> list[tuple[Loss, DenseIterate | None, bool]]:
    pairs = zip(past.placement.options, past.placement.iterates, strict=True)
    return [(loss, iterate, waits) for (loss, waits), iterate in pairs]


def append(past: SplitPast, X: Any, Z: Array, Y: Array, w: Array) -> None:
    """Add rows to the next shard in turn."""
    X, k = past.placement.like_others(here(X)), past.placement.next
    with _same_numbers(past, k, X):
        past.append_to(k, X, Z, Y, w)


@contextmanager
def _same_numbers(past: SplitPast, k: int, X: Any) -> Iterator[None]:
    """Let all shards hold the same type of numbers after shard k has got rows.

    In one process, too, rows of bytes become doubles when the first doubles come.
    """
    placement = past.placement
    before, was_empty = placement.dtype, placement.counts[k] == 0
    yield
    after, models = placement.dtype, len(placement.iterates)
    if (before is not None and after != before) or (was_empty and X.dtype != after):
        nothing = np.empty((0, models))
        rows = placement.like_others(np.empty((0, X.shape[1]), after))
        past.widen(rows, nothing, nothing, np.empty(0))


def _without_predictions(
    recovery: Recovery, k: int, X: Any, Z: Array, Y: Array, w: Array
) -> Message:
    """Return what the log keeps: a rebuilt shard computes its predictions from theta."""
    return "append", (X, np.zeros(Z.shape, np.int8), Y, w)


def refresh(past: SplitPast, m: int) -> None:
    """Send theta to the shards and compute all predictions of one model from it."""
    past.refresh_from(m, np.asarray(past.placement.iterates[m].theta))


def predictions(past: SplitPast, m: int) -> Array:
    if len(past) == 0:
        return np.empty(0)
    answers = past.predicted(m)
    z = past.placement.in_order([one for one, _ in answers])
    return z[past.placement.in_order([counts for _, counts in answers])]


def append_handle(
    past: SplitPast,
    handle: BatchHandle,
    b: float,
    check_losses: Callable[[list[float]], None],
) -> tuple[float, Array]:
    """Let a worker read a batch from its file and keep it; return mean loss and weights.

    A bad batch is refused before anything changes.
    """
    placement, following, handle = past.placement, handle.following, handle.alone()
    iterate, k = placement.iterates[0], handle.partition % past.n
    theta = None if iterate is None else iterate.theta
    answer = past.stage(k, handle, theta, b)
    with naming(handle):
        if isinstance(answer, str):
            raise ValueError(answer)
        check_losses([answer[0]])
    with _same_numbers(past, k, handle):
        past.keep_staged(k, handle, placement.is_sparse)
    if following is not None:
        shape = handle.shape[1:] if theta is None else theta.shape  # type: ignore[attr-defined]
        past.announce(following.partition % past.n, following.alone(), shape)
    return answer


def _handle_alone(recovery: Recovery, k: int, handle: BatchHandle, as_sparse: bool) -> Message:
    return in_worker.append_again, (handle, as_sparse)


def state_dict(past: SplitPast) -> State:
    """Return the same state as rows in one process; from the log if the cluster is lost."""
    placement: RowsPlacement = past.placement
    return joined_state(past.states(), placement.in_order)


def load_state(past: SplitPast, state: State) -> None:
    """Load a ``state_dict``, from any place: each shard gets a range of consecutive rows."""
    parts = parts_of_state(state, past.n)
    past.load_parts(parts)
    past.placement.start_with(parts)


# The table ----------------------------------------------------------------------------------------


def _question(join: Any, **options: Any) -> Verb:
    """Return a verb that asks all shards that have rows the same question."""
    return Verb(_holders, join, **options)


TABLE: Table = {
    "add_model": add_model,
    "model": Verb(everybody, first, run="add_model", kept="first"),
    "models": models,
    "keep_models": Verb(everybody, kept="log", note="keep_models", ends=("line",)),
    "products": lambda past, X, thetas: np.asarray(here(X) @ thetas, dtype=float),
    "append": append,
    "append_to": Verb(
        only, run="append", kept="log", logged=_without_predictions, note="arrived",
        ends=("line",),
    ),
    "append_handle": append_handle,
    "stage": Verb(only, first, run=in_worker.stage),
    "keep_staged": Verb(
        only, run=in_worker.keep_staged, kept="log", logged=_handle_alone, note="arrived",
        ends=("line",),
    ),
    "announce": Verb(only, run=in_worker.announce),
    "widen": Verb(everybody, run="append", kept="log"),
    "weigh": Verb(_positions, kept="log"),
    "rescale": Verb(_holders, kept="log", ends=("line",)),
    "keep": Verb(_masks, kept="log", note="keep", ends=("line",)),
    "arrange": lambda past: None,  # rows that are spread out are summed in parts anyway
    "sharing": lambda past, threads: threads,
    "move": Verb(_holders, ends=("line",), each=True),
    "refresh": refresh,
    "refresh_from": Verb(_holders, run=in_worker.refresh_from, ends=("line",), each=True),
    "line": _question(sums, kept="last", each=True),
    "change": Verb(_holders, kept="last", slot="line", each=True),
    "line_value": _question(total),
    "line_slope": _question(total),
    "advance": Verb(_holders, ends=("line",), each=True),
    "gradients": _question(total, tree=True),
    "total": _question(total),
    "totals": _question(sums),
    "few_rows": lambda past, m: None,
    "agree": lambda past, m: None,  # a rebuilt shard computes its predictions from theta
    "limits": _question((min, max)),
    "residuals": _question((np.concatenate, np.concatenate)),
    "steepest": _question(max),
    "second_order": _question(sums),
    "gram_product": _question(total),
    "predictions": predictions,
    "predicted": Verb(_holders, list, run=in_worker.predicted),
    "state_dict": state_dict,
    "load_state": load_state,
    "load_parts": Verb(each_one, first, run="load_state", kept="log", ends=("line",)),
}  # fmt: skip


class RowsPlacement(Placement):
    """Which shard has which row."""

    opens_handles = True

    def __init__(self, n: int) -> None:
        self.iterates: list[DenseIterate | None] = []  # they move in this process
        self.options: list[tuple[Loss, bool]] = []  # the loss of each model; may its moves wait?
        self.next = 0  # the shard that gets the next batch
        self.dtype, self.is_sparse = None, False  # what all rows are kept in; None: none came
        self.counts = [0] * n  # how many rows each shard has
        self.owners = GrowingArray(dtype=np.uint16)  # the shard of each row, in order

    def __len__(self) -> int:
        return len(self.owners)

    def opening(self, k: int, n: int, device: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what makes a shard."""
        return in_worker.new_shard, (device,)

    def rebuild(self, recovery: Recovery, k: int, logged: Iterable[Message]) -> Iterator[Message]:
        """Yield the log, then theta, to compute predictions from."""
        yield from logged
        for m, iterate in enumerate(self.iterates):
            if iterate is not None and self.counts[k]:
                yield in_worker.refresh_from, (m, np.asarray(iterate.theta))

    def keep_models(self, models: list[int]) -> None:
        """Note which models are kept."""
        self.options = [self.options[m] for m in models]
        self.iterates = [self.iterates[m] for m in models]

    # Rows that come and go ------------------------------------------------------------------------

    def like_others(self, X: Any) -> Any:
        """Return X as sparse or dense, whichever the first rows were."""
        if self.dtype is None or sparse.issparse(X) == self.is_sparse:
            return X
        return sparse.csr_array(X) if self.is_sparse else X.toarray()

    def widest(self, X: Any) -> Any:
        """Return the type of numbers that fits all rows and X."""
        return X.dtype if self.dtype is None else np.result_type(X.dtype, self.dtype)

    def arrived(self, k: int, X: Any, *others: Any) -> None:
        """Note that shard k has got rows."""
        if self.dtype is None:
            self.is_sparse = sparse.issparse(X)  # a handle counts as dense
        n = X.shape[0]
        owners = self.owners.extended(np.full(n, k))
        self.dtype, self.next = self.widest(X), (k + 1) % len(self.counts)
        self.counts[k] += n
        self.owners = owners

    def keep(self, mask: Array) -> None:
        """Note that the rows where ``mask`` is False are gone."""
        self.owners = self.owners.kept(mask)
        self.counts = np.bincount(self.owners.data, minlength=len(self.counts)).tolist()

    def start_with(self, parts: list[State]) -> None:
        """Note which shard has which row of a state."""
        self.counts = [len(part["w"]) for part in parts]
        self.owners = GrowingArray(dtype=np.uint16)
        self.owners.append(np.repeat(np.arange(len(parts)), self.counts))
        self.dtype, self.next = None, 0
        rows = parts[0]["rows"]
        if rows is not None:
            self.is_sparse = rows["kind"] == "sparse"
            self.dtype = rows["bulk_data" if self.is_sparse else "data"].dtype

    def in_order(self, parts: list[Any]) -> Any:
        """Join one array from each shard that has rows, in the order in which rows came."""
        order = np.argsort(self.owners.data, kind="stable")
        if sparse.issparse(parts[0]):
            return sparse.vstack(parts, format="csr")[np.argsort(order, kind="stable")]
        joined = np.concatenate(parts)
        out = np.empty_like(joined)
        out[order] = joined
        return out
