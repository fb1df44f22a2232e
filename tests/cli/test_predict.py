"""``ofw predict``: rows and pairs in their order, in any format."""

import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from onlinefw import FrankWolfeMatrixCompletion, load, save

from ..readers.writing import write
from .running import ofw, ofw_says, ratings, refusal, rows, standard_input

FAST = ("--radius", "10", "--batch-size", "20")


def fitted(tmp_path, kind, columns, *options):
    data, out = write(tmp_path / f"{kind}.csv", columns), tmp_path / f"{kind}.ofw"
    ofw_says("fit", kind, data, "-o", out, *FAST, *options)
    return data, out


def table(path):
    return (pq.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)).to_pydict()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("users", ["u{}", "{}"], ids=["text", "integers"])
def test_pairs_come_back_in_order_with_their_ids(tmp_path, users, ending):
    columns = ratings(users=users, items="{}")
    data, model = fitted(tmp_path, "matrix", columns)
    out = tmp_path / f"p.{ending}"
    result = ofw("predict", model, data, "-o", out)
    assert (result.exit_code, result.output) == (0, "")
    got, loaded = table(out), load(model)
    assert list(got) == ["user", "item", "prediction"]
    assert [str(u) for u in got["user"]] == columns["user"]
    assert [str(i) for i in got["item"]] == columns["item"]
    row = {str(name): k for k, name in enumerate(loaded.row_ids_.tolist())}
    column = {str(name): k for k, name in enumerate(loaded.col_ids_.tolist())}
    pairs = zip(columns["user"], columns["item"], strict=True)
    expected = loaded.predict([[row[u], column[i]] for u, i in pairs])
    np.testing.assert_allclose(got["prediction"], expected, rtol=1e-6)


def test_unknown_ids_get_the_fallback_and_are_counted_on_stderr(tmp_path):
    _, model = fitted(tmp_path, "matrix", ratings())
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,item\nu1,3\nnobody,3\nu1,none\nnobody,none\n")
    result = ofw("predict", model, pairs)
    assert result.exit_code == 0
    assert result.stderr.startswith("ofw predict: 3 rows with a user (2) or item (2) that the ")
    assert result.stderr.count("\n") == 1
    got = [float(line.split(",")[2]) for line in result.stdout.splitlines()[1:]]
    loaded = load(model)
    u, i = loaded.row_ids_.tolist().index("u1"), loaded.col_ids_.tolist().index(3)
    X = [[u, i], [10**6, i], [u, 10**6], [10**6, 10**6]]
    np.testing.assert_allclose(got, loaded.predict(X, unknown="fallback"), rtol=1e-6)


def test_ids_that_become_text_halfway(tmp_path):
    """The first chunk has integers only."""
    _, model = fitted(tmp_path, "matrix", ratings(users="{}"))
    pairs = tmp_path / "pairs.csv"
    filler = "x" * 60  # so that the text is read in several blocks
    pairs.write_text("user,item,more\n" + f"1,3,{filler}\n" * 140_000 + "nobody,3,\n")
    out = tmp_path / "p.csv"
    assert ofw("predict", model, pairs, "-o", out).exit_code == 0
    lines = out.read_text().splitlines()
    assert len(lines) == 140_002 and lines[1].startswith("1,3,")
    assert lines[-1].startswith('"nobody",3,')
    parquet = tmp_path / "p.parquet"
    result = ofw("predict", model, pairs, "-o", parquet)
    assert result.exit_code == 2 and "write CSV instead" in result.stderr
    assert not parquet.exists()


def test_a_model_saved_without_ids_has_numbers_from_0(tmp_path):
    model = FrankWolfeMatrixCompletion(5.0).fit([[0, 0], [1, 1], [2, 0]], [1.0, 2.0, 3.0])
    save(model, tmp_path / "m.ofw")
    (tmp_path / "pairs.csv").write_text("user,item\n2,1\n")
    said = ofw_says("predict", tmp_path / "m.ofw", tmp_path / "pairs.csv").splitlines()
    assert float(said[1].split(",")[2]) == pytest.approx(model.predict([[2, 1]])[0], rel=1e-6)
    assert ofw_says("recommend", tmp_path / "m.ofw", "--user", "2").startswith("1\t")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_classifier_gives_label_and_probability(tmp_path, ending):
    columns = rows(target="label")
    data, model = fitted(tmp_path, "classification", columns)
    out = tmp_path / f"p.{ending}"
    ofw_says("predict", model, data, "-o", out)
    got, loaded = table(out), load(model)
    X = np.column_stack([columns[name] for name in "abc"])
    assert got["prediction"] == loaded.predict(X).tolist()
    np.testing.assert_allclose(got["probability"], loaded.predict_proba(X).max(axis=1))


