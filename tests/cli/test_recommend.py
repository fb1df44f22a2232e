"""``ofw recommend``: the items a user would rate highest."""

import json

import numpy as np
import pytest

from onlinefw import load

from ..readers.writing import write
from .running import ofw_says, ratings, refusal, rows

FAST = ("--radius", "10", "--batch-size", "20")


def fitted(tmp_path, columns):
    data, out = write(tmp_path / "a.csv", columns), tmp_path / "m.ofw"
    ofw_says("fit", "matrix", data, "-o", out, *FAST)
    return out


@pytest.mark.parametrize("users", ["u{}", "{}"], ids=["text users", "integer users"])
@pytest.mark.parametrize("items", ["film {}", "{}"], ids=["text items", "integer items"])
def test_items_not_rated_yet_come_best_first(tmp_path, users, items):
    columns = ratings(60, users=users, items=items)
    model = fitted(tmp_path, columns)
    user = columns["user"][0]
    said = [line.split("\t") for line in ofw_says("recommend", model, "--user", user).splitlines()]
    pairs = zip(columns["user"], columns["item"], strict=True)
    seen = {item for who, item in pairs if who == user}
    assert {item for item, _ in said} == set(columns["item"]) - seen
    scores = [float(score) for _, score in said]
    assert scores == sorted(scores, reverse=True)


def test_json_counts_and_items_seen(tmp_path):
    columns = ratings(60)
    model = fitted(tmp_path, columns)
    told = json.loads(ofw_says("recommend", model, "--user", "u3", "-n", "4", "--seen", "--json"))
    loaded = load(model)
    scores = loaded.predict([["u3", item] for item in loaded.col_ids_.tolist()])
    best = np.argsort(-scores, kind="stable")[:4]
    assert [one["item"] for one in told] == loaded.col_ids_[best].tolist()
    np.testing.assert_allclose([one["prediction"] for one in told], scores[best], rtol=1e-6)


def test_a_user_the_model_has_not_seen(tmp_path):
    model = fitted(tmp_path, ratings(60))
    line = refusal("recommend", model, "--user", "nobody")
    assert f"{model} has not seen the user 'nobody'; it knows 12, such as u" in line


def test_a_model_of_another_kind(tmp_path):
    data, model = write(tmp_path / "a.csv", rows(target="label")), tmp_path / "m.ofw"
    ofw_says("fit", "classification", data, "-o", model, *FAST)
    line = refusal("recommend", model, "--user", "1")
    assert f"{model} is a FrankWolfeClassifier: only a matrix model recommends" in line
