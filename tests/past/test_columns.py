"""Columns of one length: shorter ones are never changed by longer ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.past.columns import Columns


@given(st.lists(st.integers(0, 20), max_size=8))
def test_every_length_stays_what_it_was(sizes):
    columns, held, values = Columns.empty((np.uint32, float)), [], np.empty(0)
    for k, size in enumerate(sizes):
        new = 100.0 * k + np.arange(size)
        columns, values = columns.extended(new, 0.5 * new), np.append(values, new)
        held.append((columns, values))
    for columns, values in held:
        assert len(columns) == values.size
        np.testing.assert_array_equal(columns.arrays[0], values)
        np.testing.assert_array_equal(columns.arrays[1], 0.5 * values)


def test_without_the_first_items_there_is_no_common_memory():
    columns = Columns.empty((float,)).extended(np.arange(5.0))
    rest = columns.without_first(2)
    rest.arrays[0][:] = -1.0
    np.testing.assert_array_equal(columns.arrays[0], np.arange(5.0))
    assert len(rest) == 3


def test_items_of_another_number_are_refused_and_nothing_is_seen_of_them():
    columns = Columns.empty((float, float)).extended(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="broadcast"):
        columns.extended(np.zeros(2), np.zeros(5))
    np.testing.assert_array_equal(columns.arrays[0], np.ones(3))


def test_room_is_filled_by_whoever_asks_for_it():
    columns = Columns.empty((float,)).extended(np.arange(3.0))
    longer, (new,) = columns.lengthened(2)
    new[:] = 7.0
    assert longer.arrays[0].tolist() == [0.0, 1.0, 2.0, 7.0, 7.0]
