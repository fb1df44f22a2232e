"""Products of columns that the steps of a round share."""

import pickle

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw._growing import GrowingArray
from onlinefw.past.host import shared_products
from onlinefw.past.host.dense_rows import DenseRows
from onlinefw.past.host.shared_products import SharedProducts


@pytest.mark.parametrize(("dtype", "atol"), [(float, 1e-12), (np.float32, 1e-4)])
def test_they_are_those_of_the_rows_whatever_was_asked_before(rng, dtype, atol):
    X, w = rng.standard_normal((40, 30)).astype(dtype), rng.uniform(0.0, 2.0, 40)
    rows = DenseRows((30,), GrowingArray.holding(X))
    products = SharedProducts(rows, w)
    for size in (5, 12, 3, 20):
        chosen = np.sort(rng.choice(30, size, replace=False))
        gram, cross = products.gram(chosen)
        exact = X[:, chosen].astype(float)
        np.testing.assert_allclose(gram, exact.T @ (w[:, None] * exact), rtol=0.0, atol=atol)
        np.testing.assert_allclose(cross, exact.T @ w, rtol=0.0, atol=atol)


def test_they_have_room_for_so_many_columns(rng, monkeypatch):
    monkeypatch.setattr(shared_products, "MOST", 40 * 10)
    X = rng.standard_normal((40, 30))
    products = SharedProducts(DenseRows((30,), GrowingArray.holding(X)), np.ones(40))
    np.testing.assert_allclose(products.gram(np.arange(8))[0], X[:, :8].T @ X[:, :8])
    assert products.gram(np.arange(5, 15)) is None
    np.testing.assert_allclose(products.gram(np.arange(10))[0], X[:, :10].T @ X[:, :10])


def test_a_model_saved_between_a_round_and_a_correction_goes_on_bit_for_bit(rng):
    X = rng.standard_normal((300, 200))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(300)
    model = ofw.FrankWolfeRegressor(radius=20.0, past="recent", max_past=1000)
    model.partial_fit(X, y)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.correct().coef_, other.correct().coef_)
