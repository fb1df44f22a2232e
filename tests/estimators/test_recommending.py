"""Recommending: for many rows what it is for one, from candidates only, and columns alike."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.estimators import FrankWolfeMatrixCompletion

M1, M2 = 30, 20


def ratings(rng, n=900):
    X = np.column_stack((rng.integers(M1, size=n), rng.integers(M2, size=n)))
    truth = 3.0 + rng.standard_normal((M1, 2)) @ rng.standard_normal((2, M2))
    return X, truth[X[:, 0], X[:, 1]] + 0.1 * rng.standard_normal(n)


MODELS = {
    "the default": {},
    "a ball": {"radius": 60.0},
    "the paper's steps": {"radius": 60.0, "corrective": None, "offsets": None},
}


@pytest.fixture(params=MODELS)
def model(request, rng):
    X, y = ratings(rng)
    return FrankWolfeMatrixCompletion(shape=(M1, M2), **MODELS[request.param]).fit(X, y)


def test_many_rows_get_what_each_gets_alone(model):
    columns, values = model.recommend(np.arange(M1), n=7)
    assert columns.shape == values.shape == (M1, 7)
    for row in range(M1):
        alone, its_values = model.recommend(row, n=7)
        assert columns[row, : alone.size].tolist() == alone.tolist()
        np.testing.assert_array_equal(values[row, : alone.size], its_values)
        assert columns[row, alone.size :].tolist() == [None] * (7 - alone.size)
        assert (values[row, alone.size :] == -np.inf).all()


def test_they_are_the_largest_predictions(model):
    for row in (0, 11):
        columns, values = model.recommend(row, n=M2, exclude_seen=False)
        everything = model.predict(np.column_stack((np.full(M2, row), np.arange(M2))))
        np.testing.assert_array_equal(values, everything[columns])
        assert sorted(columns.tolist()) == list(range(M2))
        assert (np.diff(values) <= 0.0).all()


def test_candidates_and_what_is_excluded(model):
    columns, _ = model.recommend(3, n=M2, exclude_seen=False, candidates=[4, 9, 2, 400])
    assert set(columns.tolist()) == {4, 9, 2}  # what the model does not know is left out
    columns, _ = model.recommend(3, n=M2, exclude_seen=False, exclude=np.array([4, 9, 400]))
    assert set(columns.tolist()) == set(range(M2)) - {4, 9}
    both = {"candidates": [4, 9], "exclude": [9], "exclude_seen": False}
    assert model.recommend([3, 4], n=3, **both)[0].tolist() == [[4, None, None]] * 2
    of_a_set, _ = model.recommend(3, n=M2, exclude_seen=False, candidates={4, 9, 2})
    assert set(of_a_set.tolist()) == {4, 9, 2}
    with pytest.raises(ValueError, match="candidates must be a list of columns, got 4"):
        model.recommend(3, candidates=4)


@pytest.mark.parametrize("columns", [["4", "9"], np.array([4.0, 9.0]), [4, None]], ids=str)
def test_what_cannot_be_a_column_is_refused_rather_than_left_out(model, columns):
    for what in ("candidates", "exclude"):
        with pytest.raises(ValueError, match=f"{what} must be whole numbers"):
            model.recommend(3, **{what: columns})


def test_similar_columns_have_the_smallest_angles(model):
    u, s, v = model.factors_
    matrix = (u * s) @ v.T
    columns, cosines = model.similar(5, n=6)
    norms = np.linalg.norm(matrix, axis=0)
    expected = matrix.T @ matrix[:, 5] / norms / norms[5]
    expected[5] = -np.inf
    np.testing.assert_allclose(cosines, np.sort(expected)[::-1][:6], atol=1e-4)
    np.testing.assert_allclose(expected[columns], cosines, atol=1e-4)
    with pytest.raises(ValueError, match="column must be one that the model has learned, got 99"):
        model.similar(99)


def test_with_ids_everything_is_an_id(rng, tmp_path):
    X, y = ratings(rng)
    names = np.array([f"user {k}" for k in range(M1)]), np.array([f"film {k}" for k in range(M2)])
    ids = np.column_stack((names[0][X[:, 0]], names[1][X[:, 1]]))
    model = FrankWolfeMatrixCompletion().fit(ids, y)
    columns, _ = model.recommend(["user 3", "user 8"], n=4, exclude=["film 1"])
    for k, user in enumerate(("user 3", "user 8")):
        alone = model.recommend(user, n=4, exclude=["film 1"])
        assert columns[k, : alone[0].size].tolist() == alone[0].tolist()
    assert "film 1" not in columns
    films, _ = model.similar("film 1", n=3)
    assert set(films) <= set(names[1])
    ofw.save(model, tmp_path / "model.ofw")
    loaded = ofw.load(tmp_path / "model.ofw")
    assert loaded.recommend(["user 3", "user 8"], n=4, exclude=["film 1"])[0].tolist() == (
        columns.tolist()
    )
    assert loaded.similar("film 1", n=3)[0].tolist() == films.tolist()
    with pytest.raises(ValueError, match="row must be one of the 30 row ids"):
        model.recommend(["user 3", "nobody"])
