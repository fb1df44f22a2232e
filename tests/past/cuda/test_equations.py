"""The kernels that sum up normal equations, against double precision in this process's memory."""

import numpy as np
import pytest

from onlinefw._devices import to_host
from onlinefw.iterates import LowRank
from onlinefw.losses import Square
from onlinefw.past.cuda import equations
from onlinefw.past.host.listed_entries import ListedEntries
from onlinefw.past.some_regressions import Other, packed_size

SHAPE = 9, 6
#: Rank and models: one thread for several pairs, fewer pairs than a warp has threads.
SIZES = [(14, 3), (1, 1), (30, 2)]


def entries(rng, n, dtype):
    rows, cols = (rng.integers(m - 1, size=n) for m in SHAPE)  # the last ones have none
    w = rng.uniform(0.5, 2.0, n).astype(dtype).astype(float)
    return rows, cols, w, rng.standard_normal(n)


def other_side(rng, size, models, rank, dtype):
    factors = np.zeros((size, models, rank + 2), dtype)
    factors[:, :, :rank] = rng.standard_normal((size, models, rank))
    return Other(rank, factors.reshape(size, -1), rng.standard_normal((size, models)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rank", "models"), SIZES)
def test_equations_are_those_in_memory(any_cuda, rng, rank, models, dtype, monkeypatch):
    monkeypatch.setattr(equations, "SEGMENT", 40)
    monkeypatch.setattr(equations, "AT_ONCE", 8 * models * packed_size(rank) * 5)
    rows, cols, w, y = entries(rng, 600, dtype)
    past = ListedEntries(LowRank(SHAPE), float, Square())
    past.append(rows, cols, w, y)
    on_device = any_cuda.asarray
    c, s = on_device(w.astype(dtype)), on_device((w * y).astype(dtype))
    for of_rows, own, its in ((True, rows, cols), (False, cols, rows)):
        n, n_other = SHAPE if of_rows else SHAPE[::-1]
        which, mean = np.array([n - 1, 3, 0, 4]), 0.7
        other = other_side(rng, n_other, models, rank, dtype)
        order = np.argsort(own, kind="stable")
        bounds = [np.searchsorted(own[order], which, side) for side in ("left", "right")]
        there = Other(rank, *map(on_device, other[1:]))
        out = any_cuda.zeros((which.size, models, packed_size(rank)))
        parts = on_device(its.astype(np.uint32)), c, s
        equations.add_equations(
            tuple(bounds), on_device(order.astype(np.uint32)), parts, there, mean, out
        )
        wide = Other(rank, *(x.astype(float) for x in other[1:]))
        expected = past.equations(of_rows, which, wide, mean)
        tol = (1e-5 if dtype is np.float32 else 1e-12) * np.abs(expected).max()
        np.testing.assert_allclose(to_host(out), expected, rtol=0, atol=tol)
        in_order = tuple(on_device(to_host(x)[order]) for x in parts)
        equations.add_equations(tuple(bounds), None, in_order, there, mean, out)  # once more
        np.testing.assert_allclose(to_host(out), 2.0 * expected, rtol=0, atol=2.0 * tol)
