"""Forgetting happens or it does not, wherever it fails: of a person, and after a change."""

import numpy as np
import pytest

import onlinefw as ofw

from ..past.changing import changing_rows
from .test_failed_rounds import happens_or_not

COMPLETIONS = {
    "local": {},
    "local, fading": {"half_life": 40.0},
    "half-lives": {"half_life": "auto"},
    "steps": {"radius": 20.0, "corrective": None, "half_life": 40.0},
    "joint": {"radius": 20.0, "offsets": "joint"},
}


def told_of_ratings(model, X):
    """Return what changes when a person is forgotten."""
    ids = np.array([str(name) for name in model.row_ids_])  # None where one was forgotten
    return [ids, model.predict(X), np.asarray(model.n_rounds_)]


@pytest.mark.parametrize("kind", COMPLETIONS)
def test_a_person_is_forgotten_or_not(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(9, size=90), rng.integers(8, size=90)))
    X = np.array([[f"p{row}", f"m{column}"] for row, column in X.tolist()], dtype=object)
    model = ofw.FrankWolfeMatrixCompletion(dtype="float64", random_state=0, **COMPLETIONS[kind])
    for part in np.split(np.arange(90), 6):
        model.partial_fit(X[part], rng.standard_normal(15) + 3.0)
    others = X[X[:, 0] != "p3"]

    def forget(one):
        if "p3" in set(one.row_ids_):  # if it had not happened
            one.forget("p3")

    happens_or_not(model, forget, others, told_of_ratings, seed=1, moments=40)


def told_of_rows(model, X):
    told = [model.n_observations_, model.changes_, model.half_life_ or np.inf, model.radius_]
    return [*map(np.asarray, told), model.coef_, model.predict(X), model.history_["loss"]]


@pytest.mark.parametrize("loss", ["square", "correntropy"])  # sums, and rows
def test_memories_begin_anew_or_not(loss):
    X, y = changing_rows()
    model = ofw.FrankWolfeRegressor(loss=loss, half_life="auto", history_size=20)
    whole = ofw.FrankWolfeRegressor(loss=loss, half_life="auto")
    whole.learn(X, y)
    (change,) = whole.changes_
    model.learn(X[: change - 1], y[: change - 1])
    last = slice(change - 1, change)  # with this row the change is noticed

    def learn(one):
        if one.n_observations_ < change:
            one.learn(X[last], y[last])

    happens_or_not(model, learn, X[:20], told_of_rows, seed=2, moments=60)