def test_rows_come_with_the_target_or_without_and_in_any_order_of_columns(tmp_path):
    columns = rows()
    data, model = fitted(tmp_path, "regression", columns)
    expected = ofw_says("predict", model, data)
    loaded = load(model)
    got = np.array([float(line) for line in expected.split()[1:]])
    X = np.column_stack([columns[name] for name in "abc"])
    np.testing.assert_allclose(got, loaded.predict(X))
    for names in ("abc", "cab", ["target", "c", "b", "a"], ["b", "other", "a", "c"]):
        part = {name: columns.get(name, columns["a"]) for name in names}
        assert ofw_says("predict", model, write(tmp_path / "other.csv", part)) == expected


def test_any_input_format_and_standard_input(tmp_path):
    columns = rows()
    data, model = fitted(tmp_path, "regression", columns)
    expected = ofw_says("predict", model, data)
    for name in ("a.tsv", "a.parquet", "a.jsonl", "a.csv.zst"):
        assert ofw_says("predict", model, write(tmp_path / name, columns)) == expected
    with data.open() as file, standard_input(file.fileno()):
        assert ofw_says("predict", model, "-") == expected


@pytest.mark.parametrize("first", [0, 1])
def test_columns_that_are_called_by_numbers(tmp_path, first):
    columns = rows()
    data = {str(first + k): columns[name] for k, name in enumerate("abc")}
    path, model = fitted(tmp_path, "regression", {**data, "target": columns["target"]})
    expected = ofw_says("predict", model, path)
    assert len(expected.split()) == 241
    # In another order, so that names and places differ.
    other = {name: data[name] for name in reversed(data)}
    path = write(tmp_path / "other.csv", {"target": columns["target"], **other})
    assert ofw_says("predict", model, path) == expected


def test_libsvm_rows_may_have_fewer_features(tmp_path):
    path, model = tmp_path / "a.libsvm", tmp_path / "m.ofw"
    path.write_text("".join(f"{k % 2} {1 + k % 2}:1 3:0.5\n" for k in range(90)))
    ofw_says("fit", "classification", path, "-o", model, *FAST)
    (tmp_path / "b.libsvm").write_text("0 1:1\n0 2:1\n")
    said = ofw_says("predict", model, tmp_path / "b.libsvm").split()
    assert [line.split(",")[0] for line in said] == ['"prediction"', "0", "1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "there is no column 'c'"),
        ("a,b,c\n1,2,x\n", "row 1 (line 2), column 'c': 'x' is not a number"),
        ("", "there are no rows in it"),
    ],
)
def test_rows_that_cannot_be_predicted(tmp_path, text, words):
    _, model = fitted(tmp_path, "regression", rows())
    path, out = tmp_path / "other.csv", tmp_path / "p.csv"
    path.write_text(text)
    line = refusal("predict", model, path, "-o", out)
    assert line.startswith(f"ofw predict: {path}") and words in line
    assert not out.exists()


def test_model_files_that_cannot_be_used(tmp_path):
    data, model = fitted(tmp_path, "regression", rows(), "--checkpoint", tmp_path / "run.ckpt")
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    assert "cut short or was altered" in refusal("predict", model, data)
    assert "is a checkpoint" in refusal("predict", tmp_path / "run.ckpt", data)
    assert "is not an onlinefw file" in refusal("predict", data, data)
    assert "no such file" in refusal("predict", tmp_path / "no.ofw", data)


def test_a_full_disk_leaves_the_predictions_before(tmp_path, monkeypatch):
    data, model = fitted(tmp_path, "regression", rows())
    out = tmp_path / "p.csv"
    out.write_text("before")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    line = refusal("predict", model, data, "-o", out)
    assert line == f"ofw predict: {out}: No space left on device; nothing was written"
    assert out.read_text() == "before"
    assert not list(tmp_path.glob(".*"))


def test_a_folder_that_is_not_there(tmp_path):
    data, model = fitted(tmp_path, "regression", rows())
    assert "does not exist" in refusal("predict", model, data, "-o", tmp_path / "no" / "p.csv")
    assert not (tmp_path / "no").exists()
