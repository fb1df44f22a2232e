"""X'X of everything seen, added up by workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._threads import one_blas_thread
from .._typing import Array
from ..objectives.least_squares import Moments, add_gram, scale_rows
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
    """X'X of some batches, in the process of a worker."""

    def __init__(self, n_features: int) -> None:
        self.H = np.zeros((n_features, n_features))

    def working(self) -> AbstractContextManager[Any]:
        """Return a context to carry out a message in."""
        return one_blas_thread()

    def wait(self) -> None:
        """Do nothing: the answer says that all earlier messages have been carried out."""

    def add(self, w: Array, *arrays: Array) -> None:
        """Add a batch."""
        X = as_rows(list(arrays), len(self.H))
        add_gram(self.H, X, X if (w == 1.0).all() else scale_rows(X, w))

    def add_sums(self, H: Array) -> None:
        """Add sums that were made earlier."""
        self.H += H

    def rows(self, indices: Any) -> Array:
        """Return some rows, or one."""
        return self.H[indices]

    def product(self, x: Array) -> Array:
        """Return H x."""
        return self.H @ x

    def whole(self) -> Array:
        """Return H."""
        return self.H


class SplitGram(LinearOperator):
    """The sum of all workers' X'X: rows, blocks and products are asked for when needed."""

    def __init__(self, moments: ShardedMoments) -> None:
        n = moments.mean.size
        super().__init__(np.dtype(float), (n, n))
        self._moments = moments

    def __getitem__(self, indices: Any) -> Array:
        return sum(self._moments.ask("rows", indices))

    def _matvec(self, x: Array) -> Array:
        return sum(self._moments.ask("product", np.asarray(x, float).reshape(-1)))

    _rmatvec = _matvec

    def copy(self) -> Array:
        """Return the sum."""
        return self._moments.whole()


class ShardedMoments(Moments, Elsewhere):
    """:class:`~onlinefw.objectives.least_squares.Moments` whose X'X is added up by workers.

    Means, and what concerns targets, cost little and stay here.
    """

    home_class = Moments

    def __init__(
        self, n_features: int, centred: bool = False, *, workers: int, log_dir: Any = None
    ) -> None:
        self.workers = check_workers(workers)
        self._n = workers
        self.centred, self.mean, self.total_weight = centred, np.zeros(n_features), 0.0
        self.lanes = []
        self._next = 0
        self._logged = [0] * workers
        self._log = BatchLog(workers, log_dir)
        args = [(n_features,)] * workers
        self.shards = Shards(workers, "cpu", GramShard, args, self._rebuild)

    def close(self) -> None:
        """Give the workers back; the log goes, too."""
        self.shards.close()
        self._log.close()

    @property
    def H(self) -> Any:
        """X'X, with the workers."""
        return SplitGram(self)

    @H.setter
    def H(self, sums: Array) -> None:
        self._log.append(0, [sums])
        self.shards.tell("add_sums", [(sums,)] + [None] * (self._n - 1))

    def ask(self, method: str, *args: Any) -> list[Any]:
        """Ask all workers."""
        return self.shards.ask(method, [args] * self._n)

    def observe(self, X: Any, targets: list[Any], sample_weight: Any = None) -> list[float]:
        """Add rows, with a target for each lane; return each lane's mean loss of them."""
        self.shards.check_alive()
        return super().observe(X, targets, sample_weight)

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
        self._log.replace(k, [self.shards.ask("whole", asked)[k]])
        self._logged[k] = 0

    def _rebuild(self, k: int) -> Iterator[Message]:
        """What a restarted worker is told."""
        for arrays in self._log.records(k):
            yield ("add_sums" if len(arrays) == 1 else "add"), tuple(arrays)

    def whole(self) -> Array:
        """Return X'X in this process."""
        try:
            return sum(self.ask("whole"))
        except ClusterLost:
            shard = GramShard(self.mean.size)
            for k in range(self._n):
                for method, args in self._rebuild(k):
                    getattr(shard, method)(*args)
            return shard.H

    def home_state(self) -> dict[str, Any]:
        """Return the attributes of the same sums in one process."""
        names = ("centred", "mean", "total_weight", "lanes")
        return {**{name: getattr(self, name) for name in names}, "H": self.whole()}
