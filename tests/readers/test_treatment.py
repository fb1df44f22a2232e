"""Features that are missing or text: refused, filled, left out or encoded, and the same later."""

import json

import numpy as np
import pytest

from onlinefw.readers import DataError, read_rows
from onlinefw.readers.text_columns import BUCKETS, MOST_CATEGORIES
from onlinefw.readers.treatment import Treatment

from .writing import write


def all_rows(reader):
    chunks = list(reader)
    return np.concatenate([c.X for c in chunks]), np.concatenate([c.y for c in chunks])


@pytest.fixture
def gaps():
    """Columns with gaps: about a third of a and of b is missing."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((200, 2)), 3)
    X[rng.random((200, 2)) < 0.3] = np.nan
    return X


def plain_fill(X):
    """The mean of all rows before, in the plainest way."""
    filled = X.copy()
    for i, j in np.argwhere(np.isnan(X)):
        before = X[:i, j][~np.isnan(X[:i, j])]
        filled[i, j] = before.mean() if before.size else 0.0
    return filled


def as_columns(X, word=None):
    cells = [[word if np.isnan(v) else float(v) for v in column] for column in X.T]
    return {"a": cells[0], "b": cells[1], "y": np.arange(len(X), dtype=float).tolist()}


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.jsonl"])
def test_a_gap_is_filled_with_the_mean_of_the_rows_before(tmp_path, gaps, name):
    path = write(tmp_path / name, as_columns(gaps, "" if "csv" in name else None))
    for chunk_rows in (7, 1000):
        X, _ = all_rows(read_rows(path, missing="mean", chunk_rows=chunk_rows))
        np.testing.assert_allclose(X, plain_fill(gaps), atol=1e-12)


def test_the_fill_does_not_depend_on_where_chunks_begin_bit_for_bit(tmp_path, gaps):
    path = write(tmp_path / "a.csv", as_columns(gaps))
    one, _ = all_rows(read_rows(path, missing="mean", chunk_rows=1000))
    other, _ = all_rows(read_rows(path, missing="mean", chunk_rows=7, block_bytes=200))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "NULL", "None", "?", " na "])
def test_words_for_what_is_missing(tmp_path, gaps, word):
    path = write(tmp_path / "a.csv", as_columns(gaps, word))
    X, _ = all_rows(read_rows(path, missing="mean"))
    np.testing.assert_allclose(X, plain_fill(gaps), atol=1e-12)
    with pytest.raises(DataError, match=r"say --missing mean or --missing drop, correct it"):
        all_rows(read_rows(path))


def test_rows_with_gaps_are_left_out_and_counted(tmp_path, gaps):
    columns = as_columns(gaps, "")
    whole = ~np.isnan(gaps).any(axis=1)
    first = int(np.flatnonzero(whole)[0])
    columns["y"][first] = "NA"  # a target cannot be filled
    whole[first] = False
    with read_rows(write(tmp_path / "a.csv", columns), missing="drop") as reader:
        X, y = all_rows(reader)
    np.testing.assert_array_equal(X, gaps[whole])
    np.testing.assert_array_equal(y, np.flatnonzero(whole))
    assert reader.bad_rows.counts == {"empty": int((~whole).sum()) - 1, "missing": 1}


def test_rows_that_are_wrong_otherwise_are_refused_all_the_same(tmp_path):
    for missing in ("mean", "drop"):
        path = tmp_path / "a.csv"
        path.write_text("a,y\n,1\nx,2\n")
        with pytest.raises(DataError, match="'x' is not a number"):
            all_rows(read_rows(path, missing=missing))
        path.write_text("a,y\n1,1\ninf,2\n")
        with pytest.raises(DataError, match="'inf' is not a finite number"):
            all_rows(read_rows(path, missing=missing))
    path.write_text("a,y\n1,1\n2,\n")
    with pytest.raises(DataError, match=r"row 2 .*column 'y': the cell is empty"):
        all_rows(read_rows(path, missing="mean"))


def test_reading_goes_on_with_the_means_so_far(tmp_path, gaps):
    path = write(tmp_path / "a.csv", as_columns(gaps))
    options = {"missing": "mean", "chunk_rows": 60}
    whole, _ = all_rows(read_rows(path, **options))
    position = json.loads(json.dumps(next(read_rows(path, **options)).position))
    rest, _ = all_rows(read_rows(path, position=position, **options))
    np.testing.assert_array_equal(rest, whole[60:])


def test_other_rows_are_filled_with_the_means_at_the_end(tmp_path, gaps):
    with read_rows(write(tmp_path / "a.csv", as_columns(gaps)), missing="mean") as reader:
        all_rows(reader)
    like = json.loads(json.dumps(reader.treatment))
    path = tmp_path / "b.csv"
    path.write_text("b,a\n,\n1,\n")
    rows = read_rows(path, features=["a", "b"], needs_target=False, like=like)
    a, b = np.nanmean(gaps, axis=0)
    np.testing.assert_allclose(next(rows).X, [[a, b], [a, 1.0]])


CITIES = {"y": [1.0, 2.0, 3.0, 4.0], "city": ["Oslo", "Rome", "Oslo", "Ürümqi"], "a": [1, 2, 3, 4]}


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl"])
def test_one_hot(tmp_path, name):
    with read_rows(write(tmp_path / name, CITIES), text="one-hot") as reader:
        X, _ = all_rows(reader)
    names = ["city=Oslo", "city=Rome", "city=Ürümqi", "city=(others)", "a"]
    assert reader.feature_names == names and reader.n_features == 5
    one = np.eye(4)
    np.testing.assert_array_equal(X, np.column_stack((one[[0, 1, 0, 2]], [1, 2, 3, 4])))
    later = write(tmp_path / name.replace("a", "b", 1), {"a": [7], "city": ["Lima"]})
    rows = read_rows(later, features=["city", "a"], needs_target=False, like=reader.treatment)
    assert next(rows).X.tolist() == [[0, 0, 0, 1, 7]]


def test_hashed_texts_have_the_same_place_everywhere(tmp_path):
    with read_rows(write(tmp_path / "a.csv", CITIES), text="hash") as reader:
        X, _ = all_rows(reader)
    assert X.shape == (4, BUCKETS + 1) and reader.feature_names[0] == "city#0"
    # The places that models on disk rely on: CRC-32 modulo 64.
    assert X[:, :BUCKETS].argmax(axis=1)[:3].tolist() == [28, 21, 28]
    assert X[:, :BUCKETS].sum(axis=1).tolist() == [1, 1, 1, 1]


def test_the_commonest_categories_have_columns_of_their_own(tmp_path):
    words = [f"w{k:03d}" for k in range(MOST_CATEGORIES + 20)] + ["w119"] * 3
    columns = {"word": words, "y": list(range(len(words)))}
    with read_rows(write(tmp_path / "a.csv", columns), text="one-hot") as reader:
        X, _ = all_rows(reader)
    assert X.shape[1] == MOST_CATEGORIES + 1
    assert "word=w119" in reader.feature_names and "word=w118" not in reader.feature_names
    assert X[118, -1] == 1.0


def test_an_empty_text_is_no_category(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("city,y\nOslo,1\n,2\n")
    with pytest.raises(DataError, match=r"column 'city': the cell is empty; say --missing mean"):
        all_rows(read_rows(path, text="one-hot"))
    X, _ = all_rows(read_rows(path, text="one-hot", missing="mean"))
    assert X.tolist() == [[1, 0], [0, 0]]
    X, _ = all_rows(read_rows(path, text="one-hot", missing="drop"))
    assert X.tolist() == [[1, 0]]


def test_text_that_comes_late_in_a_column_of_numbers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("onlinefw.readers.text_look.LOOK", 3)
    columns = {"a": [1, 2, 3, "x"], "y": [1, 2, 3, 4]}
    path = write(tmp_path / "a.csv", columns)
    with pytest.raises(DataError, match=r"row 4 .*'x' is not a number"):
        all_rows(read_rows(path, text="one-hot", block_bytes=8))


@pytest.mark.parametrize(
    "forged",
    [
        {},
        {"missing": "median", "text": None, "columns": ["a"], "texts": {}, "sums": None},
        {"missing": "mean", "text": None, "columns": ["a"], "texts": {}, "sums": [1.0, 2.0],
         "counts": [1, 2]},
        {"missing": "mean", "text": None, "columns": ["a"], "texts": [], "sums": None,
         "counts": None},
    ],
)  # fmt: skip
def test_a_forged_treatment_is_refused_in_one_line(forged):
    with pytest.raises(DataError, match="cannot be read from the model or checkpoint"):
        Treatment.from_state(forged)
