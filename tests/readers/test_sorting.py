"""Rows in the order of a column: numbers or dates, stable, and the same when reading goes on."""

import json

import numpy as np
import pytest

from onlinefw.readers import DataError, read_ratings, read_rows

from .writing import write

N = 50
TIMES = np.random.default_rng(0).integers(20, size=N).tolist()
RATINGS = {
    "user": [f"u{k % 7}" for k in range(N)],
    "item": list(range(N)),
    "rating": [1.0 + k % 5 for k in range(N)],
    "timestamp": TIMES,
}
ORDER = sorted(range(N), key=lambda k: TIMES[k])  # Python sorts stably


def items(reader):
    return [int(item) for chunk in reader for item in chunk.items]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.parquet", "a.jsonl"])
@pytest.mark.parametrize("chunk_rows", [7, 1000])
def test_rows_come_in_the_order_of_a_column(tmp_path, name, chunk_rows):
    path = write(tmp_path / name, RATINGS)
    assert items(read_ratings(path, sort_by="timestamp", chunk_rows=chunk_rows)) == ORDER


@pytest.mark.parametrize(
    "times",
    [
        [t + 0.5 for t in TIMES],
        [1_700_000_000_000_000_000 + t * 10**9 for t in TIMES],
        [f"2024-01-{1 + t:02d}" for t in TIMES],
        [f"2024-01-{1 + t:02d}T{t:02d}:30:00Z" for t in TIMES],
    ],
    ids=["fractions", "nanoseconds", "dates", "times"],
)
def test_numbers_and_dates_are_in_the_order_of_time(tmp_path, times):
    path = write(tmp_path / "a.csv", {**RATINGS, "timestamp": times})
    assert items(read_ratings(path, sort_by="timestamp")) == ORDER


def test_several_files_are_sorted_together(tmp_path):
    columns = {name: values[:20] for name, values in RATINGS.items()}
    rest = {name: values[20:] for name, values in RATINGS.items()}
    paths = [str(write(tmp_path / "a.csv", columns)), str(write(tmp_path / "b.jsonl", rest))]
    assert items(read_ratings(paths, sort_by="timestamp")) == ORDER


def test_reading_goes_on_where_it_stopped(tmp_path):
    path = write(tmp_path / "a.csv", RATINGS)
    reader = read_ratings(path, sort_by="timestamp", chunk_rows=20)
    position = json.loads(json.dumps(next(reader).position))
    rest = read_ratings(path, sort_by="timestamp", chunk_rows=20, position=position)
    assert items(rest) == ORDER[20:]
    write(path, {name: values + values[:1] for name, values in RATINGS.items()})
    with pytest.raises(DataError, match="more rows than when they were sorted last"):
        next(read_ratings(path, sort_by="timestamp", position=position))
    write(path, {name: values[:-1] for name, values in RATINGS.items()})
    with pytest.raises(DataError, match="shorter than when it was read last"):
        next(read_ratings(path, sort_by="timestamp", position=position))


def test_rows_of_features_and_their_gaps_follow_the_order(tmp_path):
    a = [float(k) for k in range(N)]
    a[ORDER[1]] = ""
    columns = {"a": a, "y": TIMES, "timestamp": TIMES}
    path = write(tmp_path / "a.csv", columns)
    with read_rows(path, sort_by="timestamp", missing="mean") as reader:
        chunk = next(reader)
    assert reader.feature_names == ["a"]  # the time is no feature unless it is named
    assert chunk.y.tolist() == sorted(TIMES)
    # The second row in time has the mean of the first one.
    assert chunk.X[:2, 0].tolist() == [ORDER[0], ORDER[0]]
    named = read_rows(path, sort_by="timestamp", features="timestamp")
    assert next(named).X[:, 0].tolist() == sorted(TIMES)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (["31.12.2024", *TIMES[1:]], "row 1, column 'timestamp': '31.12.2024' is neither"),
        (["2024-12-31", *TIMES[1:]], "some rows have numbers to sort by, and some"),
        (["", *TIMES[1:]], "the cell is empty"),
    ],
    ids=["another form", "mixed", "empty"],
)
def test_what_has_no_order_is_refused(tmp_path, times, words):
    path = write(tmp_path / "a.csv", {**RATINGS, "timestamp": times})
    with pytest.raises(DataError, match=words):
        items(read_ratings(path, sort_by="timestamp"))


def test_a_pipe_or_a_column_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(DataError, match="--sort-by needs files"):
        read_ratings("-", sort_by="timestamp")
    path = write(tmp_path / "a.csv", RATINGS)
    with pytest.raises(DataError, match="did you mean 'timestamp'"):
        read_ratings(path, sort_by="timestmp")
