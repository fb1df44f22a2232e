"""A row means the same whether its block is read at once or, beside a bad row, one by one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onlinefw.readers import read_ratings, read_rows

from .writing import csv_text

CELLS = st.text("0017+-.eEaNn \t\u00a0\u2003é", max_size=5) | st.sampled_from(
    ["1e999", "inf", "-Infinity", "nan", "9" * 18, "9" * 19, "-0", "007", "1_0", "٣", "0x1", "1."]
)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=4)


def good_rows(path, text):
    path.write_bytes(text.encode())
    reader = read_ratings(path, on_bad_row="skip")
    return [
        (int(row), str(u), str(i), float(v))
        for c in reader
        for row, u, i, v in zip(c.rows, c.users, c.items, c.values, strict=True)
    ], dict(reader.bad_rows.counts)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("data") / "a.csv"


@given(rows=ROWS)
@example(rows=[("1", "2", " 3")])
@example(rows=[("\u00a01", "2", "3")])
@example(rows=[("1", "2", "3\u2003")])
def test_delimited_text(path, rows):
    columns = dict(zip(("user", "item", "rating"), zip(*rows, strict=True), strict=True))
    text = csv_text(columns)
    expected, left_out = good_rows(path, text)
    beside, left_out_beside = good_rows(path, text + "1,2,bad\n")
    assert beside == expected
    assert left_out_beside == left_out | {"not a number": left_out.get("not a number", 0) + 1}


VALUES = st.floats(-1e150, 1e150).map(repr)  # larger ones cannot be squared
PAIRS = st.dictionaries(st.integers(1, 9), VALUES, max_size=4).map(lambda d: sorted(d.items()))


@given(rows=st.lists(st.tuples(VALUES, PAIRS), min_size=1, max_size=4))
def test_libsvm(path, rows):
    text = "".join(f"{y} {' '.join(f'{j}:{v}' for j, v in pairs)}\n" for y, pairs in rows)
    got = []
    for beside in ("", "1 2:3 1:3\n"):
        path.write_text(text + beside)
        (chunk,) = read_rows(path, format="libsvm", n_features=9, on_bad_row="skip")
        got.append((chunk.X.toarray().tolist(), chunk.y.tolist()))
    assert got[0] == got[1]
