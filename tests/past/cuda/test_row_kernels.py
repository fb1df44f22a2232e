"""Each kernel over rows against float64 numpy, for all losses, numbers and shapes."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from onlinefw._devices import to_host
from onlinefw.atoms import DenseAtom, SignedCoordinate
from onlinefw.iterates import DenseIterate
from onlinefw.objectives.intercept import best_intercept
from onlinefw.past.cuda.dense_rows import CudaDenseRows
from onlinefw.past.cuda.row_loss import CudaRowLoss
from onlinefw.past.cuda.rows import CudaRows
from onlinefw.past.cuda.sparse_rows import CudaSparseRows
from onlinefw.past.host.dense_rows import DenseRows
from onlinefw.past.host.rows import HostRows
from onlinefw.past.host.sparse_rows import SparseRows

from ...pairs import every_pair
from .problems import KINDS, LOSSES, Quartic, as_double, make_rows, scale_of

TOLERANCE = 1e-5
#: Rows and features: of no round size, fewer than a warp, more than a warp can hold, one of each.
NARROW = [(1, 1), (7, 3), (300, 33)]
SHAPES = [*NARROW, (101, 785), (130, 1024), (37, 2049)]


def close(found, expected):
    """Compare relatively to the largest: entries may cancel to almost nothing."""
    np.testing.assert_allclose(
        to_host(found), expected, rtol=TOLERANCE, atol=TOLERANCE * np.abs(expected).max(initial=0)
    )


def rows_on_device(X, *, parts=3, of=lambda batch: batch):
    """Return rows that came in batches, one of them a single row."""
    rows = (CudaSparseRows if sp.issparse(X) else CudaDenseRows)((X.shape[1],))
    cuts = np.unique([0, 1, *np.linspace(0, X.shape[0], parts + 1).astype(int)])
    for first, end in pairwise(cuts):
        rows = rows.extended(of(X[first:end]))
    return rows


def host_rows(rows):
    """Return the same rows in this process's memory."""
    cls = SparseRows if isinstance(rows, CudaSparseRows) else DenseRows
    return cls.from_state(rows.state_dict(), rows.shape)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(kind, shape) for kind in KINDS for shape in (NARROW if "sparse" in kind else SHAPES)],
)
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
    bulk, tail = SparseRows((50,)).extended(X[:merged]).merged(), X[merged:]
    state = bulk.state_dict()
    state.update(tail_data=tail.data, tail_indices=tail.indices, tail_indptr=tail.indptr)
    rows = CudaSparseRows.from_state(state, (50,))
    assert rows._bulk_rows == merged
    r = rng.standard_normal(41)
    close(rows.rmatvec(r), as_double(X).T @ r)
    close(rows.column(7), as_double(X)[:, 7])
    here = host_rows(rows)
    np.testing.assert_array_equal(here.column(7), as_double(X)[:, 7])
    assert here._bulk_rows == merged
    again = CudaSparseRows.from_state(here.state_dict(), (50,))
    assert again._bulk_rows == merged
    close(again.column(7), as_double(X)[:, 7])


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
    before, mask = rows_on_device(X), rng.random(101) < 0.4
    more = make_rows(rng, 6, 13, kind)
    rows = before.kept(mask).extended(more)
    reference = np.vstack((as_double(X)[mask], as_double(more)))
    v, r = rng.standard_normal(13), rng.standard_normal(len(reference))
    close(rows.matvec(v), reference @ v)
    close(rows.rmatvec(r), reference.T @ r)
    close(rows.column(5), reference[:, 5])
    close(before.rmatvec(np.ones(101)), as_double(X).sum(axis=0))  # these stay what they were


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_back_as_they_were(any_cuda, rng, kind):
    X = make_rows(rng, 50, 9, kind)
    rows = rows_on_device(X)
    here = host_rows(rows)
    again = type(rows).from_state(here.state_dict(), here.shape)
    for one in (here, host_rows(again)):
        np.testing.assert_array_equal(
            np.column_stack([one.column(j) for j in range(9)]), as_double(X)
        )
    np.testing.assert_array_equal(as_double(rows.matrix()), as_double(X))
    assert again.dtype == rows.dtype == X.dtype
    r = rng.standard_normal(50)
    np.testing.assert_allclose(again.rmatvec(r), rows.rmatvec(r), rtol=1e-12)


