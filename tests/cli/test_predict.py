"""``ofw predict``: rows and pairs in their order, in any format."""

import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from onlinefw import FrankWolfeMatrixCompletion, load, save
from onlinefw.cli.predict import with_gaps
from onlinefw.readers import read_rows

from ..readers.writing import write
from .running import ofw, ofw_says, ratings, refusal, rows, standard_input

FAST = ("--radius", "10", "--batch-size", "20")
#: What scikit-learn says of arrays without names, as these tests have them.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


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
    row = {str(name): name for name in loaded.row_ids_.tolist()}
    column = {str(name): name for name in loaded.col_ids_.tolist()}
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
    X = [["u1", 3], ["nobody", 3], ["u1", 10**6], ["nobody", 10**6]]
    np.testing.assert_allclose(got, loaded.predict(X, unknown="fallback"), rtol=1e-6)


@pytest.mark.slow
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
    data, model = fitted(tmp_path, "classification", columns, "--loss", "logistic")
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


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_pairs_keep_the_names_that_the_file_has_for_them(tmp_path, ending):
    _, model = fitted(tmp_path, "matrix", ratings())
    pairs, out = tmp_path / "pairs.csv", tmp_path / f"p.{ending}"
    pairs.write_text("customer,product\nu1,3\n")
    ofw_says("predict", model, pairs, "-o", out)
    assert list(table(out)) == ["customer", "product", "prediction"]
    pairs.write_text("u1,3\n")
    ofw_says("predict", model, pairs, "--user", "1", "--item", "2", "--no-header", "-o", out)
    assert list(table(out)) == ["user", "item", "prediction"]


@pytest.mark.parametrize("name", ["p.xlsx", "p.tsv", "p"])
def test_a_format_that_is_not_written_is_refused(tmp_path, name):
    data, model = fitted(tmp_path, "regression", rows())
    line = refusal("predict", model, data, "-o", tmp_path / name)
    assert f"{name}: predictions are written as CSV, Parquet or JSON lines" in line
    assert "ends in .csv, .parquet or .jsonl, or - for standard output" in line


def test_libsvm_rows_for_a_model_of_named_columns_must_be_as_wide(tmp_path):
    _, model = fitted(tmp_path, "regression", rows())
    path = tmp_path / "a.libsvm"
    path.write_text("0 1:1 2:2\n")
    line = refusal("predict", model, path)
    assert f"{path}: the rows have 2 features and the model 3; give rows as the model was" in line
    path.write_text("0 1:1 3:2\n")
    X = [[1.0, 0.0, 2.0]]
    expected = load(model).predict(X)[0]
    assert float(ofw_says("predict", model, path).split()[1]) == pytest.approx(expected)
    with path.open() as file, standard_input(file.fileno()):
        assert "--n-features" in refusal("predict", model, "-", "--format", "libsvm")
    with path.open() as file, standard_input(file.fileno()):
        said = ofw_says("predict", model, "-", "--format", "libsvm", "--n-features", "3")
    assert float(said.split()[1]) == pytest.approx(expected)


# Rows that cannot be used -------------------------------------------------------------------------


@given(
    files=st.lists(st.lists(st.booleans(), min_size=1, max_size=7), min_size=1, max_size=3),
    chunk_rows=st.integers(1, 4),
    block_bytes=st.sampled_from([6, 20, 1 << 20]),
)
def test_there_is_a_place_for_every_row_whatever_the_files_and_chunks(
    tmp_path_factory, files, chunk_rows, block_bytes
):
    folder = tmp_path_factory.mktemp("rows")
    expected, paths = [], []
    for k, good in enumerate(files):
        paths.append(folder / f"{k}.csv")
        numbers = [100 * k + j for j in range(len(good))]
        cells = [str(n) if ok else "x" for n, ok in zip(numbers, good, strict=True)]
        paths[-1].write_text("a\n" + "\n".join(cells) + "\n")
        expected += [n if ok else None for n, ok in zip(numbers, good, strict=True)]
    got = []
    options = {"chunk_rows": chunk_rows, "block_bytes": block_bytes, "on_bad_row": "skip"}
    with read_rows([str(p) for p in paths], needs_target=False, **options) as reader:
        for chunk, indices in with_gaps(reader):
            got += [None if index < 0 else chunk.X[index, 0] for index in indices]
    assert got == expected


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_row_left_out_has_an_empty_prediction_in_its_place(tmp_path, ending):
    _, model = fitted(tmp_path, "regression", rows())
    path, out = tmp_path / "other.csv", tmp_path / f"p.{ending}"
    path.write_text("a,b,c\n1,2,3\n1,x,3\n,2,3\n4,5,6\n7,nan,1\n")
    assert "(--on-bad-row skip)" in refusal("predict", model, path)
    result = ofw("predict", model, path, "-o", out, "--on-bad-row", "skip")
    assert result.exit_code == 0
    assert result.stderr.startswith("ofw predict: 3 bad rows left out: 1 not a number (first: ")
    assert result.stderr.endswith("; their predictions are NaN or empty\n")
    got = np.array(table(out)["prediction"], dtype=float)
    assert np.isnan(got).tolist() == [False, True, True, False, True]
    expected = load(model).predict([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_allclose([got[0], got[3]], expected)


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1]], ids=["text", "integers"])
@pytest.mark.parametrize("loss", ["sigmoid", "logistic"])
def test_a_label_left_out_is_empty_and_no_line_is_blank(tmp_path, labels, loss):
    columns = rows(60, target="label")
    columns["target"] = [labels[label == "yes"] for label in columns["target"]]
    _, model = fitted(tmp_path, "classification", columns, "--loss", loss)
    path = tmp_path / "other.csv"
    path.write_text("a,b,c\n1,2,3\n1,x,3\n4,5,6\n")
    said = ofw_says("predict", model, path, "--on-bad-row", "skip").splitlines()
    cells = [line.replace('"', "").split(",") for line in said]
    assert [cell[0] in map(str, labels) for cell in cells[1:]] == [True, False, True]
    assert len(said) == 4 and cells[2][0] == "" and all(said)


def test_pairs_left_out_are_empty_too_and_all_of_them_is_an_error(tmp_path):
    _, model = fitted(tmp_path, "matrix", ratings(users="{}"))
    path = tmp_path / "pairs.csv"
    path.write_text("user,item\n,3\n1,3\n")
    said = ofw_says("predict", model, path, "--on-bad-row", "skip").splitlines()
    assert said[:2] == ['"user","item","prediction"', ",,nan"] and said[2].startswith("1,3,")
    path.write_text("user,item\n,3\n")
    assert "no row can be predicted" in refusal("predict", model, path, "--on-bad-row", "skip")
