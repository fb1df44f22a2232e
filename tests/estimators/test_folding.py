"""A row that is not in the matrix, and which values of a row speak for a prediction."""

import numpy as np
import pytest

import onlinefw as ofw

M1, M2 = 40, 20


def ratings(seed, n=700):
    rng = np.random.default_rng(seed)
    X = np.column_stack((rng.integers(M1, size=n), rng.integers(M2, size=n)))
    truth = 3.0 + rng.standard_normal((M1, 2)) @ rng.standard_normal((2, M2))
    return X, truth[X[:, 0], X[:, 1]] + 0.1 * rng.standard_normal(n)


def solved(**more):
    """A model whose rows are the solutions of their regressions, and its observations."""
    X, y = ratings(0)
    model = ofw.FrankWolfeMatrixCompletion(dtype="float64", **more)
    model.learn(X, y)
    chains = model.objective_.model
    chains._renew = lambda *_: None  # what is expected of rows stays what it is
    chains.solve(np.arange(M1), np.arange(0))
    del chains._renew
    return model, X, y


def plain(model, row):
    """What is predicted in a row, without its mood."""
    return model._run.predict(np.full(M2, row), np.arange(M2)) - moods(model)[row]


def moods(model):
    return model.objective_.model.moods()


def given(model, row):
    """A row's columns, and the values that the model has learned of them (without moods)."""
    _, columns, values, _ = model.objective_.model.lists.by_row.some(np.array([row]))
    return columns.astype(int), values


def test_a_row_with_the_values_of_another_is_predicted_as_that_one():
    model, _, _ = solved(clip=False)
    columns, values = model.recommend_for(*given(model, 3), n=M2, exclude_seen=False)
    assert np.allclose(values, plain(model, 3)[columns], atol=1e-9)
    assert (np.diff(values) <= 0.0).all()


def test_what_somebody_has_had_is_left_out_and_nothing_is_stored():
    model, X, _ = solved()
    before = model.predict(X)
    columns, values = model.recommend_for([1, 2, 99], [5.0, 1.0, 3.0], n=50, exclude=[4])
    assert sorted(columns) == sorted(set(range(M2)) - {1, 2, 4})
    assert np.array_equal(values, model.recommend_for([1, 2], [5.0, 1.0], 50, exclude=[4])[1])
    assert np.array_equal(model.predict(X), before)
    assert model.shape_ == (M1, M2)


def test_somebody_without_values_gets_what_all_like():
    model, _, _ = solved()
    columns, values = model.recommend_for([], [], n=M2)
    expected = model.predict(np.column_stack((np.full(M2, 999), np.arange(M2))), unknown="fallback")
    assert np.allclose(values, expected[columns], atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_contributions_are_what_the_prediction_changes_with_each_value(weighted):
    X, y = ratings(1)
    w = np.tile([1.0, 2.0], 350) if weighted else None
    model = ofw.FrankWolfeMatrixCompletion(chains=2, dtype="float64", clip=False)
    model.learn(X, y, w)
    chains = model.objective_.model
    chains.solve(np.arange(M1), np.arange(0))
    columns, contributions = model.because(3, 5, n=100)
    assert np.isclose(contributions.sum(), model.predict([[3, 5]])[0], atol=1e-9)
    # The regression of the row in each chain by dense matrices.
    own = X[:, 0] == 3
    at, values = given(model, 3)
    weight = np.ones(at.size) if w is None else w[own]
    expected, k, width = np.zeros(M2), chains.rank, chains.width
    for c in range(2):
        S = chains.columns.samples[at, c]
        F = np.column_stack((S[:, :k], np.ones(at.size)))
        t = (values - chains.centre) / chains.unit - S[:, k]
        precision = chains.noise[c, 2]
        Lambda = chains.rows.priors[c, width**2 : 2 * width**2].reshape(width, width)
        A = precision * F.T @ (weight[:, None] * F) + Lambda[: k + 1, : k + 1]
        wanted = np.append(chains.columns.means[5, c, :k], 1.0)
        parts = chains.unit / 2 * (wanted @ np.linalg.inv(A) @ F.T) * precision * weight * t
        expected += np.bincount(at, parts, minlength=M2)
    assert set(columns[:-1]) == set(at)
    assert np.allclose(contributions[:-1], expected[columns[:-1].astype(int)], atol=1e-9)


@pytest.mark.parametrize("half_life", [None, 100.0, "auto"])
def test_contributions_add_up_to_the_prediction(half_life):
    X, y = ratings(2)
    names = np.array([[f"p{row}", f"c{column}"] for row, column in X], dtype=object)
    model = ofw.FrankWolfeMatrixCompletion(half_life=half_life)
    model.learn(names, y)
    for column in ("c1", "c7"):
        columns, contributions = model.because("p3", column, n=2)
        assert columns[-1] is None
        assert len(columns) == 3
        assert contributions[0] >= contributions[1]
        assert np.isclose(contributions.sum(), model.predict([["p3", column]])[0])


def test_what_has_no_regressions_of_rows_says_so(tmp_path):
    X, y = ratings(3)
    model = ofw.FrankWolfeMatrixCompletion().fit(X, y)
    ofw.save(model, tmp_path / "m.ofw")
    for other in (ofw.load(tmp_path / "m.ofw"), ofw.FrankWolfeMatrixCompletion(9.0).fit(X, y)):
        for ask in (lambda m: m.because(1, 1), lambda m: m.recommend_for([1], [1.0])):
            with pytest.raises(ValueError, match="needs factors"):
                ask(other)


def test_bad_questions_are_refused_in_one_line():
    model, X, y = solved()
    for ask, message in (
        (lambda: model.recommend_for([1, 2], [1.0]), "2 rows but y has 1"),
        (lambda: model.recommend_for(1, 1.0), "columns must be a list"),
        (lambda: model.because(999, 1), "row must be one of"),
        (lambda: model.because(1, 999), "column must be one that"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
    labels = ofw.FrankWolfeMatrixCompletion(loss="logistic").fit(X, np.sign(y - 3.0))
    for ask in (lambda: labels.recommend_for([1, 2], [1.0, -1.0]), lambda: labels.because(1, 1)):
        with pytest.raises(ValueError, match="square loss"):
            ask()