@pytest.mark.parametrize("first", ["uint8", "float32", "sparse float32"])
def test_rows_become_wider_numbers(any_cuda, rng, first):
    kinds = ["float32", "sparse float32", "float64", "uint8", "sparse float64"]
    batches = [make_rows(rng, 5, 13, kind) for kind in (first, *kinds)]
    rows, steps = (CudaSparseRows if sp.issparse(batches[0]) else CudaDenseRows)((13,)), []
    for k, batch in enumerate(batches):
        on_device = k % 2 and not sp.issparse(batch)
        rows = rows.extended(any_cuda.asarray(batch) if on_device else batch)
        steps.append(rows)
    for k, rows in enumerate(steps):  # the earlier ones, too, are what they were
        reference = np.vstack([as_double(batch) for batch in batches[: k + 1]])
        close(rows.matvec(np.arange(13.0)), reference @ np.arange(13.0))
        close(rows.rmatvec(np.arange(5.0 * (k + 1))), np.arange(5.0 * (k + 1)) @ reference)
    assert rows.dtype == float


@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
def test_what_pads_rows_stays_zero(any_cuda, rng, kind):
    X = make_rows(rng, 40, 13, kind)
    rows = rows_on_device(X, of=any_cuda.asarray)
    rows.extended(any_cuda.asarray(X))  # nobody takes these over: others go in their place
    rows = rows.extended(any_cuda.asarray(X[:7])).kept(np.arange(47) % 3 > 0)
    rows = rows.extended(any_cuda.asarray(X[:9])).extended(X[:2])
    assert not to_host(rows._data.buffer)[:, 13:].any()
    assert rows.stride % 2 == 0 and rows.stride > 13


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_rows_that_share_scratch_memory(any_cuda, rng, kind):
    X = make_rows(rng, 60, 13, kind)
    before = rows_on_device(X[:40])
    after = before.extended(X[40:])
    r = rng.standard_normal((60, 3))
    first, second = after.rmatvec(any_cuda.asarray(r)), before.rmatvec(any_cuda.asarray(r[:40]))
    close(first, as_double(X).T @ r)
    close(second, as_double(X)[:40].T @ r[:40])
    u, v = before.matvec(np.ones(13)), after.matvec(np.arange(13.0))
    close(u, as_double(X)[:40].sum(axis=1))
    close(v, as_double(X) @ np.arange(13.0))


def past_in_state(rng, loss, targets, kind, shape, *, waits=True):
    """Return a past with one model in a given state, and everything about it in numpy."""
    X = make_rows(rng, *shape, kind)
    w = rng.random(shape[0]) + 0.1
    w[::7] = 0.0  # forgotten rows
    w[-1] = 1.0
    y, z = targets(rng.standard_normal(shape[0])), 0.7 * rng.standard_normal(shape[0])
    past = CudaRows()
    assert past.add_model(loss, DenseIterate((shape[1],)), waits) == 0
    state = {"rows": rows_on_device(X).state_dict(), "w": w}
    past.load_state({**state, "models": [{"z": z, "y": y, "pending": None}]})
    return past, as_double(X), z, y, w


def on_host(past):
    """Return the same past in this process's memory."""
    copy = HostRows()
    for model in past.models():
        copy.add_model(*model)
    copy.load_state(past.state_dict())
    return copy


def z_of(past):
    return past.state_dict()["models"][0]["z"] if past._pending == [None] else None


