"""Sorted entries: merging gives what a dictionary of entries gives, in new memory or in place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.objectives import sorted_store
from onlinefw.objectives.sorted_store import SortedStore
from onlinefw.objectives.tail import Tail

ROWS, COLUMNS = 7, 5
entries = st.lists(
    st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1), st.integers(1, 9)), max_size=40
)


def store_of(found):
    """Sort entries (row, column, value) of weight 1 and prediction 10 row + column."""
    tail = Tail(np.dtype(float))
    row, col, s = np.array(found, dtype=float).reshape(-1, 3).T
    tail.append(row, col, 10 * row + col, np.ones(row.size), s)
    return tail.take_oldest(row.size, ROWS)


def contents(store):
    return list(zip(store.rows(), store.col, store.z, store.c, store.s, strict=True))


@pytest.fixture(params=[2**24, 8, 1], ids=["new memory", "in place", "row by row"])
def at_once(request, monkeypatch):
    monkeypatch.setattr(sorted_store, "MERGED_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
def test_merging_batches_sums_up_repeated_entries():
    @given(st.lists(entries, max_size=5))
    def sums_up(batches):
        store, expected = SortedStore.empty(ROWS, np.dtype(float)), {}
        for batch in batches:
            store.merge(store_of(batch), combine=True)
            for i, j, y in batch:
                c, s = expected.get((i, j), (0.0, 0.0))
                expected[i, j] = c + 1.0, s + y
        assert contents(store) == [
            (i, j, 10 * i + j, c, s) for (i, j), (c, s) in sorted(expected.items())
        ]
        assert not store.g.any()

    sums_up()


@pytest.mark.usefixtures("at_once")
def test_merging_without_summing_keeps_repeats_in_order():
    @given(st.lists(entries, max_size=5))
    def keeps_order(batches):
        store = SortedStore.empty(ROWS, np.dtype(float))
        for batch in batches:
            store.merge(store_of(batch), combine=False)
        expected = sorted((e for batch in batches for e in batch), key=lambda e: e[:2])
        assert contents(store) == [(i, j, 10 * i + j, 1.0, y) for i, j, y in expected]

    keeps_order()


@given(entries, st.permutations(range(COLUMNS)))
def test_renumbered_columns_are_sorted_again(batch, numbers):
    store = SortedStore.empty(ROWS, np.dtype(float))
    store.merge(store_of(batch), combine=False)
    before = contents(store)
    store.g[:] = store.s
    store.renumber_columns(np.array(numbers))
    expected = sorted(((i, numbers[j], *rest) for i, j, *rest in before), key=lambda e: e[:2])
    assert contents(store) == expected
    assert np.array_equal(store.g, store.s)
