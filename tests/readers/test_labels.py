"""A label means the same wherever it stands in a file, whatever stands beside it."""

import numpy as np
import pytest

from onlinefw.fitting import rows
from onlinefw.fitting.rows import RowsSession
from onlinefw.readers import read_ratings, read_rows

from .writing import write

#: Where whole numbers come first, blocks of a few of them hold nothing else.
LABELS = ["1", "01", "2.0", "02", "1.0", "2", "-1", "+1", "1e0", "0.5", "spam", "01", "1.0", "1e20"]
MEANINGS = ["1", "01", "2", "02", "1", "2", "-1", "1", "1", "0.5", "spam", "01", "1", "1e20"]
NAMES = ["a.csv", "a.tsv", "a.jsonl", "a.parquet"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("block_bytes", [1, 7, 30, 100, 1 << 22])
def test_labels_do_not_depend_on_blocks(tmp_path, name, block_bytes):
    path = write(tmp_path / name, {"x": list(range(len(LABELS))), "y": LABELS})
    chunks = read_rows(path, labels=True, block_bytes=block_bytes, chunk_rows=3)
    assert [str(label) for chunk in chunks for label in chunk.y] == MEANINGS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("block_bytes", [1, 20, 1 << 22])
def test_neither_do_ids(tmp_path, name, block_bytes):
    ids = ["7", "07", "007", "-0", "7.0", "1_0", "+7", "x", "9" * 20, "9" * 18, "7"]
    columns = {"user": ids, "item": ids[::-1], "rating": [1.0] * len(ids)}
    chunks = list(read_ratings(write(tmp_path / name, columns), block_bytes=block_bytes))
    assert [str(u) for chunk in chunks for u in chunk.users] == ids
    assert [str(i) for chunk in chunks for i in chunk.items] == ids[::-1]


@pytest.mark.parametrize("space", ["\x1c", "\x1f", "\x85", "\xa0", "\u200b", "\u2003", "\u3000"])
def test_space_around_an_id_is_the_same_beside_a_bad_row(tmp_path, space):
    path = tmp_path / "a.csv"
    users = []
    for bad in ("", "1,2,bad\n"):
        path.write_text(f"user,item,rating\n{space}u{space},1,2\n{bad}", encoding="utf-8")
        (chunk,) = read_ratings(path, on_bad_row="skip")
        users.append(chunk.users.tolist())
    assert users[0] == users[1]


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(rows, "FIRST_ROWS", 8)
    return RowsSession("classification", batch_size=4, radius=1.0, test_share=0.2)


def learned(session, path, **options):
    for _ in session.play_chunks(read_rows(path, labels=True, **options)):
        pass
    for _ in session.play_rest():
        pass
    return session


def rows_of(labels, tmp_path, name="a.csv"):
    return write(tmp_path / name, {"x": np.arange(len(labels)).tolist(), "y": labels})


@pytest.mark.parametrize("chunk_rows", [2, 5, 100])
def test_a_model_has_the_classes_of_the_file(session, tmp_path, chunk_rows):
    labels = ["01", "02", "01", "02", "02", "01", "x", "x"] * 5
    path = rows_of(labels, tmp_path)
    learned(session, path, chunk_rows=chunk_rows, block_bytes=12)
    assert session.model.classes_.tolist() == ["01", "02", "x"]


@pytest.mark.parametrize("chunk_rows", [2, 5, 100])
def test_numbers_before_text_are_the_same_labels_as_beside_it(session, tmp_path, chunk_rows):
    path = rows_of(["1", "2", "1", "2", "2", "1", "1", "x"] * 5, tmp_path)
    learned(session, path, chunk_rows=chunk_rows, block_bytes=12)
    assert session.model.classes_.tolist() == ["1", "2", "x"]
    assert session.test_score().n == session.n_test > 0


def test_a_model_of_numbers_knows_them_in_a_file_that_has_text_too(session, tmp_path):
    learned(session, rows_of([1, 2] * 20, tmp_path))
    assert session.model.classes_.tolist() == [1, 2]
    (chunk,) = read_rows(rows_of(["1", "2", "1", "1.0", "x"], tmp_path, "test.csv"), labels=True)
    score, other = session.new_score(), session.new_score()
    session.score_chunk(chunk, score)
    other.add(["1", "2", "1", "1", "x"], session.model.predict(chunk.X).astype(str))
    assert score.value == other.value


def test_classes_that_are_named_are_read_as_labels_are(monkeypatch, tmp_path):
    from onlinefw.cli.app import _labels

    assert _labels("1,2.0,-1") == [1, 2, -1]
    assert _labels("1,01, x") == ["1", "01", "x"]
    assert _labels("1_0,2") == ["1_0", "2"]
    assert _labels(f"1,{'9' * 20}") == ["1", "9" * 20]
