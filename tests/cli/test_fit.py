"""``ofw fit``: a model from a file or a pipe."""

import os
import re

import numpy as np
import pytest
from sklearn.metrics import mean_squared_error

import onlinefw as ofw_library
from onlinefw._devices import check_device
from onlinefw.datasets import fetch_movielens
from onlinefw.datasets.store import available
from onlinefw.fitting.held_out import held_out

from ..readers.writing import csv_text, write
from .running import (
    assert_same_models,
    ofw,
    ofw_json,
    ofw_process,
    ofw_says,
    ratings,
    refusal,
    rows,
)

FAST = ("--radius", "10", "--batch-size", "20")
#: What scikit-learn says of arrays without names, as these tests have them.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture
def matrix(tmp_path):
    return write(tmp_path / "ratings.csv", ratings())


# Formats ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", ["u{}", "{}"], ids=["text", "integers"])
def test_the_same_ratings_in_every_format_give_the_same_model(tmp_path, users):
    columns = ratings(users=users)
    if users == "{}":
        columns["user"] = [int(u) for u in columns["user"]]
    names = ["a.csv", "a.tsv", "a.parquet", "a.jsonl", "a.csv.gz", "a.tsv.gz", "a.jsonl.zst"]
    for name in names:
        write(tmp_path / name, columns)
        ofw_says("fit", "matrix", tmp_path / name, "-o", tmp_path / f"{name}.ofw", *FAST)
        assert_same_models(tmp_path / f"{name}.ofw", tmp_path / "a.csv.ofw")
    plain = tmp_path / "u.data"
    plain.write_text(csv_text(columns, "\t", header=False))
    numbers = ("--user", "1", "--item", "2", "--rating", "3")
    ofw_says("fit", "matrix", plain, *numbers, "-o", tmp_path / "u.ofw", *FAST)
    assert_same_models(tmp_path / "u.ofw", tmp_path / "a.csv.ofw")


@pytest.mark.slow
def test_standard_input_gives_the_same_model(matrix, tmp_path):
    ofw_says("fit", "matrix", matrix, "-o", tmp_path / "file.ofw", *FAST)
    with matrix.open() as file:
        result = ofw_process("fit", "matrix", "-", "-o", tmp_path / "pipe.ofw", *FAST, stdin=file)
    assert result.returncode == 0, result.stderr
    assert_same_models(tmp_path / "pipe.ofw", tmp_path / "file.ofw")


def test_several_files_and_patterns_are_one_stream(tmp_path):
    columns = ratings()
    for k in range(3):
        part = {name: column[80 * k : 80 * (k + 1)] for name, column in columns.items()}
        write(tmp_path / f"part-{k}.csv", part)
    write(tmp_path / "whole.csv", columns)
    # One chunk is what settles the shape, so that of the whole file is given by its radius alone.
    whole = ofw_json("fit", "matrix", tmp_path / "whole.csv", "-o", tmp_path / "w.ofw", *FAST)
    parts = ofw_json("fit", "matrix", tmp_path / "part-*.csv", "-o", tmp_path / "p.ofw", *FAST)
    assert whole["rows learned"] == parts["rows learned"] == 240
    assert whole["progressive"]["rows"] == parts["progressive"]["rows"]
    listed = [tmp_path / f"part-{k}.csv" for k in range(3)]
    ofw_says("fit", "matrix", *listed, "-o", tmp_path / "l.ofw", *FAST)
    assert_same_models(tmp_path / "l.ofw", tmp_path / "p.ofw")


