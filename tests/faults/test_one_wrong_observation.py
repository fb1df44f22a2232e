"""One wrong observation is refused, and the model goes on as if it had not come."""

from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp

import onlinefw as ofw
from onlinefw import losses
from onlinefw.factors.chains import Chains, Side
from onlinefw.factors.lists import Lists
from onlinefw.iterates import LowRank
from onlinefw.objectives import LinearObjective, ObservedEntries
from onlinefw.past.host.entries import HostEntries
from onlinefw.readers import DataError, read_rows
from onlinefw.sets import TraceNormBall

X = np.array([[0, 0], [1, 1], [2, 0]])
Y = np.array([1.0, 2.0, 3.0])


def completion(**options):
    model = ofw.FrankWolfeMatrixCompletion(radius=5.0, **options)
    for _ in range(3):
        model.partial_fit(X, Y)
    return model


@pytest.mark.parametrize("index", [10**7, 10**8, 2**32 - 1, 10**12])
@pytest.mark.parametrize("side", ["row", "column"])
def test_an_index_beyond_all_reason(side, index):
    model = completion()
    before = model.predict(X)
    wrong = [[index, 0]] if side == "row" else [[0, index]]
    with pytest.raises(ValueError, match=r"at most|below 2\*\*32"):
        model.partial_fit(wrong, [1.0])
    with pytest.raises(ValueError, match=r"at most|below 2\*\*32"):
        model.fit(np.vstack([X] * 2000 + [wrong]), [*np.tile(Y, 2000), 1.0])
    np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit(X, Y)
    assert model.n_rounds_ == 4 and model.shape_ == (3, 2)


def test_who_has_more_rows_says_so():
    model = completion(max_rows=5)
    model.partial_fit([[4, 0]], [1.0])
    message = r"X has row 5, but a matrix grows to 5 rows at most: .* max_rows=6"
    with pytest.raises(ValueError, match=message):
        model.partial_fit([[5, 0]], [1.0])
    model.set_params(max_rows=6)
    objective = ObservedEntries((2, 2), growing=True, max_columns=3)
    with pytest.raises(ValueError, match="max_columns=4"):
        objective.observe([[0, 3]], [1.0])
    assert objective.shape == (2, 2)
    objective = ObservedEntries((20, 2), growing=True, max_rows=3)  # the shape given counts
    objective.observe([[19, 0]], [1.0])


