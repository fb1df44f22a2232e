"""Observed entries on a GPU answer what those in memory answer, which the other tests check."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import losses
from onlinefw._devices import to_host
from onlinefw.atoms import RankOne
from onlinefw.objectives import ObservedEntries, RunningBiases, merge_rule
from onlinefw.past.place import Place, low_rank_class, new_entries
from onlinefw.sets import TraceNormBall, WeightedTraceNormBall
from onlinefw.steps import LineSearch

pytestmark = pytest.mark.gpu

SHAPE = (37, 23)
LOSSES = {
    losses.Square(): (-1.0, 0.0, 2.5),
    losses.Gaussian(): (-1.0, 0.5),
    losses.Bernoulli(): (0.0, 1.0),
    losses.Poisson(): (0.0, 1.0, 3.0),
    losses.Exponential(0.2): (0.5, 2.0),
    losses.Logistic(): (-1.0, 1.0),
    losses.Sigmoid(3.0): (-1.0, 1.0),
    losses.Correntropy(0.5): (-1.0, 0.0, 2.5),
}


class Own(losses.Loss):
    """A loss without a kernel."""

    convex, smoothness = True, 1.0

    def value(self, z, y):
        return np.log(np.cosh(np.subtract(z, y)))

    def derivative(self, z, y):
        return np.tanh(np.subtract(z, y))

    def second_derivative(self, z, y):
        return 1.0 - np.tanh(np.subtract(z, y)) ** 2


ALL = {**LOSSES, Own(): (-1.0, 0.0, 2.5)}


def pair(rng, loss, values, dtype=np.float32, batches=7, size=150):
    """The same entries on a GPU and, in double precision, in memory."""
    pasts = []
    for place, kind in ((Place("cuda"), np.dtype(dtype)), (Place(), np.dtype(float))):
        theta = low_rank_class(place)(SHAPE, dtype=kind)
        pasts.append(new_entries(place, theta, kind, loss))
    offsets = [0.3 * rng.standard_normal(n) for n in SHAPE]
    for past in pasts:
        past.set_offsets(*offsets)
    for batch in range(batches):
        rows, cols = (rng.integers(n, size=size) for n in SHAPE)
        y, w = rng.choice(values, size), rng.uniform(0.5, 2.0, size).astype(dtype).astype(float)
        for past in pasts:
            past.append(rows, cols, w, y)
            n = merge_rule.due_for_merge(past.n_sorted, past.n_newest, size)
            if n:
                past.merge(n)
        u, v = (0.3 * rng.standard_normal(n) for n in SHAPE)
        for past in pasts:
            move(past, 0.8 if batch else 0.0, u, v)
    return pasts


def move(past, keep, u, v):
    xp = past.theta._xp
    u, v = xp.asarray(u), xp.asarray(v)
    past.theta.move(RankOne(u / (1.0 - keep), 1.0, v), 1.0 - keep)
    past.move(keep, u, v)


def close(found, expected, tol=1e-5):
    expected = np.asarray(expected)
    scale = np.abs(expected).max(initial=1e-30)
    np.testing.assert_allclose(to_host(found), expected, rtol=0, atol=tol * scale)


@pytest.fixture(params=[10**6, 64], ids=["all in the tail", "merged often"])
def tail(request, monkeypatch):
    monkeypatch.setattr(merge_rule, "SHORTEST_TAIL", request.param)
    monkeypatch.setattr(merge_rule, "MERGE_COST", 0.0)
    monkeypatch.setattr(merge_rule, "NEWEST", 16)


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize("loss", ALL, ids=str)
def test_entries_fade_and_leave_as_those_in_memory_do(rng, loss):
    import cupy as cp

    there, here = pair(rng, loss, ALL[loss], np.float64)
    v = rng.standard_normal((SHAPE[1], 4))
    for act in ("rescale", "drop", "forget"):
        argument = {"rescale": 2.0**-3, "drop": 0.1, "forget": 5}[act]
        found, expected = getattr(there, act)(argument), getattr(here, act)(argument)
        if act == "drop":
            assert found == pytest.approx(expected, rel=1e-9)
        elif act == "forget":
            for x, y in zip(found, expected, strict=True):
                close(np.sort(x), np.sort(y), 1e-9)
        assert there.counts == pytest.approx(here.counts, rel=1e-9)
        assert len(there) == len(here)
        assert there.value_range() == pytest.approx(here.value_range(), rel=1e-9)
        assert there.total_loss() == pytest.approx(here.total_loss(), rel=1e-9)
        close(there.read(cp.asarray(v), None)[0], here.read(v, None)[0], 1e-9)
        close(there.columns_of(5), here.columns_of(5))


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ALL, ids=str)
def test_products_values_and_lines_are_those_of_double_precision(rng, loss, dtype):
    import cupy as cp

    there, here = pair(rng, loss, ALL[loss], dtype)
    for k in (8, 3):
        v, scale = rng.standard_normal((SHAPE[1], k)), rng.uniform(0.5, 1.5, SHAPE[0])
        for factor, on_device in ((scale, cp.asarray(scale.astype(dtype))), (None, None)):
            w, z_dot_g = there.read(cp.asarray(v), on_device)
            expected = here.read(v, factor)
            close(w, expected[0])
            found = there.overlaps(cp.asarray(v), w, z_dot_g)
            close(found[0], v.T @ expected[0])
            assert found[3] == pytest.approx(expected[1], rel=1e-5, abs=1e-4)
            found = there.combine(v[0], w, np.eye(k))
            for x, y in zip(found, here.combine(v[0], expected[0], np.eye(k)), strict=True):
                close(x, y)
    found = there.normal(cp.asarray(v[:, 0]), cp.asarray(scale.astype(dtype)))
    for x, expected in zip(found, here.normal(v[:, 0], scale), strict=True):
        close(x, expected)
    u = rng.standard_normal((SHAPE[0], 2))
    close(there.forward(cp.asarray(v)), here.forward(v))
    close(there.backward(cp.asarray(u)), here.backward(u))
    close(there.dense_slopes(), here.dense_slopes())
    assert there.squared_norms() == pytest.approx(here.squared_norms(), rel=1e-5)
    assert there.total_loss() == pytest.approx(here.total_loss(), rel=1e-5)
    assert there.heaviest() == pytest.approx(here.heaviest(), rel=1e-5)
    parabola = here.line(u[:, 0], v[:, 0])
    found = there.line(cp.asarray(u[:, 0]), cp.asarray(v[:, 0]))
    assert found == (None if parabola is None else pytest.approx(parabola, rel=1e-5, abs=1e-4))
    for t in (0.0, 0.3, 1.0):
        assert there.line_value(t) == pytest.approx(here.line_value(t), rel=1e-5)
        assert there.line_slope(t) == pytest.approx(here.line_slope(t), rel=1e-5, abs=1e-4)


@pytest.mark.usefixtures("tail")
def test_sums_for_biases_and_theta_that_is_put_or_shrunk(rng):
    there, here = pair(rng, losses.Square(), (1.0, 2.0))
    a, b = (rng.standard_normal(n) for n in SHAPE)
    for with_theta in (False, True):
        found = there.weighted_sums(a, b, with_theta)
        for x, expected in zip(found, here.weighted_sums(a, b, with_theta), strict=True):
            close(x, expected)
    left, right = rng.standard_normal((SHAPE[0], 3)), rng.standard_normal((SHAPE[1], 3))
    for past in (there, here):
        xp = past.theta._xp
        past.theta.put(xp.asarray(left), np.ones(3), xp.asarray(right))
        past.refresh()
    assert there.total_loss() == pytest.approx(here.total_loss(), rel=1e-5)
    for past in (there, here):
        past.theta.shrink(0.7)
        past.move(0.7, None, None)
    assert there.total_loss() == pytest.approx(here.total_loss(), rel=1e-5)
    for past in (there, here):  # the past was not told: it finds out
        past.theta.shrink(0.5)
    assert there.total_loss() == pytest.approx(here.total_loss(), rel=1e-5)


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize("everything", [False, True])
def test_ridge_regressions_of_rows_and_columns(rng, everything):
    import cupy as cp

    found, expected = pair(rng, losses.Square(), (1.0, 2.0))
    for past in (found, expected):
        past.merge(past.n_newest if everything else past.n_newest // 2)
        past.begin_regressions()
    left, right = rng.standard_normal((SHAPE[0], 3)), rng.standard_normal((SHAPE[1], 3))
    penalties = [rng.uniform(0.5, 2.0, n) for n in SHAPE]
    close(
        found.solve_rows(cp.asarray(right.astype("f4")), penalties[0]),
        expected.solve_rows(right, penalties[0]),
        1e-4,
    )
    close(
        found.solve_columns(cp.asarray(left.astype("f4")), penalties[1]),
        expected.solve_columns(left, penalties[1]),
        1e-4,
    )
    close(
        found.column_equations(cp.asarray(left.astype("f4"))), expected.column_equations(left), 1e-4
    )


@pytest.mark.usefixtures("tail")
def test_what_was_seen(rng):
    there, here = pair(rng, losses.Sigmoid(), (-1.0, 1.0), batches=2, size=40)
    for row in range(SHAPE[0]):
        np.testing.assert_array_equal(there.columns_of(row), here.columns_of(row))
    for x, expected in zip(there.seen(), here.seen(), strict=True):
        np.testing.assert_array_equal(x, expected)


def batches(rng, rounds=40, size=60, shape=SHAPE):
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    for _ in range(rounds):
        X = np.column_stack([rng.integers(n, size=size) for n in shape])
        yield X, truth[X[:, 0], X[:, 1]] + 0.1 * rng.standard_normal(size)


def learned(data, device, ball, **options):
    names = ("growing", "offsets")
    settings = {name: options.pop(name) for name in names if name in options}
    shape = options.pop("shape", SHAPE)
    objective = ObservedEntries(shape, dtype=float, device=device, **settings)
    learner = ofw.OnlineFrankWolfe(objective, ball, **options)
    rounds = [learner.observe(X, y) for X, y in data]
    return learner, rounds


WEIGHTED = WeightedTraceNormBall(20.0, *(np.linspace(0.5, 2.0, n) for n in SHAPE))


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize(
    "options",
    [
        {"ball": TraceNormBall(30.0)},
        {"ball": WEIGHTED},
        {"ball": TraceNormBall(30.0), "step": LineSearch()},
        {"ball": TraceNormBall(30.0), "inner_steps": 3, "certify_every": 5},
        {"ball": TraceNormBall(30.0), "growing": True, "shape": (2, 2)},
        {"ball": TraceNormBall(30.0), "offsets": "joint"},
        {"ball": TraceNormBall(300.0), "corrective": ofw.RidgeSweeps(2, ridge=0.5)},
        {"ball": TraceNormBall(300.0), "corrective": ofw.RidgeSweeps(2), "offsets": "biases"},
    ],
    ids=str,
)
def test_a_run_on_the_gpu_is_the_run_in_memory(rng, options):
    data = list(batches(rng))
    runs = []
    for device in ("cuda", "cpu"):
        own = dict(options)
        if "offsets" in own:
            own["offsets"] = RunningBiases(joint=own["offsets"] == "joint")
        runs.append(learned(data, device, own.pop("ball"), **own))
    (there, found), (here, expected) = runs
    np.testing.assert_allclose(
        [(r.loss, r.gap) for r in found], [(r.loss, r.gap) for r in expected], rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(there.theta.dense(), here.theta.dense(), atol=1e-7)
    np.testing.assert_allclose(there.certificate(), here.certificate(), rtol=1e-6)
    assert there.objective.value() == pytest.approx(here.objective.value(), rel=1e-9)


@pytest.mark.usefixtures("tail")
@pytest.mark.parametrize(("first", "then"), [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda")])
def test_a_state_goes_on_on_another_device(rng, first, then):
    data = list(batches(rng))
    whole, _ = learned(data, "cpu", TraceNormBall(30.0))
    half, _ = learned(data[:20], first, TraceNormBall(30.0))
    rest = ofw.OnlineFrankWolfe.from_state(half.state_dict(), device=then)
    assert rest.objective.device == then
    for X, y in data[20:]:
        rest.observe(X, y)
    np.testing.assert_allclose(rest.theta.dense(), whole.theta.dense(), atol=1e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"radius": 30.0, "offsets": "joint", "weighting": "smoothed", "step": "line-search"},
        {"radius": "auto", "corrective": "ridge", "offsets": "biases"},
    ],
    ids=str,
)
def test_the_estimator_learns_predicts_and_saves_the_same(rng, tmp_path, options):
    data = list(batches(rng))
    X, y = np.concatenate([X for X, _ in data]), np.concatenate([y for _, y in data])
    there, here = (
        ofw.FrankWolfeMatrixCompletion(dtype="float64", device=device, batch_size=60, **options)
        for device in ("cuda", "cpu")
    )
    found, expected = there.fit(X, y).predict(X), here.fit(X, y).predict(X)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert there.gap_ == pytest.approx(here.gap_, rel=1e-4)
    np.testing.assert_array_equal(there.recommend(3)[0], here.recommend(3)[0])
    np.testing.assert_allclose(there.factors_[1], here.factors_[1], rtol=1e-5)
    ofw.save(there, tmp_path / "model.ofw")
    np.testing.assert_allclose(ofw.load(tmp_path / "model.ofw").predict(X), found, atol=1e-12)


def test_a_checkpoint_of_the_estimator_goes_on_on_the_gpu(rng, tmp_path):
    from onlinefw.files import load_checkpoint, save_checkpoint

    data = list(batches(rng))
    whole = ofw.FrankWolfeMatrixCompletion(radius=30.0, dtype="float64", device="cuda")
    for X, y in data:
        whole.partial_fit(X, y)
    half = ofw.FrankWolfeMatrixCompletion(radius=30.0, dtype="float64", device="cuda")
    for X, y in data[:20]:
        half.partial_fit(X, y)
    save_checkpoint({"model": half}, tmp_path / "half.ckpt")
    rest = load_checkpoint(tmp_path / "half.ckpt")["model"]
    for X, y in data[20:]:
        rest.partial_fit(X, y)
    assert rest.objective_.device == "cuda"
    X = data[0][0]
    np.testing.assert_allclose(rest.predict(X), whole.predict(X), atol=1e-7)


def test_inputs_may_be_cupy_or_torch(rng):
    import cupy as cp
    import torch

    thetas = []
    for convert in (np.asarray, cp.asarray, torch.as_tensor, lambda x: torch.as_tensor(x).cuda()):
        data = [(convert(X), convert(y)) for X, y in batches(np.random.default_rng(1), 10)]
        learner, _ = learned(data, "cuda", TraceNormBall(30.0))
        thetas.append(learner.theta.dense())
    for theta in thetas[1:]:
        np.testing.assert_allclose(theta, thetas[0], atol=1e-9)