def test_libsvm_learns_labels(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("".join(f"{1 if k % 3 else -1} {1 + k % 3}:1\n" for k in range(90)))
    told = ofw_json("fit", "classification", path, "-o", tmp_path / "m.ofw", "--batch-size", "10")
    assert told["rows learned"] == 90 and told["progressive"]["error"] < 0.2


# Scores and what is said --------------------------------------------------------------------------


def test_the_scores_are_those_of_a_plain_loop(tmp_path):
    """Progressive, held out and of a test file, each computed here from predictions alone."""
    columns = ratings(300)
    path = write(tmp_path / "ratings.csv", columns)
    test = write(tmp_path / "test.csv", ratings(50, seed=9))
    out = tmp_path / "m.ofw"
    share = ("--test-fraction", "0.25", "--seed", "4")
    told = ofw_json("fit", "matrix", path, "-o", out, *FAST, *share, "--test", test)

    apart = held_out(0, 300, 0.25, 4)
    users, items = _numbered(columns["user"]), _numbered(columns["item"])
    X, y = np.column_stack((users, items)), np.array(columns["rating"])
    model = ofw_library.FrankWolfeMatrixCompletion(
        10.0, shape=(12, 9), offsets="joint", weighting="smoothed", step="line-search", clip=True
    )
    learned, errors = np.flatnonzero(~apart), []
    for k in range(0, learned.size, 20):
        batch = learned[k : k + 20]
        if k:
            predicted = model.predict(X[batch], unknown="fallback")
            errors += np.square(predicted - y[batch]).tolist()
        model.partial_fit(X[batch], y[batch])
    assert told["rows learned"] == learned.size and told["rows read"] == 300
    assert told["progressive"]["rows"] == len(errors)
    assert told["progressive"]["mse"] == pytest.approx(np.mean(errors))
    expected = mean_squared_error(y[apart], model.predict(X[apart]))
    assert told["held out"]["rows"] == apart.sum()
    assert told["held out"]["mse"] == pytest.approx(expected)
    # What ofw predict says about the test file has the score that was told.
    answers = ofw_says("predict", out, test).splitlines()[1:]
    predicted = [float(line.split(",")[2]) for line in answers]
    expected = mean_squared_error(ratings(50, seed=9)["rating"], predicted)
    assert told["test file"] == {
        "rows": 50,
        "mse": pytest.approx(expected, rel=1e-5),
        "rmse": pytest.approx(expected**0.5, rel=1e-5),
        "r2": pytest.approx(1.0 - expected / np.var(ratings(50, seed=9)["rating"]), rel=1e-4),
    }


def _numbered(names):
    places = {}
    return [places.setdefault(name, len(places)) for name in names]


def test_a_test_file_of_text_labels_is_scored(tmp_path):
    path = write(tmp_path / "a.csv", rows(target="label"))
    test = write(tmp_path / "t.csv", rows(60, seed=5, target="label"))
    out = tmp_path / "m.ofw"
    told = ofw_json("fit", "classification", path, "-o", out, "--test", test)
    answers = [line.split(",")[0].strip('"') for line in ofw_says("predict", out, test).split()[1:]]
    wrong = np.mean(np.array(answers) != rows(60, seed=5, target="label")["target"])
    assert told["test file"]["rows"] == 60
    assert told["test file"]["error"] == pytest.approx(wrong)


def test_the_summary_says_how_good_the_model_is_and_where_it_is(matrix, tmp_path):
    out = tmp_path / "m.ofw"
    said = ofw_says("fit", "matrix", matrix, "-o", out, *FAST, "--test-fraction", "0.2")
    for words in ("predict-then-learn: MSE ", "held out: MSE ", "certificate", f"written: {out}"):
        assert words in said


def test_one_of_anything_is_singular(tmp_path):
    path, out = tmp_path / "one.csv", tmp_path / "m.ofw"
    path.write_text("user,item,rating\nann,tea,4\n")
    said = ofw_says("fit", "matrix", path, "-o", out, "--radius", "1")
    assert "learned 1 row in 1 round\n" in said
    page = tmp_path / "report.html"
    ofw_says("report", out, "-o", page)
    text = page.read_text(encoding="utf-8")
    assert "A model of 1 user and 1 item" in text and "from 1 rating in 1 round," in text
    assert not re.search(r"\b1 (users|items|ratings|rows|rounds|patterns|numbers|columns)\b", text)


def test_json_is_one_valid_object_and_quiet_is_silent(matrix, tmp_path):
    out = tmp_path / "m.ofw"
    told = ofw_json("fit", "matrix", matrix, "-o", out, *FAST)
    assert told["model"] == str(out) and told["ended"] is True
    result = ofw("fit", "matrix", matrix, "-o", out, *FAST, "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_one_batch_has_no_progressive_score_and_still_gives_json(matrix, tmp_path):
    whole = "fit", "matrix", matrix, "-o", tmp_path / "m.ofw", "--batch-size", "1000"
    told = ofw_json(*whole, "--radius", "50")
    assert told["progressive"] == {"rows": 0, "mse": None, "rmse": None, "r2": None}
    told = ofw_json(*whole)  # one after another, whatever the batch
    assert told["progressive"]["rows"] == 239


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_radius_and_batches_are_found_by_default(kind, tmp_path):
    target = "number" if kind == "regression" else "label"
    path = write(tmp_path / "a.csv", rows(400, target=target))
    told = ofw_json("fit", kind, path, "-o", tmp_path / "m.ofw", "--test-fraction", "0.2")
    score = told["held out"]
    assert score["r2"] > 0.9 if kind == "regression" else score["error"] < 0.1


def test_features_and_target_by_name_or_number(tmp_path):
    path = write(tmp_path / "a.csv", rows())
    fit = ("fit", "regression", path, "--radius", "3", "--batch-size", "20", "-o")
    ofw_says(*fit, tmp_path / "names.ofw", "--features", "a,c", "--target", "target")
    ofw_says(*fit, tmp_path / "numbers.ofw", "--features", "1,3", "--target", "4", "--header")
    assert_same_models(tmp_path / "names.ofw", tmp_path / "numbers.ofw")


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_a_half_life_is_that_of_the_model(kind, tmp_path):
    target = "number" if kind == "regression" else "label"
    path, out = write(tmp_path / "a.csv", rows(400, target=target)), tmp_path / "m.ofw"
    fit = ("fit", kind, path, "--radius", "3", "-o", out)
    ofw_says(*fit, "--half-life", "50")
    assert ofw_library.load(out).half_life == 50.0
    assert "--half-life counts observations, at least 1" in refusal(*fit, "--half-life", "0.5")
    assert "--half-life takes a number or auto, not 'soon'" in refusal(*fit, "--half-life", "soon")
    said = ofw_says(*fit, "--half-life", "auto")
    assert "\nforgetting: " in said
    assert ofw_library.load(out).half_life == "auto"


@pytest.mark.skipif(check_device("auto") == "cuda", reason="there is a GPU here")
def test_a_device_that_is_not_here_is_refused_before_the_work(tmp_path):
    path = write(tmp_path / "a.csv", rows())
    fit = ("fit", "regression", path, "--radius", "3", "--batch-size", "20", "-o")
    assert 'use device="cpu"' in refusal(*fit, tmp_path / "m.ofw", "--device", "cuda")
    assert 'one of "cpu", "cuda" or "auto"' in refusal(*fit, tmp_path / "m.ofw", "--device", "tpu")
    assert not (tmp_path / "m.ofw").exists()


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_any_device_that_is_there_gives_a_model(tmp_path, kind):
    target = "number" if kind == "regression" else "label"
    path = write(tmp_path / "a.csv", rows(400, target=target))
    fit = ("fit", kind, path, "--radius", "3", "--batch-size", "40", "-o")
    here = ofw_json(*fit, tmp_path / "here.ofw")
    there = ofw_json(*fit, tmp_path / "there.ofw", "--device", "auto")
    assert there["gap"] == pytest.approx(here["gap"], rel=1e-3, abs=1e-6)


@pytest.mark.slow
@pytest.mark.skipif("ONLINEFW_DATA" not in os.environ, reason="ONLINEFW_DATA names no data folder")
def test_movielens_100k_in_its_original_form(tmp_path):
    if not available("movielens100k"):
        pytest.skip("MovieLens 100k is not in the data folder")
    data = fetch_movielens("100k")
    columns = {
        "user": data.row_ids[data.rows].tolist(),
        "item": data.col_ids[data.cols].tolist(),
        "rating": data.values.astype(int).tolist(),
        "time": [0] * len(data.values),
    }
    path = tmp_path / "u.data"
    path.write_text(csv_text(columns, "\t", header=False))
    numbers = ("--user", "1", "--item", "2", "--rating", "3")
    told = ofw_json("fit", "matrix", path, *numbers, "--test-fraction", "0.2",
                    "-o", tmp_path / "m.ofw")  # fmt: skip
    assert told["rows read"] == 100_000
    assert told["held out"]["r2"] > 0.25
    assert told["held out"]["mse"] < 0.75 * np.var(data.values)


# Errors -------------------------------------------------------------------------------------------

HEADER = "user,item,rating\n"


@pytest.mark.parametrize(
    ("kind", "name", "content", "words"),
    [
        ("matrix", "a.csv", "", "a.csv: there are no rows in it; check"),
        ("matrix", "a.csv", HEADER, "a.csv: there are no rows in it; check"),
        ("matrix", "a.csv", "user,item\n1,2\n", "a.csv: no column is obviously the rating; say"),
        ("matrix", "a.csv", HEADER + "1,2,3\n1,3,nan\n", "a.csv: row 2 (line 3), column 'rating'"),
        ("matrix", "a.csv", HEADER + "1,2,3\n1,3,five\n", "'five' is not a number; correct it, or"),
        (
            "classification",
            "a.csv",
            "x,target\n1,ham\n2,ham\n",
            "a.csv: every row has the label 'ham': there is nothing to tell apart; check --target",
        ),
        ("regression", "a.libsvm", "1 1:1\n2 3:1 2:1\n", "a.libsvm: row 2"),
        ("matrix", "a.parquet", "PAR1 no", "a.parquet: this is not a whole Parquet file; "),
    ],
)
def test_wrong_data_are_refused_in_one_line(tmp_path, kind, name, content, words):
    path, out = tmp_path / name, tmp_path / "m.ofw"
    path.write_text(content)
    line = refusal("fit", kind, path, "-o", out)
    assert line.startswith(f"ofw fit: {path}") and words in line
    assert not out.exists()


def test_a_file_that_is_not_there(tmp_path):
    line = refusal("fit", "matrix", tmp_path / "no.csv", "-o", tmp_path / "m.ofw")
    assert line.endswith("no.csv: there is no such file; check the path")


def test_text_in_a_numeric_column_late_in_a_file(tmp_path):
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write(HEADER)
        file.write("12,34,5\n7,8,3\n" * 150_000)
        file.write("12,34,five\n7,8,3\n")
    fit = ("fit", "matrix", path, "-o", tmp_path / "m.ofw", "--radius", "1")
    fit = (*fit, "--batch-size", "100000", "--quiet")
    line = refusal(*fit)
    assert f"{path}: row 300001 (line 300002), column 'rating': 'five' is not a number" in line
    assert "--on-bad-row skip" in line
    told = ofw_json(*fit, "--on-bad-row", "skip")
    assert told["rows learned"] == 300_001 and told["rows left out"] == {"not a number": 1}


def test_bad_rows_that_are_skipped_are_counted_and_reported(tmp_path):
    path = write(tmp_path / "a.csv", ratings())
    with path.open("a") as file:
        file.write("u1,2,x\nu1,2\nu1,,3\nu1,2,nan\n")
    skip = ("fit", "matrix", path, "-o", tmp_path / "m.ofw", *FAST, "--on-bad-row", "skip")
    told = ofw_json(*skip)
    assert told["rows learned"] == 240 and sum(told["rows left out"].values()) == 4
    assert "rows left out: " in ofw_says(*skip)


def test_a_file_of_bad_rows_only(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(HEADER + "1,2,x\n" * 9)
    line = refusal("fit", "matrix", path, "-o", tmp_path / "m.ofw", "--on-bad-row", "skip")
    assert f"{path}: no rows were learned" in line and "9 not a number" in line


def test_numbers_are_no_labels(tmp_path):
    path = write(tmp_path / "a.csv", rows())
    line = refusal("fit", "classification", path, "-o", tmp_path / "m.ofw")
    assert f"{path}: " in line and "labels of their own; numbers are for ofw fit regression" in line


def test_a_label_that_comes_late_is_refused_with_its_row_and_can_be_named_before(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("onlinefw.fitting.rows.FIRST_ROWS", 20)
    columns = rows(40, target="label")
    first = write(tmp_path / "1.csv", columns)
    columns["target"][29] = "perhaps"
    second = write(tmp_path / "2.csv", columns)
    fit = ("fit", "classification", first, second, "-o", tmp_path / "m.ofw", "--batch-size", "10")
    line = refusal(*fit)
    assert f"{second}: row 30: the label 'perhaps' is not one of" in line and "--classes" in line
    assert ofw_json(*fit, "--classes", "no,perhaps,yes")["rows learned"] == 80


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--radius", "-1"), "positive"),
        (("--loss", "frown"), "--loss takes one of square, logistic, "),
        (("--on-bad-row", "ignore"), "'--on-bad-row': 'ignore' is not one of 'raise', 'skip'"),
        (("--format", "xls"), "choose one of csv"),
        (("--rating", "stars"), "there is no column 'stars'"),
        (("--checkpoint", "nowhere/run.ckpt"), "nowhere does not exist; create it first"),
    ],
)
def test_options_that_cannot_work_are_refused_in_one_line(matrix, tmp_path, options, words):
    assert words in refusal("fit", "matrix", matrix, "-o", tmp_path / "m.ofw", *options)


@pytest.mark.parametrize("size", ["0", "-3", "2.5", "nan", "many"])
def test_a_batch_size_is_a_whole_number(matrix, tmp_path, size):
    line = refusal("fit", "matrix", matrix, "-o", tmp_path / "m.ofw", "--batch-size", size)
    assert line == f"ofw fit: --batch-size takes a whole number from 1, or auto, not {size!r}"


def test_places_and_test_files_are_looked_at_before_the_work(matrix, tmp_path, monkeypatch):
    from onlinefw.fitting.session import Session

    def work(self):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(Session, "play", work)
    line = refusal("fit", "matrix", matrix, "-o", tmp_path / "nowhere" / "m.ofw")
    assert "nowhere does not exist; create it first" in line
    assert "is a folder" in refusal("fit", "matrix", matrix, "-o", tmp_path)
    os.mkfifo(tmp_path / "fifo")
    assert "is not an ordinary file" in refusal("fit", "matrix", matrix, "-o", tmp_path / "fifo")
    fit = ("fit", "matrix", matrix, "-o", tmp_path / "m.ofw", "--test")
    assert "there is no such file" in refusal(*fit, tmp_path / "no.csv")
    other = write(tmp_path / "rows.csv", rows())
    assert f"{other}: no column is obviously the user" in refusal(*fit, other)


@pytest.mark.parametrize("when", ["fsync", "write"])
@pytest.mark.parametrize("before", [None, b"the model before"])
def test_a_disk_that_is_full_leaves_nothing_half_written(
    matrix, tmp_path, monkeypatch, when, before
):
    def full(*args):
        raise OSError(28, "No space left on device")

    folder = tmp_path / "models"
    folder.mkdir()
    out = folder / "m.ofw"
    if before is not None:
        out.write_bytes(before)
    if when == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr("onlinefw.files.container._DigestedFile.write", full)
    line = refusal("fit", "matrix", matrix, "-o", out, "--force", *FAST)
    assert line.startswith(f"ofw fit: {out}: No space left on device; nothing was written; ")
    assert "what was learned could not be kept" in line  # nothing can be written anywhere
    left = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert left == ({} if before is None else {"m.ofw": before})


def test_a_label_that_is_not_one_of_those_given_is_named_with_its_row(tmp_path):
    data = write(tmp_path / "a.csv", rows(40, target="label"))
    fit = ("fit", "classification", data, "-o", tmp_path / "m.ofw")
    line = refusal(*fit, "--classes", "no,perhaps")
    assert re.search(
        f"{data}: row \\d+: the label 'yes' is not one of --classes, 'no', 'perh", line
    )
    assert "first rows" not in line


def test_a_column_of_text_can_be_dropped_or_encoded(tmp_path):
    columns = rows(40)
    data = write(tmp_path / "a.csv", {**columns, "city": ["Rome"] * 40})
    line = refusal("fit", "regression", data, "-o", tmp_path / "m.ofw")
    assert "row 1 (line 2), column 'city': 'Rome' is not a number; leave the column out" in line
    assert "(--drop city), say --text one-hot, correct it" in line


# What is said of the model ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "loss", "certain"),
    [
        ("classification", "sigmoid", False),
        ("classification", "logistic", True),
        ("regression", "correntropy", False),
        ("matrix", "square", True),
    ],
)
def test_only_a_convex_loss_has_a_certificate(tmp_path, kind, loss, certain):
    columns = rows(60, target="label" if kind == "classification" else "number")
    data = write(tmp_path / "a.csv", ratings(60) if kind == "matrix" else columns)
    fit = ("fit", kind, data, "-o", tmp_path / "m.ofw", *FAST, "--loss", loss)
    assert ofw_json(*fit)["gap is a certificate"] is certain
    assert ofw_json("inspect", tmp_path / "m.ofw")["gap is a certificate"] is certain
    for said in (ofw_says(*fit), ofw_says("inspect", tmp_path / "m.ofw")):
        assert ("certificate: " in said) is certain
        assert ("a measure of stationarity, no proof of optimality" in said) is not certain


def test_names_of_columns_are_those_of_the_model(tmp_path):
    data = write(tmp_path / "a.csv", rows(40))
    ofw_says("fit", "regression", data, "-o", tmp_path / "m.ofw", *FAST)
    model = ofw_library.load(tmp_path / "m.ofw")
    assert model.feature_names_in_.tolist() == model.notes_["features"] == ["a", "b", "c"]
    (tmp_path / "b.csv").write_text("1,2,3\n2,3,4\n3,5,6\n")
    ofw_says("fit", "regression", tmp_path / "b.csv", "--target", "3", "-o", tmp_path / "m.ofw")
    assert not hasattr(ofw_library.load(tmp_path / "m.ofw"), "feature_names_in_")
