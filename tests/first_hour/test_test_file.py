"""``--test``: columns are found by name, and whatever is wrong with the file costs no model."""

import numpy as np
import pytest

from onlinefw import load

from ..cli.running import ofw, ofw_json, refusal, rows
from ..readers.writing import write

FAST = ("--batch-size", "50", "--radius", "5")


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "a.csv", rows(300))


def turned(columns):
    return dict(reversed(columns.items()))


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--features", "a,b,c"),
        ("--features", "1-3"),
        ("--features", "a,b,c", "--target", "4"),
        ("--features", "1-2", "--target", "4"),
    ],
)
def test_columns_are_found_by_name_in_any_order(tmp_path, data, options):
    fit = ("fit", "regression", data, *FAST, *options, "--test")
    straight = write(tmp_path / "t.csv", rows(100, seed=1))
    mixed = write(tmp_path / "u.csv", turned(rows(100, seed=1)))
    told = [
        ofw_json(*fit, test, "-o", tmp_path / "m.ofw")["test file"] for test in (straight, mixed)
    ]
    assert told[0] == told[1] and told[0]["r2"] > 0.5


def test_pairs_are_found_by_name_as_well(tmp_path):
    rng = np.random.default_rng(0)
    pairs = {"user": rng.integers(9, size=200).tolist(), "item": rng.integers(5, size=200).tolist()}
    columns = {**pairs, "rating": rng.integers(1, 6, size=200).tolist()}
    path, test = write(tmp_path / "a.csv", columns), write(tmp_path / "t.csv", turned(columns))
    numbers = ("--user", "1", "--item", "2", "--rating", "3")
    told = [
        ofw_json("fit", "matrix", path, "-o", tmp_path / "m.ofw", *options, "--test", one)
        for options in ((), numbers)
        for one in (path, test)
    ]
    assert all(one["test file"] == told[0]["test file"] for one in told)


def test_extra_columns_are_named_and_ignored(tmp_path, data):
    columns = {"id": list(range(50)), **rows(50, seed=1), "note": ["x"] * 50}
    test = write(tmp_path / "t.csv", columns)
    result = ofw("fit", "regression", data, "-o", tmp_path / "m.ofw", *FAST, "--test", test)
    assert result.exit_code == 0
    assert f"ofw fit: {test}: not in the data that are learned, ignored: 'id', 'note'" in (
        result.stderr.splitlines()
    )


def test_missing_columns_are_refused_before_learning(tmp_path, data):
    columns = rows(50)
    del columns["b"]
    test = write(tmp_path / "t.csv", columns)
    line = refusal("fit", "regression", data, "-o", tmp_path / "m.ofw", "--test", test)
    assert f"{test}: there is no column 'b'" in line and not (tmp_path / "m.ofw").exists()


def test_libsvm_rows_with_fewer_features_are_padded_and_with_more_refused(tmp_path):
    out, path = tmp_path / "m.ofw", tmp_path / "a.libsvm"
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((200, 4)), 3)
    path.write_text(
        "".join(f"{x[0]} " + " ".join(f"{j}:{v}" for j, v in enumerate(x, 1)) + "\n" for x in X)
    )
    test = tmp_path / "t.libsvm"
    test.write_text("0.5 1:0.5\n-0.25 1:-0.25 2:1\n")
    fit = ("fit", "regression", path, "-o", out, *FAST, "--test", test)
    told = ofw_json(*fit)
    assert told["test file"]["rows"] == 2 and told["test file"]["mse"] < 0.1
    out.unlink()
    # Far behind the first rows, which are all that is looked at of other formats.
    test.write_text("0.5 1:0.5\n" * 70_000 + "0.5 7:1\n")
    assert "index 7 is beyond the 4 features" in refusal(*fit)
    assert not out.exists()


def test_a_test_file_that_fails_late_costs_no_model(tmp_path, data):
    out, test = tmp_path / "m.ofw", tmp_path / "t.csv"
    lines = ["a,b,c,target"] + ["1,2,3,4"] * 70_000 + ["1,2,3,x"]
    test.write_text("\n".join(lines))
    result = ofw("fit", "regression", data, "-o", out, *FAST, "--test", test)
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert "the test file is not scored: " in line and "'x' is not a number" in line
    assert line.endswith(f"; the model is written: {out}")
    model = load(out)
    assert model.notes_["summary"]["rows learned"] == 300
    assert "test file" not in model.notes_["summary"]


def test_rows_of_the_test_file_that_are_left_out_are_told(tmp_path, data):
    test = tmp_path / "t.csv"
    test.write_text("a,b,c,target\n1,2,3,4\n1,2,x,4\n")
    fit = ("fit", "regression", data, "-o", tmp_path / "m.ofw", *FAST, "--test", test)
    told = ofw_json(*fit, "--on-bad-row", "skip")
    assert told["test file"]["rows"] == 1
    assert told["test file"]["rows left out"] == {"not a number": 1}
    said = ofw(*fit, "--on-bad-row", "skip").stdout
    assert "(1 row); rows left out: 1 not a number" in said
