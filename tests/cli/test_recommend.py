"""``ofw recommend``: the items a user would rate highest."""

import json

import numpy as np
import pytest

from onlinefw import FrankWolfeMatrixCompletion, load, save

from ..readers.writing import write
from .running import ofw, ofw_says, ratings, refusal, rows

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


@pytest.mark.parametrize("user", ["ann", "7"])
def test_a_model_of_ids_that_python_saved(user, tmp_path):
    X = [["ann", "up"], ["7", "jaws"], ["7", "up"], ["ann", "tron"], ["7", "tron"]]
    model = FrankWolfeMatrixCompletion().fit(X, [5.0, 3.0, 4.0, 1.0, 2.0])
    save(model, tmp_path / "m.ofw")
    told = json.loads(ofw_says("recommend", tmp_path / "m.ofw", "--user", user, "--seen", "--json"))
    films, scores = model.recommend(user, exclude_seen=False)
    assert [one["item"] for one in told] == films.tolist()
    np.testing.assert_allclose([one["prediction"] for one in told], scores, rtol=1e-5)
    (tmp_path / "pairs.csv").write_text(f"user,item\n{user},jaws\neve,up\n")
    lines = ofw("predict", tmp_path / "m.ofw", tmp_path / "pairs.csv").stdout.splitlines()
    expected = model.predict([[user, "jaws"], ["eve", "up"]], unknown="fallback")
    found = [float(line.rpartition(",")[2]) for line in lines[1:]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert "rows: 2\ncolumns: 3\n" in ofw_says("inspect", tmp_path / "m.ofw")


def test_a_user_the_model_has_not_seen(tmp_path):
    model = fitted(tmp_path, ratings(60))
    line = refusal("recommend", model, "--user", "nobody")
    assert f"{model} has not seen the user 'nobody'; it knows 12, such as u" in line


def test_a_model_of_another_kind(tmp_path):
    data, model = write(tmp_path / "a.csv", rows(target="label")), tmp_path / "m.ofw"
    ofw_says("fit", "classification", data, "-o", model, *FAST)
    line = refusal("recommend", model, "--user", "1")
    what = "only a model of ratings or clicks recommends"
    assert f"{model} is a FrankWolfeClassifier: {what}" in line


def test_a_file_that_has_more_than_a_user_in_every_line(tmp_path):
    model = fitted(tmp_path, ratings(60))
    result = ofw("recommend", model, "--users", tmp_path / "a.csv", "-n", "1")
    header = (tmp_path / "a.csv").read_text().splitlines()[0]
    assert result.stdout.splitlines() == ["user,rank,item,score"]
    assert f"(the first: '{header}'): left out; the file has a user in every line" in result.stderr


def test_reasons_are_asked_of_models_of_clicks(tmp_path):
    columns = ratings(60)
    user, item = columns["user"][0], columns["item"][0]
    line = refusal("recommend", fitted(tmp_path, columns), "--user", user, "--because", item)
    assert line.endswith(
        "is a model of ratings: --because explains those of clicks (ofw fit clicks)"
    )
