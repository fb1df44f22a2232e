"""Files that are odd, by chance or on purpose: refused in one clear line, or read as meant."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import onlinefw as ofw
from onlinefw.readers import DataError, ParquetRatings, ParquetRows, read_ratings, read_rows

HEADER = "user,item,rating\n"
RATINGS = {"user": [1, 2], "item": [3, 4], "rating": [1.0, 2.0]}


def refused(path, message, read=read_ratings, **options):
    with pytest.raises(DataError) as caught:
        list(read(path, **options))
    text = str(caught.value)
    assert message in text and text.startswith(str(path))
    assert "\n" not in text and len(text) < 400


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "user,item,rating\r1,2,3\r4,5,6\r"),
        ("a.tsv", "user\titem\trating\r1\t2\t3\r"),
        ("a.dat", "1::2::3\r4::5::6\r"),
        ("a.jsonl", '{"user":1,"item":2,"rating":3}\r{"user":1,"item":2,"rating":4}\r'),
        ("a.svm", "1 1:2\r-1 2:3\r"),
    ],
)
def test_lines_that_end_with_carriage_returns(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content.encode())
    read = read_rows if name == "a.svm" else read_ratings
    message = r"lines end with a carriage return alone; end them with a newline"
    refused(path, message, read)


def test_a_carriage_return_between_quotes_is_a_character(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'"a\rb",2,3\r\n"c",4,5\r\n')
    (chunk,) = read_ratings(path, user=1, item=2, rating=3, header=False)
    assert chunk.users.tolist() == ["a\rb", "c"]


LONG = "x" * 200_000


def test_cells_longer_than_python_s_csv_reads(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"user,item,rating,{LONG}\n{LONG},1,2,a\n2,2,3,{LONG}\n")
    for bad in ("", "1,2,bad,a\n"):
        with path.open("a") as file:
            file.write(bad)
        (chunk,) = read_ratings(path, on_bad_row="skip")
        assert chunk.users.tolist() == [LONG, "2"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            f"{LONG},item,rating",
            "no column is obviously the user; say which, such as --user 1 --item item --rating "
            f"rating; the "
            f"columns are '{'x' * 37}...', 'item', 'rating'",
        ),
        (f"{LONG},{LONG},rating", f"columns 1 and 2 are both called '{'x' * 37}...'"),
    ],
)
def test_a_long_name_is_not_shown_whole(tmp_path, columns, message):
    path = tmp_path / "a.csv"
    path.write_text(f"{columns}\n1,2,3\n")
    refused(path, message)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_long_name_of_a_bad_row_is_not_shown_whole(tmp_path, name):
    path = tmp_path / name
    path.write_text(f"{LONG},y\nbad,1\n" if name == "a.csv" else f'{{"{LONG}": "bad", "y": 1}}\n')
    refused(path, f"column '{'x' * 37}...': 'bad' is not a number", read_rows)


@pytest.mark.parametrize("digits", ["12345678901234567890", "9007199254740993"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_long_labels_are_kept_whole(tmp_path, name, digits):
    path = tmp_path / name
    other = digits[:-1] + "1"
    if name == "a.csv":
        path.write_text(f"x,y\n1,{digits}\n2,{other}\n3,1\n")
    elif name == "a.jsonl":
        path.write_text("".join(f'{{"x":1,"y":{y}}}\n' for y in (digits, other, 1)))
    else:
        y = pa.array([int(digits), int(other), 1], pa.uint64())
        pq.write_table(pa.table({"x": [1, 2, 3], "y": y}), path)
    (chunk,) = read_rows(path, labels=True)
    assert [str(label) for label in chunk.y] == [digits, other, "1"]


def test_libsvm_s_numbers_do_not_keep_them(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:2\n12345678901234567890 1:3\n")
    message = "row 2: the label '12345678901234567890' has more digits than LIBSVM's numbers keep; "
    refused(path, message + "number the classes from 0", read_rows, labels=True)
    assert next(read_rows(path)).y.tolist() == [1.0, 12345678901234567890.0]


def test_a_number_of_very_many_digits(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"user":1,"item":2,"rating":3}\n{"user":%s,"item":2,"rating":3}\n' % ("9" * 5000)
    )
    refused(path, "row 2: not JSON (a number of too many digits)")


# Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.csv", "user,item,rating,rating\n1,2,3,4\n", {}),
        ("a.csv", "user,item,rating, rating \n1,2,3,4\n", {"user": 1, "item": 2, "rating": 3}),
        ("a.tsv", "user\titem\trating\trating\n1\t2\t3\t4\n", {}),
    ],
)
def test_two_columns_with_one_name(tmp_path, name, content, options):
    path = tmp_path / name
    path.write_text(content)
    refused(path, "columns 3 and 4 are both called 'rating'; rename one of them", **options)


def test_numbers_that_repeat_are_no_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,1,5\n2,2,3\n")
    refused(path, "the file seems to have no header")
    (chunk,) = read_ratings(path, user=1, item=2, rating=3)
    assert len(chunk) == 2


@pytest.fixture
def doubled(tmp_path):
    path = tmp_path / "a.parquet"
    columns = [pa.array([1, 2]), pa.array([3, 4]), pa.array([1.0, 2.0]), pa.array([5.0, 6.0])]
    pq.write_table(pa.table(columns, names=["user", "item", "rating", "rating"]), path)
    return path


def test_two_columns_of_parquet_with_one_name(doubled):
    refused(doubled, "columns 3 and 4 are both called 'rating'; rename one of them")
    refused(doubled, "columns 3 and 4 are both called 'rating'", read_rows, target="user")


def test_two_columns_of_partitioned_parquet_with_one_name(doubled):
    message = "has 2 columns 'rating'; rename all but one"
    with pytest.raises(ValueError, match=message):
        ParquetRatings(doubled)
    with pytest.raises(ValueError, match=message):
        ParquetRows(doubled, target="user")
    with pytest.raises(ValueError, match=message):
        ParquetRows(doubled, target="rating")


# Times -------------------------------------------------------------------------------------------


TIMES = pa.array([1, 1_600_000_000_000_000_001], pa.timestamp("ns"))
AS_TEXT = ["1970-01-01 00:00:00.000000001", "2020-09-13 12:26:40.000000001"]


def test_nanoseconds_as_ids_and_labels(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**RATINGS, "user": TIMES}), path)
    assert next(read_ratings(path)).users.tolist() == AS_TEXT
    pq.write_table(pa.table({"x": [1, 2], "y": TIMES}), path)
    assert next(read_rows(path, labels=True)).y.tolist() == AS_TEXT


WITHOUT_PANDAS = """
import sys