@pytest.mark.parametrize(
    ("name", "kind", "shape"), every_pair([*LOSSES], KINDS, [(301, 53), (23, 785), (40, 1500)])
)
@pytest.mark.usefixtures("any_cuda")
def test_gradient_after_a_move(rng, name, kind, shape):
    loss, targets = LOSSES[name]
    past, X, z, y, w = past_in_state(rng, loss, targets, kind, shape)
    a, b = rng.standard_normal(shape[1]) / scale_of(kind) / np.sqrt(shape[1]), -0.2
    past.move(0, DenseAtom(a), 0.3)
    fused = past._held.rows.fuses(past._losses[0])
    assert (z_of(past) is None) == fused == (shape[1] <= 1024 and not kind.startswith("sparse"))
    gradient = past.gradients([0], [b])[:, 0]
    z = 0.7 * z + 0.3 * (X @ a)
    close(gradient, X.T @ (w * loss.derivative(z + b, y)))
    close(z_of(past), z)
    again = past.gradients([0], [b])[:, 0]
    close(again, X.T @ (w * loss.derivative(z + b, y)))  # nothing waits any more
    past.move(0, DenseAtom(a), 0.5)
    past.move(0, SignedCoordinate(0, 1.0 / scale_of(kind), (shape[1],)), 0.25)
    z = 0.75 * (0.5 * z + 0.5 * (X @ a)) + 0.25 * X[:, 0] / scale_of(kind)
    close(z_of(past), z)  # the waiting move came first
    close(past.predictions(0), z[w > 0.0])
    change = np.array([0.1 / scale_of(kind)])
    past.move(0, DenseAtom(a), 0.5)
    past.change(0, np.array([0]), change)
    past.advance(0, 0.5)
    close(z_of(past), 0.5 * z + 0.5 * (X @ a) + 0.5 * change * X[:, 0])


@pytest.mark.parametrize("kind", ["float32", "uint8", "sparse float64"])
@pytest.mark.usefixtures("any_cuda")
def test_rows_that_come_while_a_move_waits(rng, kind):
    loss, targets = LOSSES["sigmoid"]
    past, X, z, y, w = past_in_state(rng, loss, targets, kind, (30, 13))
    a, theta = rng.standard_normal((2, 13)) / scale_of(kind)
    past.move(0, DenseAtom(a), 0.3)
    more = make_rows(rng, 5, 13, kind)
    new = past.products(more, theta[:, None])
    close(new[:, 0], as_double(more) @ theta)
    past.append(more, new, np.ones((5, 1)), np.ones(5))
    X, z = np.vstack((X, as_double(more))), np.append(0.7 * z + 0.3 * (X @ a), new)
    y, w = np.append(y, np.ones(5)), np.append(w, np.ones(5))
    there, here = CudaRows(), on_host(past)  # with the move that waits
    there.add_model(loss, None, True)
    there.load_state(here.state_dict())
    for one in (past, here, there):
        close(one.gradients([0], [0.1])[:, 0], X.T @ (w * loss.derivative(z + 0.1, y)))
        close(z_of(one), z)
    past.weigh(np.array([3, 4]), 0.0)
    w[3:5] = 0.0
    past.move(0, DenseAtom(a), 0.3)
    past.keep(w > 0.0)
    assert len(past) == np.count_nonzero(w)
    close(z_of(past), (0.7 * z + 0.3 * (X @ a))[w > 0.0])
    close(past.gram_product(a), X.T @ (w * (X @ a)))
    past.iterates[0].put(theta)
    past.refresh(0)
    close(past.predictions(0), (X @ theta)[w > 0.0])


@pytest.mark.parametrize("name", [*LOSSES, "own"])
@pytest.mark.parametrize("n_rows", [1, 31, 700])
@pytest.mark.usefixtures("any_cuda")
def test_sums_over_rows(rng, name, n_rows):
    check_sums(rng, name, n_rows)


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.usefixtures("cuda")
def test_sums_over_many_rows(rng, name):
    check_sums(rng, name, 100_003)


