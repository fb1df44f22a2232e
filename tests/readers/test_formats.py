"""The same data come out of every format, whatever its name, header and separator."""

import gzip

import numpy as np
import pytest

from onlinefw.readers import DataError, read_ratings, read_rows

from .writing import all_ratings, all_rows, csv_text, ratings, without_file, write

EXPECTED = [
    [k + 1, u, str(i), v] for k, (u, i, v) in enumerate(zip(*ratings().values(), strict=True))
]
OBVIOUS = ["user_id,item_id,rating", "userId,movieId,rating", "User,Item,Stars"]
NAMES = ["a.csv", "a.tsv", "a.csv.gz", "a.tsv.zst", "a.jsonl", "a.jsonl.gz", "a.parquet"]


@pytest.mark.parametrize("name", NAMES)
def test_ratings_are_the_same_in_every_format(tmp_path, name):
    path = write(tmp_path / name, ratings())
    assert without_file(all_ratings(read_ratings(path))) == EXPECTED


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_integer_ids_stay_integers(tmp_path, name):
    columns = ratings() | {"user": list(range(11))}
    chunk = next(read_ratings(write(tmp_path / name, columns)))
    assert chunk.users.dtype == np.int64 and chunk.items.dtype == np.int64
    assert chunk.users.tolist() == columns["user"]


def test_ids_with_leading_zeros_are_text(tmp_path):
    columns = {"user": ["007", "7"], "item": [1, 2], "rating": [1, 2]}
    assert next(read_ratings(write(tmp_path / "a.csv", columns))).users.tolist() == ["007", "7"]


@pytest.mark.parametrize("separator", ["\t", ",", ";", "::", "|", " "])
@pytest.mark.parametrize("name", ["u.data", "ratings.txt", "ratings.dat", "ratings"])
def test_column_numbers_and_nothing_else(tmp_path, separator, name):
    path = tmp_path / name
    path.write_text(csv_text(ratings(), separator, header=False))
    got = all_ratings(read_ratings(path, user="1", item="2", rating="3"))
    assert without_file(got) == EXPECTED


def test_column_numbers_pass_over_a_header(tmp_path):
    path = write(tmp_path / "a.csv", ratings())
    assert without_file(all_ratings(read_ratings(path, user=1, item=2, rating=3))) == EXPECTED


def test_columns_are_taken_by_name_wherever_they_are(tmp_path):
    columns = {"when": ["x"] * 11, **dict(reversed(ratings().items()))}
    renamed = {{"user": "who", "item": "what"}.get(k, k): v for k, v in columns.items()}
    got = all_ratings(read_ratings(write(tmp_path / "a.csv", renamed), user="who", item="what"))
    assert without_file(got) == EXPECTED


@pytest.mark.parametrize(
    "names",
    [
        "user_id,item_id,rating",
        "userId,movieId,rating",
        "User,Item,Stars",
        "User-ID,ISBN,Book-Rating",
        "reviewerID,asin,overall",
        "READER,Title,SCORE",
        "reviewer,productId,stars",
        "user.id,book,value",
    ],
)
def test_obvious_names_are_guessed(tmp_path, names):
    path = tmp_path / "a.csv"
    path.write_text(f"{names}\n1,2,3\n")
    assert without_file(all_ratings(read_ratings(path))) == [[1, "1", "2", 3.0]]


def test_quoted_cells_may_hold_separators_quotes_and_line_ends(tmp_path):
    columns = ratings() | {"user": ['a,"b"\nc', 'TV 55"'] * 5 + ["\n"]}
    columns["user"][-1] = "x\ny"
    path = write(tmp_path / "a.csv", columns)
    for block_bytes in (16, 40, 1 << 20):
        got = all_ratings(read_ratings(path, block_bytes=block_bytes))
        assert [u for _, _, u, _, _ in got] == columns["user"]