@pytest.mark.parametrize(
    "part", [(LowRank, "grow"), (HostEntries, "grow"), (HostEntries, "set_offsets")]
)
def test_growth_without_memory_happens_not_at_all(part, monkeypatch):
    model = completion()
    before = model.predict(X)
    with monkeypatch.context() as patch:
        patch.setattr(*part, lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            model.partial_fit([[9, 9]], [1.0])
    assert model.shape_ == (3, 2)
    np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit([[9, 9]], [1.0])
    assert model.shape_ == (10, 10)


def local(**options):
    """A model with factors."""
    model = ofw.FrankWolfeMatrixCompletion(**options)
    model.learn(X, Y)
    return model


@pytest.mark.parametrize("act", ["learn", "partial_fit"])
@pytest.mark.parametrize("part", [(Chains, "grown"), (Side, "with_space"), (Lists, "with_space")])
def test_so_does_that_of_factors(part, act, monkeypatch):
    model, other = local(), local()
    before = model.predict(X)
    with monkeypatch.context() as patch:
        patch.setattr(*part, lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            getattr(model, act)([[9, 9]], [1.0])
    assert model.shape_ == (3, 2)
    np.testing.assert_array_equal(model.predict(X), before)
    for one in (model, other):
        getattr(one, act)([[9, 9]], [1.0])
    np.testing.assert_array_equal(model.predict([*X, [9, 9]]), other.predict([*X, [9, 9]]))


def test_memory_that_ends_among_observations_breaks_the_model(monkeypatch):
    model = local()
    with monkeypatch.context() as patch:
        patch.setattr(Lists, "make_space", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            model.learn(np.tile(X, (200, 1)), np.tile(Y, 200))
    with pytest.raises(ofw.BrokenModel):
        model.predict(X)


@pytest.mark.parametrize("index", [10**7, 10**8, 2**32 - 1, 10**12])
@pytest.mark.parametrize("side", [0, 1])
def test_an_index_beyond_all_reason_for_factors(side, index):
    model = local()
    before, wrong = model.predict(X), [[0, 0]]
    wrong[0][side] = index
    with pytest.raises(ValueError, match=r"at most|below 2\*\*32"):
        model.learn(wrong, [1.0])
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.shape_ == (3, 2)


def test_ids_beyond_the_limit_are_refused_before_they_are_known():
    model = ofw.FrankWolfeMatrixCompletion(max_rows=2)
    model.learn([["ann", 1], ["bob", 2]], Y[:2])
    for act in (model.learn, model.partial_fit):
        with pytest.raises(ValueError, match="max_rows"):
            act([["cem", 1], ["ann", 2]], Y[:2])
    assert model.row_ids_.tolist() == ["ann", "bob"]
    model.learn([["bob", 3]], Y[:1])


def test_a_model_that_has_seen_nothing_predicts_0():
    model = ofw.FrankWolfeMatrixCompletion().prepare(X, Y)
    np.testing.assert_array_equal(model.predict(X), 0.0)
    with pytest.raises(ValueError, match="nothing has been observed"):
        _ = model.gap_


@pytest.mark.parametrize(
    ("y", "w"), [(1e10, 1e15), (1e16, 1.0), (1.0, 1e16), (1e200, 1.0), (np.inf, 1.0)]
)
def test_a_value_or_weight_that_would_overflow(y, w):
    model = completion()
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"overflow|rescale|remove"):
        model.partial_fit([[0, 0]], [y], [w])
    np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit(X, Y)
    assert np.isfinite(model.gap_)


LOSSES = {
    "square": (losses.Square(), lambda z: z),
    "correntropy": (losses.Correntropy(2.0), lambda z: z),
    "logistic": (losses.Logistic(), np.sign),
    "sigmoid": (losses.Sigmoid(), np.sign),
    "bernoulli": (losses.Bernoulli(), lambda z: (z > 0.0).astype(float)),
    "poisson": (losses.Poisson(), lambda z: np.round(np.exp(z))),
    "exponential": (losses.Exponential(), np.exp),
}


@pytest.mark.parametrize(
    ("name", "dtype"), list(zip(LOSSES, cycle(["float32", "float64"]), strict=False))
)
def test_the_largest_values_and_weights_leave_factors_with_numbers(name, dtype, rng):
    loss, values_of = LOSSES[name]
    entries = np.column_stack((rng.integers(20, size=400), rng.integers(15, size=400)))
    y = values_of(rng.standard_normal(400))
    large = [] if name in ("logistic", "sigmoid", "bernoulli") else [(1e15, 1.0), (1e15, 1e-15)]
    for value, weight in [(1.0, 1e15), (1.0, 1e-300), *large]:
        model = ofw.FrankWolfeMatrixCompletion(loss=loss, dtype=dtype)
        model.learn(entries, y)
        model.learn([[3, 4]], [value], [weight])
        assert np.isfinite(model.predict(entries)).all()
        assert np.isfinite(model.learn(entries, y)).all()
        model.partial_fit(entries, y).refine()
        assert np.isfinite(model.predict(entries)).all() and np.isfinite(model.gap_)


@pytest.mark.parametrize(("y", "w"), [(1.0, 1e60), (1e20, 1e20), (1e16, 1.0), (np.nan, 1.0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_weights_that_factors_cannot_hold(dtype, y, w):
    model = local(dtype=dtype)
    before = model.predict(X)
    learner = ofw.OnlineFactors((3, 2), dtype=dtype)
    for act in (model.learn, model.partial_fit, learner.learn, learner.observe):
        with pytest.raises(ValueError, match=r"with factors: rescale|NaN|not finite|remove"):
            act([[0, 0]], [y], [w])
    with pytest.raises(ValueError, match=r"with factors: rescale|NaN|not finite|remove"):
        ofw.FrankWolfeMatrixCompletion(dtype=dtype).fit([*X, [0, 0]], [*Y, y], [1.0, 1.0, 1.0, w])
    np.testing.assert_array_equal(model.predict(X), before)
    objective = ObservedEntries((3, 2), dtype="float64")  # Frank-Wolfe steps can
    ofw.OnlineFrankWolfe(objective, TraceNormBall(9.0)).observe([[0, 0]], [1.0], [1e60])


def test_one_value_that_is_far_too_large_is_overcome(rng):
    truth = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 15))
    entries = np.column_stack((rng.integers(20, size=6000), rng.integers(15, size=6000)))
    y = truth[entries[:, 0], entries[:, 1]]
    model = ofw.FrankWolfeMatrixCompletion(clip=False)
    model.learn(entries[:3000], y[:3000])
    model.learn([[3, 4]], [1e15])
    assert np.abs(model.predict(entries)).max() < 1e18
    model.learn(entries[3000:], y[3000:])
    assert np.abs(model.predict(entries)).max() < 1e15


MODELS = {
    "sums": lambda: ofw.FrankWolfeRegressor(radius=2.0),
    "rows": lambda: ofw.FrankWolfeRegressor(radius=2.0, loss="correntropy"),
    "labels": lambda: ofw.FrankWolfeClassifier(radius=2.0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("x", "w"), [(1e100, 1e120), (1e149, 1e10), (1e151, 1.0)])
def test_a_row_whose_weighted_square_would_overflow(name, x, w, rng):
    rows = rng.standard_normal((20, 3))
    y = (rows[:, 0] > 0).astype(float)
    model = MODELS[name]().fit(rows, y)
    before = model.predict(rows)
    with pytest.raises(ValueError, match=r"overflows|rescale"):
        model.partial_fit(x * np.sign(rows), y, sample_weight=np.full(20, w))
    objective = LinearObjective(losses.Square())
    with pytest.raises(ValueError, match=r"overflows|rescale"):
        objective.observe(x * np.sign(rows), y, np.full(20, w))
    np.testing.assert_array_equal(model.predict(rows), before)
    assert np.isfinite(model.partial_fit(rows, y).gap_)


def test_sparse_rows_of_a_width_beyond_all_reason():
    wide = sp.csr_array(([1.0, 2.0], ([0, 1], [0, 10**9])), shape=(2, 10**9 + 1))
    message = "1,000,000,001 features.*max_features=1000000001"
    for model in (ofw.FrankWolfeRegressor(), ofw.FrankWolfeClassifier()):
        with pytest.raises(ValueError, match=message):
            model.fit(wide, [0, 1])


@pytest.mark.parametrize("index", ["1000000000", "4294967297", "9" * 30, "9" * 5000])
def test_an_index_of_libsvm_beyond_all_reason(index, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(f"1 1:0.5 3:1\n0 2:1 {index}:1\n1 3:2\n")
    with pytest.raises(DataError, match=r"row 2.*is beyond the 10000000 features.*--n-features"):
        list(read_rows(path))
    (chunk,) = read_rows(path, on_bad_row="skip")
    assert chunk.X.shape[0] == 2 and chunk.X.shape[1] <= 10**7
