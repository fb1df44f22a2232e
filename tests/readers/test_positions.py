"""Chunk and block boundaries are invisible; any position continues with exactly the next row."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinefw.readers import DataError, read_ratings, read_rows

from .writing import all_ratings, ratings, write

NAMES = ["a.csv", "a.tsv.gz", "a.csv.zst", "a.jsonl", "a.parquet"]
SIZES = st.integers(1, 15)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in NAMES:
        write(folder / name, ratings())
        write(folder / f"second-{name}", ratings(5))
    dirty = (
        'user,item,rating\n1,2,3\n1,2,x\n\n"a\nb",2,3\n1,2\n5,,1\n6,7,nan\n7,7,7\n8,8,8\n1,2,y\n'
    )
    (folder / "dirty.csv").write_text(dirty)
    return folder


def given_files(folder, name):
    return [str(folder / name), str(folder / f"second-{name}")]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)
@given(chunk_rows=SIZES, block_bytes=st.integers(1, 300))
def test_boundaries_are_invisible(folder, name, chunk_rows, block_bytes):
    files = given_files(folder, name)
    chunks = list(read_ratings(files, chunk_rows=chunk_rows, block_bytes=block_bytes))
    # Every chunk is full but the last of each file.
    for chunk, following in pairwise(chunks):
        assert len(chunk) == chunk_rows or following.file != chunk.file
    whole = all_ratings(read_ratings(files))
    assert all_ratings(iter(chunks)) == whole


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)
@given(chunk_rows=SIZES, block_bytes=st.integers(1, 300), stop=st.integers(0, 16))
def test_going_on_gives_the_chunks_that_were_to_come(folder, name, chunk_rows, block_bytes, stop):
    files = given_files(folder, name)
    sizes = {"chunk_rows": chunk_rows, "block_bytes": block_bytes}
    uninterrupted = list(read_ratings(files, **sizes))
    with read_ratings(files, **sizes) as reader:
        for _ in range(min(stop, len(uninterrupted))):
            next(reader)
        position = json.loads(json.dumps(reader.position))
    rest = list(read_ratings(files, **sizes, position=position))
    expected = uninterrupted[stop:]
    assert [len(c) for c in rest] == [len(c) for c in expected]
    assert all_ratings(iter(rest)) == all_ratings(iter(expected))


@pytest.mark.slow
@given(chunk_rows=st.integers(1, 5), block_bytes=st.integers(1, 80), stop=st.integers(0, 4))
def test_skipped_rows_are_counted_once_whatever_the_stops(folder, chunk_rows, block_bytes, stop):
    options = {"on_bad_row": "skip", "chunk_rows": chunk_rows, "block_bytes": block_bytes}
    path = folder / "dirty.csv"
    whole = read_ratings(path, on_bad_row="skip")
    rows = all_ratings(whole)
    assert [r[1] for r in rows] == [1, 3, 7, 8]
    assert whole.bad_rows.counts == {
        "not a number": 2,
        "of another length": 1,
        "empty": 1,
        "not finite": 1,
    }
    reader = read_ratings(path, **options)
    before = [c for _, c in zip(range(stop), reader, strict=False)]
    resumed = read_ratings(path, **options, position=reader.position)
    after = list(resumed)
    assert all_ratings(iter(before + after)) == rows
    assert resumed.bad_rows.state_dict() == whole.bad_rows.state_dict()


def test_a_position_at_the_end_waits_for_rows_appended_later(tmp_path):
    path = write(tmp_path / "a.csv", ratings())
    reader = read_ratings(path)
    list(reader)
    assert list(read_ratings(path, position=reader.position)) == []
    with path.open("a") as file:
        file.write("u9,9,9\n")
    assert [r[1:] for r in all_ratings(read_ratings(path, position=reader.position))] == [
        (12, "u9", "9", 9.0)
    ]


def test_a_file_may_be_given_twice(tmp_path):
    path = str(write(tmp_path / "a.csv", ratings(5)))
    reader = read_ratings([path, path], chunk_rows=4)
    sizes = [len(next(reader)) for _ in range(3)]
    rest = list(read_ratings([path, path], chunk_rows=4, position=reader.position))
    assert sizes == [4, 1, 4] and [c.rows.tolist() for c in rest] == [[5]]


def test_going_on_in_a_later_file_keeps_the_features_of_the_first(tmp_path):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text("a,b,y\n1,2,3\n")
    second.write_text("b,a,y\n5,4,6\n8,7,9\n")
    reader = read_rows([str(first), str(second)], chunk_rows=1)
    next(reader), next(reader)
    chunk = next(read_rows([str(first), str(second)], chunk_rows=1, position=reader.position))
    assert chunk.X.tolist() == [[7, 8]] and chunk.y.tolist() == [9]


def test_libsvm_goes_on_with_the_width_it_had(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:1\n2 5:1\n3 2:1\n")
    reader = read_rows(path, chunk_rows=2)
    next(reader)
    (chunk,) = read_rows(path, chunk_rows=2, position=reader.position)
    assert chunk.X.shape == (1, 5) and chunk.y.tolist() == [3] and chunk.first_row == 3


def test_a_position_in_a_file_that_is_not_given_is_refused(tmp_path):
    path, other = (write(tmp_path / n, ratings()) for n in ("a.csv", "b.csv"))
    reader = read_ratings(path)
    next(reader)
    with pytest.raises(DataError, match=r"a\.csv: reading stopped in this file"):
        read_ratings(other, position=reader.position)


def test_a_file_that_became_shorter_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", ratings())
    reader = read_ratings(path, chunk_rows=9, block_bytes=20)
    next(reader)
    path.write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(DataError, match="shorter than when it was read last"):
        list(read_ratings(path, position=reader.position))
