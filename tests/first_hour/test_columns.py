"""Columns of all sorts: ranges, gaps, text and the order of time, in fit, resume and predict."""

import json

import numpy as np
import pytest

from onlinefw import load

from ..cli.running import assert_same_models, ofw, ofw_json, ofw_says, refusal, rows
from ..readers.writing import write

FAST = ("--batch-size", "50", "--radius", "2")


def wide(n=300, seed=0):
    """f0 to f9, a name, and a target that depends on f1."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, 10)), 3)
    columns = {f"f{j}": X[:, j].tolist() for j in range(10)}
    return {"name": [f"n{k}" for k in range(n)], **columns, "y": np.round(X[:, 1], 3).tolist()}


@pytest.mark.parametrize(
    ("options", "used"),
    [
        (("--features", "f0-f2"), ["f0", "f1", "f2"]),
        (("--features", "2-4,f9"), ["f0", "f1", "f2", "f9"]),
        (("--drop", "name"), [f"f{j}" for j in range(10)]),
        (("--drop", "name,f3-f9"), ["f0", "f1", "f2"]),
        (("--features", "f0-f9", "--drop", "f5"), [f"f{j}" for j in range(10) if j != 5]),
    ],
)
def test_columns_are_chosen_by_ranges_and_left_out(tmp_path, options, used):
    path, out = write(tmp_path / "a.csv", wide()), tmp_path / "m.ofw"
    ofw_says("fit", "regression", path, "-o", out, *FAST, *options)
    assert load(out).feature_names_in_.tolist() == used
    # predict finds them by name, whatever else is there and in whatever order.
    columns = wide(5, seed=1)
    straight = ofw_says("predict", out, write(tmp_path / "b.csv", columns))
    turned = write(tmp_path / "c.csv", dict(reversed(columns.items())))
    assert ofw_says("predict", out, turned) == straight


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--features", "f0-f12"), "there is no column 'f10'; did you mean 'f1"),
        (("--features", "f5-f2"), "the range f5-f2 runs backwards; write it as f2-f5"),
        (("--drop", "nmae"), "there is no column 'nmae'; did you mean 'name'?"),
        (("--drop", "name,f0-f9"), "there are no features; check --features and --drop"),
        (("--sort-by", "when", "--drop", "name"), "there is no column 'when'"),
    ],
)
def test_columns_that_are_not_there_are_refused(tmp_path, options, words):
    path = write(tmp_path / "a.csv", wide(20))
    assert words in refusal("fit", "regression", path, "-o", tmp_path / "m.ofw", *options)


def gappy(n=400, seed=0):
    """A number with gaps and a text, on which the target depends."""
    rng = np.random.default_rng(seed)
    a, city = np.round(rng.normal(5.0, 1.0, n), 3), rng.choice(["Oslo", "Rome", "Bari"], n)
    y = 2.0 * a + 5.0 * (city == "Rome")
    age = [("", "NA")[k % 2] if rng.random() < 0.1 else a[k] for k in range(n)]
    return {"age": age, "city": city.tolist(), "y": np.round(y, 3).tolist()}


def test_gaps_are_refused_by_a_line_that_names_the_option(tmp_path):
    path = write(tmp_path / "a.csv", {k: v for k, v in gappy().items() if k != "city"})
    line = refusal("fit", "regression", path, "-o", tmp_path / "m.ofw")
    assert "column 'age'" in line and "say --missing mean or --missing drop" in line


def test_gaps_and_text_are_asked_about_in_one_line_with_options_to_copy(tmp_path):
    columns = {**gappy(), "agent": ["ann", "bob"] * 200}
    path, fit = write(tmp_path / "a.csv", columns), ("fit", "regression")
    line = refusal(*fit, path, "-o", tmp_path / "m.ofw", "--target", "y")
    options = "--text one-hot --missing mean"
    assert f"city, agent hold text and age has gaps: say {options}, leave columns out" in line
    ofw_says(*fit, path, "-o", tmp_path / "m.ofw", "--target", "y", *options.split(), *FAST)


@pytest.mark.parametrize("text", ["one-hot", "hash"])
def test_gaps_and_text_are_treated_alike_in_fit_test_and_predict(tmp_path, text):
    path, other = write(tmp_path / "a.csv", gappy()), gappy(100, seed=1)
    out, test = tmp_path / "m.ofw", write(tmp_path / "t.csv", dict(reversed(other.items())))
    options = ("--missing", "mean", "--text", text)
    told = ofw_json("fit", "regression", path, "-o", out, *options, "--test", test)
    assert told["test file"]["rows"] == 100 and told["test file"]["r2"] > 0.6
    lines = ofw_says("predict", out, test).splitlines()[1:]
    errors = np.array([float(line) for line in lines]) - np.array(other["y"])
    assert np.mean(errors**2) == pytest.approx(told["test file"]["mse"], rel=1e-5)
    assert told["test file"]["rmse"] == pytest.approx(told["test file"]["mse"] ** 0.5)
    if text == "one-hot":
        assert "city=Rome" in ofw_says("inspect", out)


def test_a_text_without_a_place_has_a_prediction_as_well(tmp_path):
    path, out = write(tmp_path / "a.csv", gappy()), tmp_path / "m.ofw"
    ofw_says("fit", "regression", path, "-o", out, "--missing", "mean", "--text", "one-hot")
    (tmp_path / "b.csv").write_text("city,age\nLima,5\n,\n")
    assert len(ofw_says("predict", out, tmp_path / "b.csv").splitlines()) == 3


def test_rows_with_gaps_are_dropped_and_counted_and_keep_their_place_in_predictions(tmp_path):
    columns = {k: v for k, v in gappy().items() if k != "city"}
    path, out = write(tmp_path / "a.csv", columns), tmp_path / "m.ofw"
    n = sum(isinstance(cell, str) for cell in columns["age"])
    told = ofw_json("fit", "regression", path, "-o", out, *FAST, "--missing", "drop")
    assert told["rows learned"] == 400 - n and sum(told["rows left out"].values()) == n
    result = ofw("predict", out, path, "-o", tmp_path / "p.jsonl")
    assert f"{n} bad rows left out" in result.stderr
    written = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    gaps = [row["prediction"] is None for row in written]
    assert gaps == [isinstance(cell, str) for cell in columns["age"]]


def test_a_run_that_was_stopped_goes_on_with_its_means_and_categories(tmp_path, monkeypatch):
    path = write(tmp_path / "a.csv", {**gappy(), "when": list(range(400, 0, -1))})
    options = ("--missing", "mean", "--text", "one-hot", "--sort-by", "when", *FAST)
    fit = ("fit", "regression", path, *options)
    ofw_says(*fit, "-o", tmp_path / "whole.ofw")

    import onlinefw.cli.fit as module

    rounds = []

    def stopped(session, reader, *, stop, **options):
        return learn(session, reader, stop=lambda: len(rounds) >= 3, **options)

    def shown(display, session):
        rounds.append(session.rounds)

    learn = module.learn
    monkeypatch.setattr(module, "learn", stopped)
    monkeypatch.setattr(module.Display, "show", shown)
    checkpoint = tmp_path / "run.ckpt"
    assert ofw(*fit, "-o", tmp_path / "half.ofw", "--checkpoint", checkpoint).exit_code == 1
    monkeypatch.undo()
    ofw_says(*fit, "-o", tmp_path / "rest.ofw", "--resume", checkpoint)
    assert_same_models(tmp_path / "whole.ofw", tmp_path / "rest.ofw")
    line = refusal(*fit, "-o", tmp_path / "x.ofw", "--resume", checkpoint, "--missing", "drop")
    assert "--missing" in line and "was begun with 'mean'" in line


def test_text_and_the_order_of_time_need_files(tmp_path):
    out = tmp_path / "m.ofw"
    line = refusal("fit", "regression", "-", "-o", out, "--text", "hash", "--target", "y")
    assert "--text needs a file" in line
    line = refusal("fit", "matrix", "-", "-o", out, "--sort-by", "timestamp")
    assert "--sort-by needs files" in line
    (tmp_path / "a.libsvm").write_text("1 1:2\n2 1:3\n")
    for option in (("--text", "hash"), ("--sort-by", "3"), ("--drop", "3")):
        line = refusal("fit", "regression", tmp_path / "a.libsvm", "-o", out, *option)
        assert f"{option[0]} is for columns, which LIBSVM rows do not have" in line


@pytest.mark.parametrize("kind", ["matrix", "clicks", "regression", "classification"])
def test_every_kind_learns_in_the_order_of_time(tmp_path, kind):
    n = 120
    columns = rows(n, target="label" if kind == "classification" else "number")
    if kind in ("matrix", "clicks"):
        columns = {"user": [k % 7 for k in range(n)], "item": [k % 11 for k in range(n)]}
        columns |= {"rating": [1 + k % 5 for k in range(n)]} if kind == "matrix" else {}
    times = np.random.default_rng(0).permutation(n)
    back = np.argsort(times)
    ordered = {k: [v[i] for i in back] for k, v in columns.items()}
    given = ("--drop", "timestamp") if "target" in columns else ()
    told = ofw_json(
        "fit", kind, write(tmp_path / "a.csv", {**columns, "timestamp": times.tolist()}),
        "-o", tmp_path / "a.ofw", "--sort-by", "timestamp",
    )  # fmt: skip
    timed = {**ordered, "timestamp": list(range(n))}
    path = write(tmp_path / "b.csv", timed)
    expected = ofw_json("fit", kind, path, "-o", tmp_path / "b.ofw", *given)
    assert told["progressive"] == expected["progressive"]
