"""Lists of entries by row and by column: how much memory they take."""

import numpy as np

from onlinefw.past.host.entry_lists import EntryLists


def test_a_side_that_has_memory_left_gets_no_more():
    """Two entries a row need no more than their places, however often columns are lengthened."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(5000), 2), rng.integers(100, size=10_000)
    order = rng.permutation(10_000)
    lists = EntryLists((5000, 100), np.dtype(np.float32))
    lists.append(rows[order], columns[order], np.ones(10_000))
    assert lists.by_row.other.size <= 1.3 * 10_000
    np.testing.assert_array_equal(lists.columns_of(7), np.unique(columns[14:16]))
