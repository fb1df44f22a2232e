"""scipy builds matrices that point outside themselves; none of them reaches a kernel."""

import numpy as np
import pytest
import scipy.sparse as sp

import onlinefw as ofw
from onlinefw.losses import Logistic
from onlinefw.objectives import GradientOracle, LinearObjective, RunningLeastSquares
from onlinefw.sets import L1Ball, LinfBall, TraceNormBall


def valid(kind):
    rng = np.random.default_rng(0)
    return sp.coo_array(rng.standard_normal((20, 8)) * (rng.random((20, 8)) < 0.5)).asformat(kind)


def index_too_large(X):
    X.indices[3] = 10**6


def negative_index(X):
    X.indices[3] = -(10**6)


def pointers_that_decrease(X):
    X.indptr[2], X.indptr[3] = X.indptr[3], X.indptr[2]


def pointer_outside(X):
    X.indptr[5] = 10**6


def too_few_values(X):
    X.data = X.data[:3]


def indices_of_fractions(X):
    X.indices = X.indices + 0.5


FORGERIES = [
    index_too_large,
    negative_index,
    pointers_that_decrease,
    pointer_outside,
    too_few_values,
    indices_of_fractions,
]
DOORS = {
    "regressor": lambda X: ofw.FrankWolfeRegressor().fit(X, np.arange(20.0)),
    "classifier": lambda X: ofw.FrankWolfeClassifier().fit(X, np.arange(20) % 2),
    "search": lambda X: ofw.RadiusSearch(ofw.FrankWolfeRegressor()).fit(X, np.arange(20.0)),
    "rows": lambda X: LinearObjective(Logistic()).observe(X, np.where(np.arange(20) % 2, 1, -1)),
    "sums": lambda X: RunningLeastSquares(8).observe(X, np.arange(20.0)),
    "l1 ball": lambda X: L1Ball(1.0).lmo(X),
    "box": lambda X: LinfBall(1.0).lmo(X),
    "trace ball": lambda X: TraceNormBall(1.0).lmo(X),
    "gradient": lambda X: GradientOracle(lambda theta, t: X, (20, 8)).gradient(),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_matrix_that_points_outside_itself_is_refused(door, kind, forge):
    X = valid(kind)
    forge(X)
    with pytest.raises(ValueError, match=f"is not a valid {kind} matrix: .*; build it anew"):
        DOORS[door](X)


@pytest.mark.parametrize("door", DOORS)
def test_so_is_one_of_coordinates(door):
    X = valid("coo")
    X.coords[1][3] = 8
    with pytest.raises(ValueError, match="is not a valid coo matrix: an index is outside 0 to 7"):
        DOORS[door](X)


@pytest.mark.parametrize("model", [ofw.FrankWolfeRegressor, ofw.FrankWolfeClassifier])
def test_a_fitted_model_neither_learns_from_one_nor_predicts(model):
    y = np.arange(20) % 2
    fitted = model(radius=2.0).fit(valid("csr"), y)
    X = valid("csr")
    negative_index(X)
    for act in (fitted.predict, lambda X: fitted.partial_fit(X, y)):
        with pytest.raises(ValueError, match="is not a valid csr matrix"):
            act(X)
    np.testing.assert_array_equal(fitted.predict(valid("csr")), fitted.predict(valid("csr")))


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_unsorted_and_repeated_indices_count_as_what_they_mean(kind):
    X, shuffled = valid(kind), valid(kind)
    assert shuffled.has_canonical_format  # which scipy now believes for ever
    for start, end in zip(shuffled.indptr[:-1], shuffled.indptr[1:], strict=True):
        shuffled.indices[start:end] = shuffled.indices[start:end][::-1].copy()
        shuffled.data[start:end] = shuffled.data[start:end][::-1].copy()
    y = X @ np.arange(8.0)
    models = [ofw.FrankWolfeRegressor(radius=20.0).fit(one, y) for one in (X, shuffled)]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)
    losses = [LinearObjective(Logistic()) for _ in range(2)]
    for one, matrix in zip(losses, (X, shuffled), strict=True):
        ofw.OnlineFrankWolfe(one, L1Ball(3.0)).observe(matrix, np.where(y > 0, 1, -1))
    assert losses[0].value() == pytest.approx(losses[1].value())