class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ImportError(name)


sys.meta_path.insert(0, NoPandas())
from onlinefw.readers import read_ratings

print(next(read_ratings(sys.argv[1])).users.tolist())
"""


@pytest.mark.slow
def test_nanoseconds_do_not_need_pandas(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**RATINGS, "user": TIMES}), path)
    command = [sys.executable, "-c", WITHOUT_PANDAS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == f"{AS_TEXT}\n", done.stderr


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.time64("ns"), pa.timestamp("s")]
)
def test_times_are_no_numbers(tmp_path, kind):
    path = tmp_path / "a.parquet"
    times = pa.array([1, 10**15 if kind == pa.timestamp("s") else 2], kind)
    pq.write_table(pa.table({**RATINGS, "rating": times}), path)
    refused(path, "row 1, column 'rating': ")


def test_times_are_no_numbers_of_partitioned_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**RATINGS, "rating": TIMES}), path)
    with pytest.raises(ValueError, match=r"y must be numeric, got times \(datetime64\[ns\]\)"):
        ofw.FrankWolfeMatrixCompletion(1.0).fit(ParquetRatings(path))


# Depth -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opening", "first"), [('{"user":', ""), ("[", '{"user":1,"item":2,"rating":3}\\n')]
)
def test_json_nested_very_deep(tmp_path, opening, first):
    """In a process of its own, since it might be the last line that it reads."""
    path = tmp_path / "a.jsonl"
    code = f"""
from onlinefw.readers import DataError, read_ratings
open({str(path)!r}, "w").write('{first}' + '{{"user":1,"item":2,"rating":' + {opening!r} * 100_000)
try:
    list(read_ratings({str(path)!r}))
except DataError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1 and "JSON" in done.stdout and len(done.stdout) < 400


# Underscores -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", HEADER + "1,2,1_0\n"),
        ("a.tsv", HEADER.replace(",", "\t") + "1\t2\t1_0\n"),
        ("a.jsonl", '{"user":1,"item":2,"rating":"1_0"}\n'),
    ],
)
def test_an_underscore_is_no_part_of_a_number(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    refused(path, "column 'rating': '1_0' is not a number")


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_nor_is_it_in_parquet(tmp_path, kind):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**RATINGS, "rating": pa.array(["1_0", "2"], kind)}), path)
    refused(path, "row 1, column 'rating': '1_0' is not a number")
    with pytest.raises(ValueError, match=r"y must be numeric: could not convert b?'1_0'"):
        ofw.FrankWolfeMatrixCompletion(1.0).fit(ParquetRatings(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1_0 1:2", "the label: '1_0' is not a number"),
        ("1 1_0:2", "'1_0:2' is not of the form index:value"),
        ("1 1:2_0", "'1:2_0': '2_0' is not a number"),
    ],
)
def test_nor_is_it_in_libsvm(tmp_path, line, message):
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:1 # a_comment\n{line}\n")
    refused(path, f"row 2: {message}", read_rows)


def test_text_in_bytes_is_text(tmp_path):
    path = tmp_path / "a.parquet"
    users = pa.array([b"u1", b"7"], pa.binary())
    pq.write_table(pa.table({**RATINGS, "user": users, "rating": pa.array([b"1", b"2"])}), path)
    (chunk,) = read_ratings(path)
    assert chunk.users.tolist() == ["u1", "7"] and chunk.values.tolist() == [1.0, 2.0]


def test_targets_that_are_text():
    X, y = np.eye(2), np.array(["1", "1_0"])
    with pytest.raises(ValueError, match="y must be numeric"):
        ofw.FrankWolfeRegressor(radius=1.0).fit(X, y)
