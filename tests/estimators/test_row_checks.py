"""Rows that need no conversion are told from those that need the full check."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from onlinefw.estimators.row_checks import plain_rows


def test_plain_compressed_rows_are_found():
    X = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]]))
    assert plain_rows(X, 3) and plain_rows(sparse.csr_matrix(X), 3)
    assert plain_rows(sparse.csr_array((2, 3)), 3)
    for broken in (X.tocsc(), X.astype(int), X[:0], sparse.csr_array(X.toarray()[:, :2])):
        assert not plain_rows(broken, 3)
    for change in ("order", "twice", "nan", "outside"):
        other = X.copy()
        if change == "nan":
            other.data[1] = np.nan
        else:
            other.indices[:2] = {"order": [2, 0], "twice": [2, 2], "outside": [0, 7]}[change]
        assert not plain_rows(other, 3)


@given(st.lists(st.lists(st.integers(0, 5), max_size=5), min_size=1, max_size=6))
def test_columns_must_be_in_order_and_none_twice(rows):
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.array([column for row in rows for column in row], dtype=np.int32)
    X = sparse.csr_array((np.ones(columns.size), columns, ends), shape=(len(rows), 6))
    assert plain_rows(X, 6) == all(row == sorted(set(row)) for row in rows)