def check_sums(rng, name, n_rows):
    loss, targets = {**LOSSES, "own": (Quartic(), lambda z: z)}[name]
    past, X, z, y, w = past_in_state(rng, loss, targets, "float32", (n_rows, 3))
    b, at = 0.15, z + 0.15
    value, slope, bend = (
        w @ of(at, y) for of in (loss.value, loss.derivative, loss.second_derivative)
    )
    close(past.total(0, b), value)
    close(past.totals(0, b), [value, slope, bend])
    close(past.steepest(0, b), np.abs(w * loss.derivative(at, y)).max())
    row_loss = past._losses[0]
    assert isinstance(row_loss, CudaRowLoss)
    close(row_loss.slopes(*past._for_loss(0), b), w * loss.derivative(at, y))
    close(row_loss.curvatures(*past._for_loss(0), b), w * loss.model_curvature(at, y))
    residuals, weights = past.residuals(0)
    close(residuals, y - z)
    close(weights, w)
    close(past.limits(0), on_host(past).limits(0))
    a = rng.standard_normal(3)
    d = X @ a - z
    parabola = past.line(0, DenseAtom(a), b)
    if loss.quadratic:
        close(parabola, [value, (w * loss.derivative(at, y)) @ d, w @ d**2])
    else:
        assert parabola is None
    for c in (0.0, 0.3, 1.0):
        close(past.line_value(0, c, b), w @ loss.value(at + c * d, y))
        close(past.line_slope(0, c, b), (w * loss.derivative(at + c * d, y)) @ d)
    past.advance(0, 0.25)
    z = z + 0.25 * d
    close(past.total(0, b), w @ loss.value(z + b, y))
    image = X[:, [0, 2]] @ np.array([0.5, -0.25])
    past.change(0, np.array([0, 2]), np.array([0.5, -0.25]))
    close(past.line_value(0, 0.4, 2 * b), w @ loss.value(z + 0.4 * image + 2 * b, y))
    past.weigh(np.array([0]), 2.0)
    w[0] = 2.0
    close(past.total(0, b), w @ loss.value(z + b, y))
    w *= rng.uniform(0.5, 1.0, n_rows)
    past.weigh(np.arange(n_rows), w)
    past.rescale(2.0**-20)
    close(past.total(0, b) * 2.0**20, w @ loss.value(z + b, y))


@pytest.mark.parametrize("kind", ["float64", "sparse float64"])
@pytest.mark.parametrize("name", [*LOSSES, "own"])
@pytest.mark.usefixtures("any_cuda")
def test_second_order_sums_are_those_of_the_host(rng, name, kind):
    loss, targets = {**LOSSES, "own": (Quartic(), lambda z: z)}[name]
    past, *_ = past_in_state(rng, loss, targets, kind, (60, 7))
    found, expected = (
        one.second_order(0, np.array([1, 4, 5]), 0.1) for one in (past, on_host(past))
    )
    for one, other in zip(found, expected, strict=True):
        close(one, other)


@pytest.mark.usefixtures("cuda")
def test_one_pass_answers_for_value_and_slope(rng, monkeypatch):
    past, *_ = past_in_state(rng, *LOSSES["logistic"], "float32", (50, 5))
    calls, sums = [], CudaRowLoss.sums
    monkeypatch.setattr(CudaRowLoss, "sums", lambda *args: calls.append(args) or sums(*args))
    atom = DenseAtom(rng.standard_normal(5))
    past.line(0, atom, 0.0)
    for c in (0.0, 1.0, 0.0, 0.5, 1.0):
        past.line_slope(0, c, 0.1)
        past.line_value(0, c, 0.1)
    assert len(calls) == 3
    past.line_value(0, 0.5, 0.2)
    assert len(calls) == 4
    past.line(0, atom, 0.0)
    past.line_value(0, 0.5, 0.2)
    assert len(calls) == 5


