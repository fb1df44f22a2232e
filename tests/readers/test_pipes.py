"""A pipe hands out what has come when there is enough, when it pauses, and when it ends."""

import os
import threading

import pytest

from onlinefw.readers import DataError, read_ratings, read_rows

from .writing import all_ratings, csv_text, ratings, without_file


@pytest.fixture
def pipe(monkeypatch):
    """The writing end of standard input."""
    reading, writing = os.pipe()

    class Stdin:
        def fileno(self):
            return reading

    monkeypatch.setattr("sys.stdin", Stdin())
    with os.fdopen(writing, "wb", buffering=0) as file:
        yield file
    os.close(reading)


NUMBERS = {"user": 1, "item": 2, "rating": 3}


def test_enough_rows_come_out_before_the_pipe_ends(pipe):
    pipe.write(b"1,2,3\n" * 5)
    # No pause is ever noticed: only the number of rows can make a chunk come out.
    reader = read_ratings("-", **NUMBERS, chunk_rows=2, pause=3600)
    assert [len(next(reader)), len(next(reader))] == [2, 2]


def test_a_pause_hands_out_what_there_is_and_the_stream_goes_on(pipe):
    reader = read_ratings("-", **NUMBERS, pause=0)
    pipe.write(b"1,2,3\n4,5,6\n7,8")
    first = next(reader)
    assert first.users.tolist() == [1, 4]
    pipe.write(b",9\n")
    second = next(reader)
    assert second.users.tolist() == [7] and second.first_row == 3
    pipe.write(b"10,11,12")
    pipe.close()
    (third,) = reader
    assert third.users.tolist() == [10] and third.first_row == 4


def test_rows_left_from_a_full_chunk_come_out_at_the_pause(pipe):
    reader = read_ratings("-", **NUMBERS, pause=0, chunk_rows=2)
    pipe.write(b"1,2,3\n4,5,6\n7,8,9\n")
    assert [next(reader).users.tolist(), next(reader).users.tolist()] == [[1, 4], [7]]


@pytest.mark.slow
@pytest.mark.parametrize("chunk_rows", [1, 7, 1000, 10**6])
def test_a_long_pipe_gives_every_row_once(pipe, chunk_rows):
    columns = ratings(20_000)

    def write_it():
        pipe.write(csv_text(columns).encode())
        pipe.close()

    writer = threading.Thread(target=write_it)
    writer.start()
    got = all_ratings(read_ratings("-", chunk_rows=chunk_rows))
    writer.join()
    assert [r[1] for r in got] == list(range(1, 20_001))
    assert [r[2] for r in got] == columns["user"]


@pytest.mark.parametrize(
    "text",
    [
        "user,item,rating\n1,2,3\n",
        "user\titem\trating\n1\t2\t3\n",
        '{"user": 1, "item": 2, "rating": 3}\n',
    ],
)
def test_the_format_is_seen_from_the_beginning(pipe, text):
    pipe.write(text.encode())
    pipe.close()
    assert without_file(all_ratings(read_ratings("-"))) == [[1, "1", "2", 3.0]]


def test_libsvm_from_a_pipe_needs_the_number_of_features(pipe):
    pipe.write(b"1 1:2 3:4\n")
    pipe.close()
    (chunk,) = read_rows("-", n_features=4)
    assert chunk.X.toarray().tolist() == [[2, 0, 4, 0]]


def test_libsvm_from_a_pipe_without_it_is_refused(pipe):
    pipe.write(b"1 1:2 3:4\n")
    pipe.close()
    with pytest.raises(DataError, match=r"standard input: how many features .*--n-features"):
        next(read_rows("-"))


def test_a_pipe_goes_on_with_what_comes(pipe):
    pipe.write(b"user,item,rating\n1,2,3\n")
    reader = read_ratings("-", pause=0)
    next(reader)
    position = reader.position
    reader.close()
    pipe.write(b"user,item,rating\n4,5,6\n")
    pipe.close()
    assert [r[2] for r in all_ratings(read_ratings("-", position=position))] == ["4"]


def test_after_a_pipe_a_file_may_follow(pipe, tmp_path):
    pipe.write(b"user,item,rating\n1,2,3\n")
    pipe.close()
    reader = read_ratings("-")
    list(reader)
    path = tmp_path / "more.csv"
    path.write_text("user,item,rating\n4,5,6\n")
    assert [r[2] for r in all_ratings(read_ratings(path, position=reader.position))] == ["4"]


def test_an_error_names_standard_input(pipe):
    pipe.write(b"user,item,rating\n1,2,x\n")
    pipe.close()
    with pytest.raises(DataError, match=r"^standard input: row 1 \(line 2\), column 'rating'"):
        list(read_ratings("-"))


@pytest.mark.parametrize("start", [b"", b"PAR1", b"\x1f\x8b\x08"])
def test_what_cannot_come_through_a_pipe(pipe, start):
    pipe.write(start)
    pipe.close()
    with pytest.raises(DataError, match=r"^standard input: "):
        list(read_ratings("-"))


def test_a_named_pipe_is_a_pipe(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"user,item,rating\n1,2,3\n"))
    writer.start()
    assert without_file(all_ratings(read_ratings(path))) == [[1, "1", "2", 3.0]]
    writer.join()
