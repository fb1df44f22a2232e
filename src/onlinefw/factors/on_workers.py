"""Lists of chains solved by workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from .._typing import Array
from ..past.place import check_place
from ..past.ray.errors import ClusterLost
from ..past.ray.shards import Shards, added
from .chains import HERE, NONE, Chains
from .lists import EntryLists
from .on_gpu import check_for_gpu
from .solver import Solver

__all__ = ["OnWorkers"]

Message = tuple[str, tuple[Any, ...]]


class OnWorkers(Solver):
    """Worker k of n has the lists of rows i and of columns i with i % n = k, and all samples.

    Before they solve, workers get the entries that are new in their lists and the samples of the
    other side that have changed. This process has all lists and samples, too: a worker that was
    restarted gets its part from here.
    """

    def __init__(self, chains: Chains, device: str, workers: int) -> None:
        if device == "cuda":
            check_for_gpu(chains)
        self.device, self.workers = device, workers
        self._sent = _Sent(chains, workers, device)
        self._shards = Shards(workers, device, self._sent)

    def check(self) -> None:
        """Raise an error if the cluster is lost."""
        self._shards.check_alive()

    def close(self) -> None:
        """Give the workers back."""
        self._shards.close()

    def entries_changed(self) -> None:
        """Let workers have nothing; they get everything again when it is needed."""
        self._sent.nothing = True
        with suppress(ClusterLost):  # then they have nothing anyway
            self._shards.tell("begin", [()] * self._shards.n)

    def solve(
        self, chains: Chains, of_rows: bool, which: Array, numbers: Array
    ) -> tuple[Array, Array]:
        """Solve lists; if the cluster is lost, here: then this round is whole."""
        self._sent.chains = chains
        try:
            return self._solve(chains, of_rows, which, numbers)
        except ClusterLost:
            return HERE.solve(chains, of_rows, which, numbers)
        except BaseException:
            self._shards.rebuild_later()
            raise
        finally:
            self._sent.chains = None

    def _solve(
        self, chains: Chains, of_rows: bool, which: Array, numbers: Array
    ) -> tuple[Array, Array]:
        sent, n, side = self._sent, self._shards.n, chains.side(of_rows)
        for one in (True, False):
            self._shards.tell("take", sent.news(one))
        known = side.priors, side.solved, chains.noise, chains.moments
        its = [which % n == k for k in range(n)]
        asked = [(of_rows, which[mine], numbers[mine], *known) for mine in its]
        answers = self._shards.ask("solve", asked)
        for mine, (means, samples, _, _) in zip(its, answers, strict=True):
            side.means[which[mine]], side.samples[which[mine]] = means, samples
        sent.changed[of_rows].append(which)
        return added(*(one[2] for one in answers)), added(*(one[3] for one in answers))


class _Sent:
    """What workers have been sent, and how one that was restarted gets it again."""

    def __init__(self, chains: Chains, n: int, device: str) -> None:
        names = "rank", "count", "loss", "biased", "clipped", "seed"
        self._making = {name: getattr(chains, name) for name in names}, chains.lists.dtype.name
        self._n, self._device = n, device
        self._lengths: dict[bool, Array] = {}
        #: Rows, or columns, whose samples were not sent since they changed.
        self.changed: dict[bool, list[Array]] = {}
        self.chains: Any = None  # while something is sent
        self.nothing = True

    def news(self, of_rows: bool) -> list[tuple[Any, ...]]:
        """Return what each worker has to get of a side; from now on it counts as sent."""
        if self.nothing:
            self._lengths, self.changed, self.nothing = {}, {}, False
        before, changed = self._lengths.get(of_rows), self.changed.get(of_rows)
        self._lengths[of_rows] = self.chains.side(of_rows).lists.length.copy()
        self.changed[of_rows] = []
        samples = self._samples(of_rows, changed)
        return [self._part(k, of_rows, before, samples) for k in range(self._n)]

    def opening(self, k: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return what makes the part of worker k, without data."""
        return _Part, (*self._making, self._device)

    def messages(self, k: int) -> Iterator[Message]:
        """Yield everything that worker k has been sent."""
        for of_rows in (True, False):
            yield "take", self._part(k, of_rows, None, self._samples(of_rows, None))

    def _samples(self, of_rows: bool, changed: list[Array] | None) -> tuple[Array, Array, Array]:
        """Return some rows and their samples; None: all, and their means."""
        side = self.chains.side(of_rows)
        if changed is None:
            n = self.chains.shape[not of_rows]
            return np.arange(n), side.samples[:n], side.means[:n]
        which = np.concatenate([NONE, *changed])
        return which, side.samples[which], side.means[:0]

    def _part(
        self, k: int, of_rows: bool, before: Array | None, samples: tuple[Array, Array, Array]
    ) -> tuple[Any, ...]:
        """Return what worker k gets of a side: entries since its lists were so long."""
        lists = self.chains.side(of_rows).lists
        its = np.arange(k, lists.length.size, self._n)
        skipped = np.zeros(its.size, np.int64)
        if before is not None:
            known = its < before.size
            skipped[known] = before[its[known]]
        longer = lists.length[its] > skipped
        its, skipped = its[longer], skipped[longer]
        indptr, other, value, weight = lists.some(its, skipped)
        weights = None if lists.weight is None else weight
        return of_rows, *self.chains.shape, its, np.diff(indptr), other, value, weights, *samples


class _Part:
    """In a worker: the lists that it solves, and the samples of all."""

    def __init__(self, options: dict[str, Any], dtype: str, device: str) -> None:
        self._making = options, dtype, device
        self.begin()

    def begin(self) -> None:
        options, dtype, device = self._making
        self._chains = Chains(EntryLists((1, 1), dtype), **options)
        self._chains.use_place(check_place(device, None))

    def take(
        self, of_rows: bool, m1: int, m2: int, which: Array, counts: Array, other: Array,
        value: Array, weight: Array | None, changed: Array, samples: Array, means: Array,
    ) -> None:  # fmt: skip
        """Add entries to lists of a side, and let some of it have other samples."""
        chains, side = self._chains, self._chains.side(of_rows)
        chains.grown(m1, m2)()
        weights = None if weight is None else weight.astype(float)
        its = np.repeat(which, counts), other.astype(np.int64), value.astype(float)
        side.lists.append(*its, weights)
        side.samples[changed] = samples
        if len(means):
            side.means[changed] = means
        chains.solver.samples_changed(chains, of_rows, changed)

    def solve(
        self, of_rows: bool, which: Array, numbers: Array, priors: Array, solved: Array,
        noise: Array, moments: Array,
    ) -> tuple[Array, Array, Array, Array]:  # fmt: skip
        """Solve lists; return means and samples, and what is added to sums."""
        chains, side = self._chains, self._chains.side(of_rows)
        side.priors[:], side.solved[:] = priors, solved
        chains.noise[:], chains.moments[:] = noise, moments
        sums, errors = chains.solver.solve(chains, of_rows, which, numbers)
        return side.means[which], side.samples[which], sums, errors
