"""Targets that a loss is not defined for: which file, which row, which value, what to do."""

import numpy as np
import pytest

from ..readers.writing import csv_text, write
from .running import ofw_json, ofw_says, piped, refusal

FAST = ("--radius", "2", "--batch-size", "10")


def counts(n=60):
    rng = np.random.default_rng(0)
    return {"a": rng.random(n).round(3).tolist(), "y": rng.integers(1, 4, n).tolist()}


def with_bad(value, k=42, n=60):
    columns = counts(n)
    columns["y"][k] = value
    return columns


def libsvm_text(columns):
    return "".join(f"{y} 1:{a}\n" for a, y in zip(columns["a"], columns["y"], strict=True))


@pytest.mark.parametrize("value", ["-1", "2.5"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl", "a.parquet", "a.libsvm"])
def test_every_format_names_file_row_value_and_remedy(tmp_path, name, value):
    path, columns = tmp_path / name, with_bad(float(value))
    if name == "a.libsvm":
        path.write_text(libsvm_text(columns))
    else:
        columns["y"] = [float(y) for y in columns["y"]]
        write(path, columns)
    where = {
        "a.csv": "row 43 (line 44), column 'y'",
        "a.tsv.gz": "row 43 (line 44), column 'y'",
        "a.libsvm": "row 43: the label",
    }.get(name, "row 43, column 'y'")
    fit = ("fit", "regression", path, "--loss", "poisson", "-o", tmp_path / "m.ofw", *FAST)
    assert refusal(*fit) == (
        f"ofw fit: {path}: {where}: the poisson loss needs counts 0, 1, 2, ..., not "
        f"'{float(value)}'; correct it, choose another --loss, or leave bad rows out "
        "(--on-bad-row skip)"
    )
    assert not (tmp_path / "m.ofw").exists()
    told = ofw_json(*fit, "--on-bad-row", "skip")
    assert told["rows learned"] == 59 and told["rows left out"] == {"not for this loss": 1}


def test_a_pipe_names_the_row_too(tmp_path):
    text = csv_text(with_bad(-1))
    fit = ("fit", "regression", "-", "--loss", "poisson", "-o", tmp_path / "m.ofw", *FAST)
    with piped(text):
        line = refusal(*fit)
    assert "standard input: row 43 (line 44), column 'y': the poisson loss needs" in line
    with piped(text):
        ofw_says(*fit, "--on-bad-row", "skip")


@pytest.mark.parametrize(
    ("loss", "value", "words"),
    [
        ("poisson", "2.5", "counts 0, 1, 2, ..., not '2.5'"),
        ("bernoulli", "2", "targets in {0, 1}, not '2'"),
        ("exponential", "0", "positive targets, not '0'"),
    ],
)
def test_ratings_have_the_same_rule(tmp_path, loss, value, words):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n" + "1,2,1\n2,3,1\n" * 20 + f"3,4,{value}\n")
    line = refusal("fit", "matrix", path, "--loss", loss, "-o", tmp_path / "m.ofw", *FAST)
    assert f"{path}: row 41 (line 42), column 'rating': the {loss} loss needs {words}" in line


def test_the_second_file_is_named_and_so_is_the_test_file(tmp_path):
    good, bad = write(tmp_path / "1.csv", counts()), write(tmp_path / "2.csv", with_bad(-1, 4))
    fit = ("fit", "regression", good, "--loss", "poisson", "-o", tmp_path / "m.ofw", *FAST)
    for more in ((bad,), ("--test", bad)):
        assert f"{bad}: row 5 (line 6), column 'y'" in refusal(*fit, *more)


def test_labels_of_a_classification_are_what_they_are(tmp_path):
    path = write(tmp_path / "a.csv", with_bad(7))
    fit = ("fit", "classification", path, "--target", "y", "-o", tmp_path / "m.ofw", *FAST)
    for loss in ("logistic", "bernoulli", "sigmoid"):
        assert ofw_json(*fit, "--loss", loss)["rows learned"] == 60


@pytest.mark.parametrize("column", ["a", "y"])
def test_a_number_too_large_to_be_squared_is_named(tmp_path, column):
    columns = counts()
    columns[column][30] = 1e200
    path = write(tmp_path / "a.csv", columns)
    line = refusal("fit", "regression", path, "-o", tmp_path / "m.ofw", *FAST)
    assert f"{path}: row 31 (line 32), column '{column}': '1e+200' is too large to be sq" in line
    assert "; rescale the column, or leave bad rows out" in line
