"""Lists of chains solved on a GPU."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from .._devices import cupy
from .._typing import Array
from .solver import Solver

if TYPE_CHECKING:
    from .chains import Chains, Side

__all__ = ["OnGpu", "check_for_gpu", "solves"]

#: The equations of a list are in the shared memory of a block, which has room for this rank.
LARGEST_RANK = 60
#: So many lists at once have means and samples that are not in this process yet.
AT_ONCE = 2**16
#: Sums over lists are formed in so many parts, and added up in order.
PARTS = 264
HEADERS = ("base.hpp", "expected.hpp", "random.hpp")


class OnGpu(Solver):
    """A GPU with a copy of the lists and samples of both sides, for the square loss.

    After a batch its entries are sent there, and what was solved comes back.
    """

    device = "cuda"

    def __init__(self, chains: Chains) -> None:
        check_for_gpu(chains)
        self._copies: dict[bool, _Copy] = {}
        self._here: Array | None = None  # what comes back comes here first

    def entries_changed(self) -> None:
        """Copy everything again when it is needed."""
        self._copies = {}

    def samples_changed(self, chains: Chains, of_rows: bool, which: Array) -> None:
        """Copy samples."""
        if of_rows in self._copies:
            self._copies[of_rows].take_samples(chains.side(of_rows), which)

    def solve(
        self, chains: Chains, of_rows: bool, which: Array, numbers: Array
    ) -> tuple[Array, Array]:
        """Solve lists, so many at once that the memory for them is bounded."""
        for one in (True, False):
            copy = self._copies.setdefault(one, _Copy(chains.lists.dtype))
            copy.follow(chains.side(one))
        sums = np.zeros((chains.count, 3 * chains.width**2 + 8))
        errors = np.zeros((chains.count, 2))
        for first in range(0, which.size, AT_ONCE):
            part = slice(first, first + AT_ONCE)
            found = self._solve_some(chains, of_rows, which[part], numbers[part])
            sums[:, :-8] += found[:, :-2]
            errors += found[:, -2:]
        sums[:, -8] = which.size
        return sums, errors

    def _solve_some(self, chains: Chains, of_rows: bool, which: Array, numbers: Array) -> Array:
        cp, side, dtype = cupy(), chains.side(of_rows), chains.lists.dtype
        own, other = self._copies[of_rows], self._copies[not of_rows]
        n, count, width = which.size, chains.count, chains.width
        means, samples, features = (cp.empty((n, count, width), dtype) for _ in range(3))
        errors, on_device = cp.empty((n, count, 2)), cp.asarray(which)
        heavy = 0.0 if own.weight is None else 1.0 / chains.newest
        weight = own.value if own.weight is None else own.weight
        kernels = chains.rank, width, dtype.name
        threads = 64 if width <= 32 else 128
        _kernel("solve_lists", *kernels, threads)(
            (n, count), (threads,),
            (
                on_device, cp.asarray(numbers), own.start, own.other, own.value, weight,
                np.float64(heavy), other.samples, cp.asarray(side.priors),
                cp.asarray(np.ascontiguousarray(chains.noise[:, 2])), cp.asarray(side.solved),
                np.int64(chains.seed), np.int64(not of_rows), np.int64(chains.biased),
                np.float64(chains.centre), np.float64(1.0 / chains.unit), means, samples, features,
                errors,
            ),
        )  # fmt: skip
        parts = min(PARTS, n)
        sums = cp.empty((parts, count, 3 * width**2 + 2))
        args = np.int64(n), features, samples, errors, sums
        _kernel("sum_lists", *kernels, threads)((parts, count), (256,), args)
        own.samples[on_device] = samples
        if self._here is None or len(self._here) < n:
            self._here = np.empty((n, count, width), dtype)
        here = self._here[:n]  # memory that is new each time would take longer to fill
        for array, found in ((side.means, means), (side.samples, samples)):
            found.get(out=here)
            array[which] = here
        return sums.sum(axis=0).get()


def solves(model: Any) -> bool:
    """Whether a GPU solves such factors."""
    return not model.zero and model.loss[0] == 0 and model.rank <= LARGEST_RANK


def check_for_gpu(chains: Chains) -> None:
    """Refuse chains that a GPU does not solve."""
    if not solves(chains):
        raise ValueError(
            f"a GPU solves factors of the square loss, of rank {LARGEST_RANK} at most: use "
            "device='cpu', which has workers as well"
        )


class _Copy:
    """The lists of a side one after another, and all its samples, on the GPU."""

    def __init__(self, dtype: Any) -> None:
        cp = cupy()
        self.dtype, self.length = dtype, np.zeros(0, np.int64)
        self.start = cp.zeros(1, np.int64)
        self.other, self.value = cp.zeros(1, np.uint32), cp.zeros(1, dtype)
        self.weight: Any = None
        self.samples: Any = cp.zeros((0, 1, 1), dtype)

    def follow(self, side: Side) -> None:
        """Take entries that are new at the ends of lists, and samples where there are more rows."""
        cp, lists = cupy(), side.lists
        if len(self.samples) != len(side.samples):
            self.samples = cp.asarray(side.samples)
        if (self.weight is None) != (lists.weight is None):
            self.length, self.weight = np.zeros(0, np.int64), None
        length = np.zeros(lists.length.size, np.int64)
        length[: self.length.size] = self.length
        more = lists.length - length
        which = np.flatnonzero(more)
        if not which.size:
            return
        _, *new = lists.some(which, length[which])
        before, after, total = (_pointers(x) for x in (length, more, lists.length))
        size, weighted = int(total[-1]), lists.weight is not None
        other, value = cp.empty(size, np.uint32), cp.empty(size, self.dtype)
        weight = cp.empty(size, self.dtype) if weighted else value
        old = self.other, self.value, self.value if self.weight is None else self.weight
        _kernel("extend_lists", 1, 8, self.dtype.name, 64)(
            (length.size,), (64,),
            (
                cp.asarray(before), cp.asarray(after), *old, *(cp.asarray(x) for x in new),
                np.int64(weighted), other, value, weight,
            ),
        )  # fmt: skip
        self.other, self.value, self.weight = other, value, weight if weighted else None
        self.start, self.length = cp.asarray(total), lists.length.copy()

    def take_samples(self, side: Side, which: Array) -> None:
        """Take the samples of some rows."""
        if len(self.samples) == len(side.samples):  # else all are taken later
            self.samples[cupy().asarray(which)] = cupy().asarray(side.samples[which])


def _pointers(length: Array) -> Array:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))


@cache
def _kernel(name: str, rank: int, width: int, dtype: str, threads: int) -> Any:
    return _module(rank, width, dtype, threads).get_function(name)


@cache
def _module(rank: int, width: int, dtype: str, threads: int) -> Any:
    real = {"float32": "float", "float64": "double"}[dtype]
    sizes = {"REAL": real, "RANK": rank, "WIDTH": width, "THREADS": threads}
    lines = [f"#define {key} {value}\n" for key, value in sizes.items()]
    native = files("onlinefw.native")
    texts = [native.joinpath(name).read_text() for name in HEADERS]
    texts = ["".join(x for x in t.splitlines(True) if not _is_of_files(x)) for t in texts]
    code = "".join([*lines, *texts, files(__package__).joinpath("chains.cu").read_text()])
    return cupy().RawModule(code=code)


def _is_of_files(line: str) -> bool:
    """Whether a line is about files, of which there is one here."""
    return line.startswith(("#pragma once", '#include "'))
