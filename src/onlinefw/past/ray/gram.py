"""X'X spread over workers: they get batches in turn, and each sums up its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._arrays import here
from ..._typing import Array, State
from ..host.gram import HostGram
from .joins import first, total
from .recovery import Placement
from .split_past import SplitPast
from .splits import everybody, only
from .table import Table, Verb

__all__ = ["TABLE", "GramPlacement"]

#: A log of more than so many times the bytes of X'X is replaced by X'X.
LOG_SHARE = 4


def add(past: SplitPast, X: Any, w: Array) -> None:
    """H += X' diag(w) X in the next shard in turn; keep its log short."""
    k = past.placement.next
    past.add_to(k, X, w)
    if past.placement.logged[k] > LOG_SHARE * 8 * past.placement.size**2:
        (state,) = [one for one in past.shards.ask("state_dict", only(past, k)) if one]
        past.log.replace(k, ("load_state", (state,)))
        past.placement.logged[k] = 0


def state_dict(past: SplitPast) -> State:
    return {"H": total([state["H"] for state in past.states()])}


def _in_one_part(past: SplitPast, state: State) -> list[Any]:
    """Give one shard all of H; the others hold nothing."""
    nothing = {"H": np.zeros((past.placement.size,) * 2)}
    return [(state if k == 0 else nothing,) for k in range(past.n)]


TABLE: Table = {
    "bring": lambda past, X: HostGram.bring(here(X)),
    "add": add,
    "add_to": Verb(only, run="add", kept="log", note="added"),
    "rescale": Verb(everybody, kept="log", note="rescaled"),
    "times": Verb(everybody, total),
    "combine": Verb(everybody, total),
    "block": Verb(everybody, total),
    "state_dict": state_dict,
    "load_state": Verb(_in_one_part, first, kept="log"),
}


class GramPlacement(Placement):
    """Which shard gets the next batch, and how long the logs are."""

    def __init__(self, size: int, n: int) -> None:
        self.size, self.next, self.logged = size, 0, [0] * n
        self.n_added = 0

    def added(self, k: int, X: Any, w: Array) -> None:
        """Note that shard k has got rows."""
        self.n_added += 1
        self.logged[k] += X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes
        self.next = (k + 1) % len(self.logged)

    def rescaled(self, factor: float) -> None:
        """Note that all of H has been multiplied."""
        self.n_added += 1

    def opening(self, k: int, n: int, device: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what makes a shard."""
        return _new_shard, (self.size, device)


def _new_shard(size: int, device: str) -> Any:
    from ..place import check_place, new_gram

    return new_gram(check_place(device, None), size)
