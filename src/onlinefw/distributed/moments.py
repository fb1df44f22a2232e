"""X'X of everything seen, added up by workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._arrays import received_here
from .._devices import check_device
from .._threads import one_blas_thread
from .._typing import Array
from ..atoms import Atom, SignedCoordinate
from ..linalg import top_singular_pair
from ..objectives.host_gram import HostGram
from ..objectives.least_squares import Moments
from ..objectives.places import new_gram
from .batch_log import BatchLog
from .cluster import check_workers
from .elsewhere import Elsewhere
from .errors import ClusterLost
from .rows_shard import as_arrays, as_rows
from .shards import Message, Shards

__all__ = ["GramShard", "ShardedMoments", "SplitGram"]

#: A log longer than so many times the sums is replaced by the sums.
LOG_SHARE = 4


class GramShard:
    """X'X of some batches, in the process of a worker: in memory or on a GPU."""

    def __init__(self, n_features: int, device: str) -> None:
        self.gram, self._n = new_gram(check_device(device), n_features), n_features

    def working(self) -> AbstractContextManager[Any]:
        """Return a context to carry out a message in."""
        return one_blas_thread()

    def wait(self) -> None:
        """Do nothing: the answer says that all earlier messages have been carried out."""

    def add(self, w: Array, *arrays: Array) -> None:
        """Add a batch."""
        X = self.gram.bring(as_rows(list(arrays), self._n))
        self.gram.add(X, X if (w == 1.0).all() else self.gram.scaled(X, w))

    def add_sums(self, H: Array) -> None:
        """Add sums that were made earlier."""
        self.gram.load(self.gram.values() + H)

    def combine(self, chosen: Array, values: Array) -> Array:
        """Return the sum of some columns, each times a value."""
        return self.gram.combine(chosen, values)

    def block(self, chosen: Array) -> Array:
        """Return some rows and columns."""
        return self.gram.block(chosen)

    def times(self, x: Array) -> Array:
        """Return H x."""
        return self.gram.times(x)

    def values(self) -> Array:
        """Return H."""
        return self.gram.values()


class SplitGram(HostGram):
    """The sum of all workers' X'X: columns, blocks and products are asked for when needed."""

    def __init__(self, moments: ShardedMoments) -> None:
        self._moments = moments

    def times(self, vector: Array) -> Array:
        """Return H v."""
        return sum(self._moments.ask("times", np.asarray(vector, float)))

    def image(self, atom: Atom) -> Array:
        """Return H a."""
        if isinstance(atom, SignedCoordinate):
            return self.combine(np.array([atom.index]), np.array([atom.value]))
        return super().image(atom)

    def combine(self, chosen: Array, values: Array) -> Array:
        """Return the sum of values_k H e_{chosen_k}."""
        return sum(self._moments.ask("combine", chosen, values))

    def block(self, chosen: Array) -> Array:
        """Return H in the chosen rows and columns."""
        return sum(self._moments.ask("block", chosen))

    def largest_eigenvalue(self) -> float:
        """Return the largest eigenvalue of H."""
        n = self._moments.mean.size
        product = LinearOperator((n, n), matvec=self.times, rmatvec=self.times, dtype=float)
        return top_singular_pair(product, tol=1e-6)[1]

    def values(self) -> Array:
        """Return the sum."""
        return self._moments.whole()

    def load(self, H: Array) -> None:
        """Become a given matrix, where there was none."""
        self._moments.load(np.array(H, float))


class ShardedMoments(Moments, Elsewhere):
    """:class:`~onlinefw.objectives.least_squares.Moments` whose X'X is added up by workers.

    Means, and what concerns targets, cost little and stay here.
    """

    home_class = Moments

    def __init__(
        self,
        n_features: int,
        centred: bool = False,
        *,
        workers: int,
        device: str = "cpu",
        log_dir: Any = None,
    ) -> None:
        self.workers = check_workers(workers)
        self._n = workers
        self.centred, self.mean, self.total_weight = centred, np.zeros(n_features), 0.0
        self.device, self.gram = device, SplitGram(self)  # the device of the workers
        self.lanes = []
        self._next = 0
        self._logged = [0] * workers
        self._log = BatchLog(workers, log_dir)
        args = [(n_features, device)] * workers
        self.shards = Shards(workers, device, GramShard, args, self._rebuild)

    def close(self) -> None:
        """Give the workers back; the log goes, too."""
        self.shards.close()
        self._log.close()

    def load(self, sums: Array) -> None:
        """Give one worker sums that were made earlier."""
        self._log.append(0, [sums])
        self.shards.tell("add_sums", [(sums,)] + [None] * (self._n - 1))
        self.ask("wait")  # until it is there

    def ask(self, method: str, *args: Any) -> list[Any]:
        """Ask all workers."""
        return self.shards.ask(method, [args] * self._n)

    def observe(self, X: Any, targets: list[Any], sample_weight: Any = None) -> list[float]:
        """Add rows, with a target for each lane; return each lane's mean loss of them."""
        self.shards.check_alive()
        return super().observe(received_here("X", X, self.device), targets, sample_weight)

    def _add_gram(self, X: Any, weighted: Any, w: Array) -> None:
        k, self._next = self._next, (self._next + 1) % self._n
        arrays = as_arrays(X)
        self._log.append(k, [w, *arrays])
        self.shards.tell("add", [(w, *arrays) if j == k else None for j in range(self._n)])
        self._logged[k] += sum(array.nbytes for array in arrays)
        if self._logged[k] > LOG_SHARE * 8 * self.mean.size**2:
            self._shorten_log(k)

    def _shorten_log(self, k: int) -> None:
        """Replace a worker's log by its sums: neither grows with the stream."""
        asked: list[Any] = [() if j == k else None for j in range(self._n)]
        self._log.replace(k, [self.shards.ask("values", asked)[k]])
        self._logged[k] = 0

    def _rebuild(self, k: int) -> Iterator[Message]:
        """What a restarted worker is told."""
        for arrays in self._log.records(k):
            yield ("add_sums" if len(arrays) == 1 else "add"), tuple(arrays)

    def whole(self) -> Array:
        """Return X'X in this process."""
        try:
            return sum(self.ask("values"))
        except ClusterLost:
            shard = GramShard(self.mean.size, "cpu")
            for k in range(self._n):
                for method, args in self._rebuild(k):
                    getattr(shard, method)(*args)
            return shard.values()

    def home_state(self) -> dict[str, Any]:
        """Return the attributes of the same sums in one process."""
        names = ("centred", "mean", "total_weight", "lanes")
        gram = HostGram(self.mean.size)
        gram.load(self.whole())
        return {**{name: getattr(self, name) for name in names}, "device": "cpu", "gram": gram}
