"""Each kernel over rows against float64 numpy, for all losses, numbers and shapes."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from onlinefw._devices import to_host
from onlinefw.cuda.dense_rows import CudaDenseRows
from onlinefw.cuda.predictions import CudaPredictions
from onlinefw.cuda.sparse_rows import CudaSparseRows
from onlinefw.objectives.row_store import RowStore

from .problems import KINDS, LOSSES, as_double, make_rows, scale_of

TOLERANCE = 1e-5
#: Rows and features: of no round size, fewer than a warp, more than a warp can hold, one of each.
SHAPES = [(1, 1), (7, 3), (300, 33), (101, 785), (130, 1024), (37, 2049)]


def close(found, expected):
    """Compare relatively to the largest: entries may cancel to almost nothing."""
    np.testing.assert_allclose(
        to_host(found), expected, rtol=TOLERANCE, atol=TOLERANCE * np.abs(expected).max(initial=0)
    )


def rows_on_device(X, *, parts=3):
    """Return rows that came in batches, one of them a single row."""
    cls = CudaSparseRows if sp.issparse(X) else CudaDenseRows
    rows = cls((X.shape[1],), X.dtype)
    cuts = np.unique([0, 1, *np.linspace(0, X.shape[0], parts + 1).astype(int)])
    for first, end in pairwise(cuts):
        rows.append(X[first:end])
    return rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_products(any_cuda, rng, kind, shape):
    X = make_rows(rng, *shape, kind)
    rows, reference = rows_on_device(X), as_double(X)
    v, r = rng.standard_normal(shape[1]), rng.standard_normal((shape[0], 11))
    close(rows.matvec(v), reference @ v)
    close(rows.rmatvec(r[:, 0]), reference.T @ r[:, 0])
    close(rows.rmatvec(any_cuda.asarray(r)), reference.T @ r)
    j = shape[1] // 2
    close(rows.column(j), reference[:, j])
    some = np.unique(rng.integers(0, shape[1], 5))
    values = rng.standard_normal(some.size)
    close(rows.columns(some, values), reference[:, some] @ values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [40, 5000])
def test_gram_of_chosen_columns(any_cuda, rng, kind, n_rows):
    X = make_rows(rng, n_rows, 30, kind)
    w, chosen = rng.random(n_rows), np.array([0, 3, 4, 17, 29])
    gram, cross = rows_on_device(X).gram(chosen, any_cuda.asarray(w))
    part = as_double(X)[:, chosen]
    if kind.startswith("sparse") or n_rows < 2048:
        close(gram, part.T @ (w[:, None] * part))
        close(cross, part.T @ w)
    else:  # evenly spaced rows stand for all
        some, w_some = part[::2], w[::2] * w.sum() / w[::2].sum()
        close(gram, some.T @ (w_some[:, None] * some))
        close(cross, some.T @ w_some)


@pytest.mark.parametrize("merged", [0, 20, 41])
@pytest.mark.parametrize("kind", ["sparse float64", "sparse float32"])
@pytest.mark.usefixtures("any_cuda")
def test_columns_and_tail(rng, kind, merged):
    X = make_rows(rng, 41, 50, kind)
    rows = CudaSparseRows((50,), X.dtype)
    rows._add(X[:merged])
    rows._merge()
    rows._add(X[merged:])
    assert rows._bulk_rows == merged
    r = rng.standard_normal(41)
    close(rows.rmatvec(r), as_double(X).T @ r)
    close(rows.column(7), as_double(X)[:, 7])
    here = rows.on_host()
    np.testing.assert_array_equal(here.column(7), as_double(X)[:, 7])
    assert here._bulk_rows == merged


@pytest.mark.usefixtures("any_cuda")
def test_a_long_column_is_summed_in_segments(rng):
    X = sp.csr_array(np.where(np.arange(3) == 1, rng.standard_normal((3000, 1)), 0.0))
    rows, r = rows_on_device(X), rng.standard_normal(3000)
    rows._merge()
    assert rows._n_segments == 6
    close(rows.rmatvec(r), X.T @ r)


@pytest.mark.parametrize("kind", KINDS)
def test_kept_rows(any_cuda, rng, kind):
    X = make_rows(rng, 101, 13, kind)
    rows, mask = rows_on_device(X), rng.random(101) < 0.4
    rows.keep(mask)
    more = make_rows(rng, 6, 13, kind)
    rows.append(more)
    reference = np.vstack((as_double(X)[mask], as_double(more)))
    v, r = rng.standard_normal(13), rng.standard_normal(len(reference))
    close(rows.matvec(v), reference @ v)
    close(rows.rmatvec(r), reference.T @ r)
    close(rows.column(5), reference[:, 5])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_back_as_they_were(any_cuda, rng, kind):
    X = make_rows(rng, 50, 9, kind)
    rows = rows_on_device(X)
    here = rows.on_host()
    again = type(rows).from_host(here)
    for one in (here, again.on_host()):
        np.testing.assert_array_equal(
            np.column_stack([one.column(j) for j in range(9)]), as_double(X)
        )
    assert again.dtype == X.dtype
    r = rng.standard_normal(50)
    np.testing.assert_allclose(again.rmatvec(r), rows.rmatvec(r), rtol=1e-12)


def carried(rng, name, kind, shape):
    """Return predictions on the device, and everything about them in numpy."""
    loss, targets = LOSSES[name]
    X = make_rows(rng, *shape, kind)
    w = rng.random(shape[0]) + 0.1
    w[::7] = 0.0  # forgotten rows
    w[-1] = 1.0
    y, z = targets(rng.standard_normal(shape[0])), 0.7 * rng.standard_normal(shape[0])
    store = RowStore(device="cuda")
    store.rows = rows_on_device(X)
    store._w.append(w)
    store._w_there.append(w)
    store.total_weight = float(w.sum())
    there = CudaPredictions(store, loss)
    there.append(z, y)
    return there, loss, as_double(X), z, y, w


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("shape", [(301, 53), (23, 785), (40, 1500)])
@pytest.mark.usefixtures("any_cuda")
def test_gradient_after_a_move(rng, name, kind, shape):
    there, loss, X, z, y, w = carried(rng, name, kind, shape)
    a, step, b = rng.standard_normal(shape[1]) / scale_of(kind) / np.sqrt(shape[1]), 0.3, -0.2
    there.wait(a, step)
    more = rng.standard_normal(2)
    gradient = there.gradient(b)
    z = 0.7 * z + 0.3 * (X @ a)
    close(gradient, X.T @ (w * loss.derivative(z + b, y)))
    close(there.values(), z)
    close(there.gradient(b), X.T @ (w * loss.derivative(z + b, y)))  # nothing waits any more
    there.wait(a, 0.5)
    there.follow(there._store.rows.matvec(a), 0.25)  # the waiting move comes first
    z = 0.75 * (0.5 * z + 0.5 * (X @ a)) + 0.25 * (X @ a)
    close(there.values(), z)
    there.shift(there._store.rows.column(0), 0.1 * more[0] / scale_of(kind))
    close(there.values(), z + 0.1 * more[0] / scale_of(kind) * X[:, 0])


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("n_rows", [1, 31, 700])
def test_sums_over_rows(any_cuda, rng, name, n_rows):
    check_sums(any_cuda, rng, name, n_rows)


@pytest.mark.parametrize("name", list(LOSSES))
def test_sums_over_many_rows(cuda, rng, name):
    check_sums(cuda, rng, name, 100_003)


def check_sums(module, rng, name, n_rows):
    there, loss, _, z, y, w = carried(rng, name, "float32", (n_rows, 3))
    b = 0.15
    close(there.total(b), w @ loss.value(z + b, y))
    close(there.slopes(b), w * loss.derivative(z + b, y))
    close(there.bends(b), w * loss.model_curvature(z + b, y))
    close(there.steepest(b), np.abs(w * loss.derivative(z + b, y)).max())
    close(
        there._sums(b)[1:3],
        [w @ loss.derivative(z + b, y), w @ loss.second_derivative(z + b, y)],
    )
    image = 0.5 * rng.standard_normal(n_rows)
    image_there, d, shares = module.asarray(image), image - z, w / w.sum()
    close(there.total_along(image_there, 0.4, b), w @ loss.value(z + 0.4 * image + b, y))
    line = there.line(image_there, b)
    for c in (0.0, 0.3, 1.0):
        close(line.value(c), shares @ loss.value(z + c * d + b, y))
        close(line.slope(c), (shares * loss.derivative(z + c * d + b, y)) @ d)
    if loss.quadratic:
        close(line.curvature, shares @ d**2)
    else:
        assert line.curvature is None


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.usefixtures("any_cuda")
def test_best_intercept_is_that_of_the_host(rng, name):
    there, *_ = carried(rng, name, "float64", (400, 3))
    here = there.on_host()
    for start in (None, 0.3):
        found, expected = there.best_intercept(start), here.best_intercept(start)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(("kind", "width"), [("uint8", 784), ("float32", 1000)])
def test_gradient_of_many_rows(cuda, rng, kind, width):
    there, loss, X, z, y, w = carried(rng, "sigmoid", kind, (20_011, width))
    close(there.gradient(0.1), X.T @ (w * loss.derivative(z + 0.1, y)))
    r = rng.standard_normal((20_011, 3))
    close(there._store.rows.rmatvec(cuda.asarray(r)), X.T @ r)


@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
@pytest.mark.usefixtures("cuda")
def test_dense_gradients_repeat_bit_for_bit(rng, kind):
    there, *_ = carried(rng, "sigmoid", kind, (1003, 100))
    first = there.gradient(0.1)
    for _ in range(3):
        np.testing.assert_array_equal(there.gradient(0.1), first)


@pytest.mark.usefixtures("any_cuda")
def test_a_huge_slope_times_a_zero_feature_is_zero(rng):
    there, *_ = carried(rng, "poisson", "float32", (5, 4))
    there._store.rows = rows_on_device(np.zeros((5, 4), np.float32))
    there.follow(there._store.rows.matvec(np.zeros(4)), 1.0)
    assert np.isfinite(there.gradient(2000.0)).all()