def test_a_quote_inside_a_cell_is_a_character(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('user,item,rating\nTV 55",1,2\nb,2,3\nc"d,3,4\n')
    users = [r[2] for r in all_ratings(read_ratings(path, block_bytes=20))]
    assert users == ['TV 55"', "b", 'c"d']


def test_blank_lines_crlf_byte_order_mark_and_no_last_line_end(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfuser,item,rating\r\n\r\n1,2,3\r\n\r\n4,5,6")
    assert without_file(all_ratings(read_ratings(path))) == [[1, "1", "2", 3.0], [2, "4", "5", 6.0]]


def test_files_and_patterns_come_in_order(tmp_path):
    for k in (2, 1, 3):
        write(tmp_path / f"part-{k}.csv", {"user": [k], "item": [k], "rating": [k]})
    last = write(tmp_path / "last.jsonl", {"user": [9], "item": [9], "rating": [9]})
    got = all_ratings(read_ratings([str(tmp_path / "part-*.csv"), last]))
    assert [r[2] for r in got] == ["1", "2", "3", "9"]
    assert [r[1] for r in got] == [1, 1, 1, 1]


def test_pairs_without_ratings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item\n1,2\n3,4\n")
    chunk = next(read_ratings(path, needs_rating=False))
    assert chunk.values is None and chunk.items.tolist() == [2, 4]


X = np.array([[0.0, 1.5, 0], [2, 0, -3], [0, 0, 1e-3], [4, 5, 6]])
Y = [1, -1, -1, 1]
LIBSVM = "1 2:1.5\n-1 1:2 3:-3 # why\n\n-1 3:1e-3\n+1 qid:3 1:4 2:5 3:6\n"


def row_columns():
    return {"a": X[:, 0], "b": X[:, 1], "y": Y, "c": X[:, 2]}


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.libsvm", "a.svm.gz"])
def test_rows_are_the_same_in_every_format(tmp_path, name, labels):
    path = tmp_path / name
    if "svm" in name:
        path.write_bytes(gzip.compress(LIBSVM.encode()) if ".gz" in name else LIBSVM.encode())
    else:
        write(path, {k: np.asarray(v).tolist() for k, v in row_columns().items()})
    reader = read_rows(path, target="y", labels=labels, chunk_rows=3)
    got, y = all_rows(reader)
    np.testing.assert_array_equal(got, X)
    np.testing.assert_array_equal(y, Y)
    assert y.dtype == (np.int64 if labels else np.float64)
    assert reader.n_features == 3


def test_features_by_name_number_and_range(tmp_path):
    path = write(tmp_path / "a.csv", row_columns())
    for features in ("c,a,b", "c,1-2", ["c", 1, 2], "4,1-2"):
        got, _ = all_rows(read_rows(path, target="y", features=features))
        np.testing.assert_array_equal(got, X[:, [2, 0, 1]])


def test_rows_to_predict_come_with_or_without_their_target(tmp_path):
    with_target = write(tmp_path / "a.csv", row_columns())
    without = write(tmp_path / "b.csv", {k: v for k, v in row_columns().items() if k != "y"})
    for path in (with_target, without):
        got, y = all_rows(read_rows(path, target="y", needs_target=False))
        np.testing.assert_array_equal(got, X)
        assert y is None


def test_features_of_later_files_are_found_by_the_names_of_the_first(tmp_path):
    first = write(tmp_path / "1.csv", row_columns())
    second = write(tmp_path / "2.csv", dict(reversed(row_columns().items())))
    got, _ = all_rows(read_rows([first, second], target="y"))
    np.testing.assert_array_equal(got, np.vstack([X, X]))


def test_labels_may_be_text_or_whole_numbers_with_a_point(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,1.0\n2,-1.0\n")
    assert all_rows(read_rows(path, labels=True))[1].tolist() == [1, -1]
    path.write_text("x,y\n1,yes\n2,no\n")
    assert all_rows(read_rows(path, labels=True))[1].tolist() == ["yes", "no"]


def test_libsvm_may_count_from_0_and_may_be_told_its_width(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("1 0:2\n0 1:3\n")
    got, _ = all_rows(read_rows(path, zero_based=True, n_features=4))
    np.testing.assert_array_equal(got, [[2, 0, 0, 0], [0, 3, 0, 0]])


def test_chunks_may_be_written_to(tmp_path):
    chunk = next(read_ratings(write(tmp_path / "a.parquet", ratings())))
    chunk.values[0] = 7
    chunk.items[0] = 7


def test_an_unknown_format_is_refused():
    with pytest.raises(DataError, match="choose one of csv, tsv"):
        read_ratings("-", format="xlsx")
