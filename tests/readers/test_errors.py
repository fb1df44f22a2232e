"""What is wrong with the data is said in one line: file, row, column, value, remedy."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlinefw.readers import DataError, read_ratings, read_rows

HEADER = "user,item,rating\n"

# name: file name, content, options, what the message says (after the folder).
RATINGS = {
    "text for a number": (
        "a.csv",
        HEADER + "1,2,3\n1,2,good\n",
        {},
        "a.csv: row 2 (line 3), column 'rating': 'good' is not a number; correct it, or leave bad "
        "rows out (--on-bad-row skip)",
    ),
    "a long value is cut": (
        "a.csv",
        HEADER + "1,2," + "x" * 99 + "\n",
        {},
        f"'{'x' * 37}...' is not a number",
    ),
    "nan": ("a.csv", HEADER + "1,2,NaN\n", {}, "'NaN' is not a finite number"),
    "infinity": ("a.csv", HEADER + "1,2,-inf\n", {}, "'-inf' is not a finite number"),
    "too large": ("a.csv", HEADER + "1,2,1e999\n", {}, "'1e999' is not a finite number"),
    "no rating": ("a.csv", HEADER + "1,2,\n", {}, "column 'rating': the cell is empty"),
    "no user": ("a.csv", HEADER + " ,2,3\n", {}, "column 'user': the cell is empty"),
    "not UTF-8": ("a.csv", HEADER.encode() + b"\xe9t\xe9,2,3\n", {}, "is not UTF-8 text"),
    "too few cells": (
        "a.csv",
        HEADER + "1,2\n",
        {},
        "row 1 (line 2): 2 cells where there are 3 columns",
    ),
    "an open quote": ("a.csv", HEADER + '1,"2,3\n4,5,6\n', {}, "check the quotes"),
    "the line counts line ends in quotes": (
        "a.csv",
        HEADER + '"a\nb",2,3\n\n1,2,x\n',
        {},
        "row 2 (line 5), column 'rating'",
    ),
    "nothing": ("a.csv", "", {}, "a.csv: there are no rows in it"),
    "a header only": ("a.csv", HEADER, {}, "a.csv: there are no rows in it"),
    "blank": ("a.csv", "\n \n", {}, "a.csv: there are no rows in it"),
    "a misspelt column": (
        "a.csv",
        HEADER + "1,2,3\n",
        {"rating": "ratng"},
        "there is no column 'ratng'; did you mean 'rating'? The columns are 'user', 'item', "
        "'rating'",
    ),
    "no obvious column": (
        "a.csv",
        "who,item,rating\n1,2,3\n",
        {},
        "no column is obviously the user; say which, such as --user who --item item "
        "--rating rating; the columns are 'who'",
    ),
    "several open questions at once": (
        "a.csv",
        "when,who did it,what\n1,2,3\n",
        {"rating": "when"},
        "no column is obviously the user or the item; say which, such as --user 'who did it' "
        "--item what --rating when; the columns are 'when', 'who did it', 'what'",
    ),
    "more questions than columns": (
        "a.csv",
        "who,what\n1,2\n",
        {},
        "no column is obviously the user, the item or the rating; say which with --rating",
    ),
    "a number too high": (
        "u.data",
        "1\t2\t3\n",
        {"user": 1, "item": 2, "rating": 4},
        "there is no column 4; columns count from 1 to 3",
    ),
    "column 0": (
        "u.data",
        "1\t2\t3\n",
        {"user": 0, "item": 1, "rating": 2},
        "columns count from 1 to 3",
    ),
    "names without a header": (
        "u.data",
        "196\t242\t3\n",
        {"user": "user", "item": "item"},
        "the file seems to have no header; give the column's number, counted from 1 (--user 1)",
    ),
    "nothing said of a file without header": (
        "u.data",
        "196\t242\t3\n",
        {},
        "such as --user 1 --item 2 --rating 3",
    ),
    "a header that was denied": (
        "a.csv",
        HEADER + "1,2,3\n",
        {"user": 1, "item": 2, "rating": 3, "header": False},
        "row 1, column '3': 'rating' is not a number; if the first line is a header, say --header",
    ),
    "a header that is data": (
        "a.csv",
        "1,2,3\n4,5,6\n",
        {"user": 1, "item": 2, "rating": 3, "header": True},
        "the first row is data, it seems; say --no-header",
    ),
    "one column twice": (
        "a.csv",
        HEADER + "1,2,3\n",
        {"user": "item"},
        "two of user, item and rating",
    ),
    "UTF-16": ("a.csv", HEADER.encode("utf-16"), {}, "the text is UTF-16; save it as UTF-8"),
    "gzip by another name": ("a.csv", gzip.compress(b"x"), {}, "pipe it through zcat"),
    "half a gz": ("a.csv.gz", gzip.compress(HEADER.encode() * 99)[:-9], {}, "end too early"),
    "no gz at all": ("a.csv.gz", b"user,item,rating\n" * 99, {}, "damaged or end too early"),
    "half a zst": (
        "a.csv.zst",
        pa.Codec("zstd").compress(
            b"".join(b"%d,%d,1\n" % (k, k * k) for k in range(9999)), asbytes=True
        )[:-99],
        {"user": 1, "item": 2, "rating": 3},
        "the zstd data are damaged or end too early",
    ),
    "no Parquet": ("a.parquet", b"PAR1 and so on", {}, "this is not a whole Parquet file"),
    "ratings as LIBSVM": ("a.libsvm", "1 1:2\n", {}, "rows of features, not ratings"),
    "broken JSON": (
        "a.jsonl",
        '{"user":1,"item":2,"rating":3}\n{"user":\n',
        {},
        "row 2: not JSON",
    ),
    "a JSON array": ("a.jsonl", '[{"user":1}]\n', {}, "one {...} per line"),
    "a JSON record without rating": (
        "a.jsonl",
        '{"user":1,"item":2,"rating":3}\n{"user":1,"item":2}\n',
        {},
        "row 2, column 'rating': the cell is empty",
    ),
    "JSON NaN": ("a.jsonl", '{"user":1,"item":2,"rating":NaN}\n', {}, "not a finite number"),
    "a JSON key that is not there": ("a.jsonl", '{"usr":1}\n', {"user": "user"}, "mean 'usr'?"),
}


@pytest.mark.parametrize("case", RATINGS)
def test_ratings_that_cannot_be_read(tmp_path, case):
    name, content, options, message = RATINGS[case]
    _refused(tmp_path / name, content, message, lambda path: read_ratings(path, **options))


LIBSVM = {
    "out of order": (
        "1 1:1\n1 3:1 2:1\n",
        {},
        "a.libsvm: row 2: index 2 does not come after the one before it; sort the indices",
    ),
    "twice": ("1 2:1 2:1\n", {}, "index 2 does not come after"),
    "malformed": ("1 1:1 hello\n", {}, "'hello' is not of the form index:value"),
    "text for a value": ("1 1:x\n", {}, "'x' is not a number"),
    "no value": ("1 1:\n", {}, "the cell is empty"),
    "nan": ("1 1:nan\n", {}, "not a finite number"),
    "text for a label": ("yes 1:1\n", {}, "the label: 'yes' is not a number"),
    "index 0": ("1 0:1\n", {}, "'0:1' has index 0; count from 1, or say --zero-based"),
    "beyond the features": ("1 7:1\n", {"n_features": 5}, "index 7 is beyond the 5 features"),
    "comments count as lines": ("# a\n1 1:1\n\n1 2:1 1:1\n", {}, "row 2 (line 4)"),
    "nothing but comments": ("# a\n\n", {}, "there are no rows in it"),
}


@pytest.mark.parametrize("case", LIBSVM)
def test_libsvm_that_cannot_be_read(tmp_path, case):
    content, options, message = LIBSVM[case]
    _refused(tmp_path / "a.libsvm", content, message, lambda path: read_rows(path, **options))


ROWS = {
    "no target": (
        "a,b\n1,2\n",
        {},
        "no column is obviously the target; say which, such as --target b",
    ),
    "a feature of text": ("a,y\nParis,1\n", {}, "row 1 (line 2), column 'a': 'Paris' is not"),
    "an empty feature": ("a,y\n,1\n", {}, "column 'a': the cell is empty"),
    "the target as a feature": ("a,y\n1,1\n", {"features": "a,y"}, "is among the features"),
    "a feature twice": ("a,b,y\n1,1,1\n", {"features": "1-2,a"}, "a feature is named twice"),
    "no features": ("y\n1\n", {}, "there are no features"),
    "not as many as expected": (
        "a,y\n1,1\n",
        {"n_features": 2},
        "1 feature where there",
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_that_cannot_be_read(tmp_path, case):
    content, options, message = ROWS[case]
    _refused(tmp_path / "a.csv", content, message, lambda path: read_rows(path, **options))


def _refused(path, content, message, read):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError) as caught:
        list(read(path))
    text = str(caught.value)
    assert message in text
    assert text.startswith(str(path)) and "\n" not in text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no.csv", "no.csv: there is no such file; check the path"),
        ("no-*.csv", "no file matches this pattern"),
        ("", "this is a folder"),
    ],
)
def test_files_that_are_not_there(tmp_path, path, message):
    with pytest.raises(DataError, match=message.replace("*", r"\*")):
        read_ratings(tmp_path / path)


def test_a_bad_row_is_found_far_into_a_file(tmp_path):
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write(HEADER)
        file.write("12,34,5\n" * 1_234_566)
        file.write("12,34,five\n" + "12,34,5\n" * 1000)
    with pytest.raises(DataError, match=r"row 1234567 \(line 1234568\), column 'rating': 'five'"):
        list(read_ratings(path))


def test_columns_of_every_file_are_checked_before_anything_is_read(tmp_path):
    good, bad = tmp_path / "1.csv", tmp_path / "2.csv"
    good.write_text(HEADER + "1,2,3\n")
    bad.write_text("user,item\n1,2\n")
    with pytest.raises(DataError, match=r"2\.csv"):
        read_ratings([good, bad])


def test_null_and_text_in_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"user": [1, 2], "item": ["a", None], "rating": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match="row 2, column 'item': the cell is empty"):
        list(read_ratings(path))
    pq.write_table(pa.table({"user": [1, 2], "item": [1, 2], "rating": ["1", "b"]}), path)
    with pytest.raises(DataError, match="row 2, column 'rating': 'b' is not a number"):
        list(read_ratings(path))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="not a whole Parquet file"):
        read_ratings(path)


def test_a_damaged_page_of_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"user": list(range(9999)), "item": list(range(9999)), "rating": [1.0] * 9999})
    pq.write_table(table, path, write_page_checksum=True)
    whole = bytearray(path.read_bytes())
    whole[100:4000] = bytes(3900)
    path.write_bytes(whole)
    with pytest.raises(DataError, match="not a whole Parquet file"):
        list(read_ratings(path))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_bad_rows_left_out_are_counted_with_an_example(tmp_path, name):
    path = tmp_path / name
    if name == "a.csv":
        path.write_text(HEADER + "1,2,3\n1,2,x\n1,2\n4,5,6\n1,2,y\n")
    else:
        path.write_text(
            '{"user":1,"item":2,"rating":3}\n{"user":1,"item":2,"rating":"x"}\n{"user":\n'
            '{"user":4,"item":5,"rating":6}\n{"user":1,"item":2,"rating":"y"}\n'
        )
    reader = read_ratings(path, on_bad_row="skip")
    (chunk,) = reader
    assert chunk.values.tolist() == [3, 6] and chunk.rows.tolist() == [1, 4]
    assert chunk.users.tolist() == [1, 4] and chunk.first_row == 1
    assert reader.bad_rows.total == 3 and reader.bad_rows.counts["not a number"] == 2
    assert str(reader.bad_rows).startswith("3 bad rows left out: 2 not a number (first: ")
    assert "column 'rating': 'x' is not a number" in str(reader.bad_rows)


def test_libsvm_rows_left_out(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:1\n1 9:1 8:1\n2 2:3\n")
    reader = read_rows(path, on_bad_row="skip")
    (chunk,) = reader
    # The row left out does not count for the number of features either.
    assert chunk.X.toarray().tolist() == [[1, 0], [0, 3]] and chunk.rows.tolist() == [1, 3]
    assert reader.bad_rows.counts == {"out of order": 1}


@pytest.mark.parametrize("options", [{"chunk_rows": 0}, {"on_bad_row": "ignore"}])
def test_options_that_do_not_exist(tmp_path, options):
    path = tmp_path / "a.csv"
    path.write_text(HEADER + "1,2,3\n")
    with pytest.raises(ValueError, match=next(iter(options))):
        read_ratings(path, **options)
