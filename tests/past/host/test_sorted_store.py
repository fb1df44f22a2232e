"""Sorted entries: merging gives what a dictionary of entries gives, in new memory or in place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinefw.past.host import sorted_store
from onlinefw.past.host.entry_store import new_tail, without_oldest
from onlinefw.past.host.sorted_store import Merging, SortedStore

ROWS, COLUMNS = 7, 5
entries = st.lists(
    st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1), st.integers(1, 9)), max_size=40
)


def store_of(found):
    """Sort entries (row, column, value) of weight 1 and prediction 10 row + column."""
    row, col, s = np.array(found, dtype=float).reshape(-1, 3).T
    tail = new_tail(np.dtype(float)).extended(
        row, col, 10 * row + col, np.ones(row.size), s, 0.0, 0.0
    )
    return without_oldest(tail, row.size, ROWS)[0]


def contents(store):
    return list(zip(store.rows(), store.col, store.z, store.c, store.s, strict=True))


def finished(change):
    """Carry a change in place out; until then the store is what it was."""
    if not isinstance(change, Merging):
        return change
    before = contents(change.before)
    assert not change.is_done
    assert contents(change.before) == before
    return change.run()


@pytest.fixture(params=[2**24, 8, 1], ids=["new memory", "in place", "row by row"])
def at_once(request, monkeypatch):
    monkeypatch.setattr(sorted_store, "MERGED_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
def test_merging_batches_sums_up_repeated_entries():
    @settings(max_examples=20)
    @given(st.lists(entries, max_size=5))
    def sums_up(batches):
        store, expected = SortedStore.empty(ROWS, np.dtype(float)), {}
        for batch in batches:
            store = finished(store.merged(store_of(batch), combine=True))
            for i, j, y in batch:
                c, s = expected.get((i, j), (0.0, 0.0))
                expected[i, j] = c + 1.0, s + y
        assert contents(store) == [
            (i, j, 10 * i + j, c, s) for (i, j), (c, s) in sorted(expected.items())
        ]

    sums_up()


@pytest.mark.usefixtures("at_once")
def test_merging_without_summing_keeps_repeats_in_order():
    @settings(max_examples=20)
    @given(st.lists(entries, max_size=5))
    def keeps_order(batches):
        store = SortedStore.empty(ROWS, np.dtype(float))
        for batch in batches:
            store = finished(store.merged(store_of(batch), combine=False))
        expected = sorted((e for batch in batches for e in batch), key=lambda e: e[:2])
        assert contents(store) == [(i, j, 10 * i + j, 1.0, y) for i, j, y in expected]

    keeps_order()


@pytest.mark.usefixtures("at_once")
def test_renumbered_columns_are_sorted_again():
    @given(entries, st.permutations(range(COLUMNS)))
    def are_sorted(batch, numbers):
        empty = SortedStore.empty(ROWS, np.dtype(float))
        store = finished(empty.merged(store_of(batch), combine=False))
        before = contents(store)
        store.g[:] = store.s
        store = finished(store.renumbered(np.array(numbers)))
        expected = sorted(((i, numbers[j], *rest) for i, j, *rest in before), key=lambda e: e[:2])
        assert contents(store) == expected
        assert np.array_equal(store.g, store.s)

    are_sorted()


def test_a_store_that_is_merged_in_new_memory_stays_what_it_was():
    before = store_of([(0, 1, 5), (3, 2, 4)])
    known = contents(before)
    after = before.merged(store_of([(0, 1, 7)]), combine=True)
    assert contents(before) == known
    assert contents(after) == [(0, 1, 1.0, 2.0, 12.0), (3, 2, 32.0, 1.0, 4.0)]
