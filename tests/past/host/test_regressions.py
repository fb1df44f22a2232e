"""Columns in slices are the columns of the transposed matrix."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from onlinefw.past.host.regressions import ColumnSlices


@given(st.integers(0, 10**6), st.integers(1, 60), st.booleans())
def test_slices_together_are_the_transpose(seed, slice_size, weighted):
    rng = np.random.default_rng(seed)
    m1, m2 = rng.integers(1, 12, size=2)
    matrix = sparse.random_array((m1, m2), density=0.4, rng=rng, format="csr")
    matrix.sort_indices()
    indptr, col = matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32)
    weight = matrix.data + 1.0 if weighted else matrix.data[:0]
    blocks = np.array([0, m1 // 2, m1])
    slices = ColumnSlices(blocks, indptr, col, weight, matrix.data, m2, slice_size=slice_size)
    for _ in range(2):  # asked twice, the same again
        seen = 0
        for columns, (t_indptr, row, t_weight, target) in slices:
            expected = matrix.tocsc()[:, columns]
            expected.sort_indices()
            assert columns.start == seen
            assert np.array_equal(t_indptr, expected.indptr)
            assert np.array_equal(row, expected.indices)
            assert np.array_equal(target, expected.data)
            assert np.array_equal(t_weight, expected.data + 1.0 if weighted else [])
            assert row.size <= slice_size or columns.stop == columns.start + 1
            seen = columns.stop
        assert seen == m2