@pytest.mark.usefixtures("cuda")
def test_predictions_come_here_once_for_a_loss_of_the_users_own(rng, monkeypatch):
    past, *_, w = past_in_state(rng, Quartic(), lambda z: z, "float64", (50, 5), waits=False)
    brought = []
    monkeypatch.setattr(
        "onlinefw.past.cuda.rows.to_host", lambda x: brought.append(x) or to_host(x)
    )
    best_intercept(Quartic(), past, 0, w.sum(), None)
    past.total(0, 0.1)
    past.gradients([0], [0.1])
    assert len(brought) == 3
    past.move(0, SignedCoordinate(2, 1.0, (5,)), 0.5)
    past.total(0, 0.1)
    assert len(brought) == 6


@pytest.mark.parametrize("name", [*LOSSES, "own"])
@pytest.mark.usefixtures("any_cuda")
def test_best_intercept_is_that_of_the_host(rng, name):
    loss, targets = {**LOSSES, "own": (Quartic(), lambda z: z)}[name]
    past, _, _, _, w = past_in_state(rng, loss, targets, "float64", (400, 3))
    for start in (None, 0.3):
        found, expected = (
            best_intercept(loss, one, 0, w.sum(), start) for one in (past, on_host(past))
        )
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "width"), [("uint8", 784), ("float32", 1000)])
def test_gradient_of_many_rows(cuda, rng, kind, width):
    loss, targets = LOSSES["sigmoid"]
    past, X, z, y, w = past_in_state(rng, loss, targets, kind, (20_011, width))
    close(past.gradients([0], [0.1])[:, 0], X.T @ (w * loss.derivative(z + 0.1, y)))
    r = rng.standard_normal((20_011, 3))
    close(past._held.rows.rmatvec(cuda.asarray(r)), X.T @ r)


@pytest.mark.parametrize("kind", ["float32", "sparse float64"])
@pytest.mark.usefixtures("any_cuda")
def test_gradients_of_several_models(rng, kind):
    names = ["logistic", "square", "sigmoid"]
    X = make_rows(rng, 40, 13, kind)
    past, w = CudaRows(), rng.random(40)
    for name in names:
        past.add_model(LOSSES[name][0], DenseIterate((13,)), True)
    Z, R = rng.standard_normal((2, 40, 3))
    Y = np.column_stack([LOSSES[name][1](r) for name, r in zip(names, R.T, strict=True)])
    past.append(X, Z, Y, w)
    atom = DenseAtom(rng.standard_normal(13))
    past.move(1, atom, 0.5)
    Z[:, 1] = 0.5 * (Z[:, 1] + as_double(X) @ atom.array)

    def expected(m, b):
        derivative = LOSSES[names[m]][0].derivative(Z[:, m] + b, Y[:, m])
        return as_double(X).T @ (w * derivative)

    found = past.gradients([0, 1, 2], [0.1, 0.2, 0.3])
    for m, b in enumerate([0.1, 0.2, 0.3]):
        close(found[:, m], expected(m, b))
    past.keep_models([2, 1])
    found = past.gradients([1, 0], [0.1, 0.2])
    close(found[:, 0], expected(1, 0.1))
    close(found[:, 1], expected(2, 0.2))
    close(past.gradients([0], [0.3])[:, 0], expected(2, 0.3))


@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
@pytest.mark.usefixtures("cuda")
def test_dense_gradients_repeat_bit_for_bit(rng, kind):
    past, *_ = past_in_state(rng, *LOSSES["sigmoid"], kind, (1003, 100))
    first = past.gradients([0], [0.1])
    for _ in range(3):
        np.testing.assert_array_equal(past.gradients([0], [0.1]), first)


@pytest.mark.usefixtures("any_cuda")
def test_a_huge_slope_times_a_zero_feature_is_zero():
    past = CudaRows()
    past.add_model(LOSSES["poisson"][0], DenseIterate((4,)), True)
    past.append(np.zeros((5, 4), np.float32), np.zeros((5, 1)), np.ones((5, 1)), np.ones(5))
    assert np.isfinite(past.gradients([0], [2000.0])).all()
