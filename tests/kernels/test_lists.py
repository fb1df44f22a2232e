"""Lists that grow one entry at a time, many in the same memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.kernels.lists import append, copied_lists, has_space, new_lists, packed, unpacked

FLOAT = np.dtype(float)


def filled(events, n=6, weighted=False):
    """Append events (list, other, value) one by one, with more memory where it is needed."""
    lists = new_lists(n, 8, FLOAT, weighted)
    for i, other, value in events:
        while not has_space(lists, i):
            lists = copied_lists(lists, n, 2 * lists.other.size, weighted)
        append(lists, i, other, value, value + 1.0)
    return lists


EVENTS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2**32 - 1), st.floats(-9, 9)), max_size=200
)


@given(EVENTS, st.booleans())
def test_every_list_has_its_own_entries_in_the_order_in_which_they_came(events, weighted):
    lists = filled(events, weighted=weighted)
    for i in range(6):
        own = [event for event in events if event[0] == i]
        at = slice(int(lists.start[i]), int(lists.start[i]) + len(own))
        assert lists.length[i] == len(own)
        assert lists.other[at].tolist() == [event[1] for event in own]
        assert lists.value[at].tolist() == [event[2] for event in own]
        if weighted:
            assert lists.weight[at].tolist() == [event[2] + 1.0 for event in own]


@given(EVENTS)
def test_what_is_packed_is_unpacked_and_goes_on(events):
    lists = filled(events)
    again = unpacked(*packed(lists, 6))
    for one, two in zip(packed(lists, 6), packed(again, 6), strict=True):
        np.testing.assert_array_equal(one, two)
    more = copied_lists(again, 6, again.other.size + 100, False)
    append(more, 3, 7, 0.5, 1.0)
    assert more.length[3] == lists.length[3] + 1


def test_memory_that_a_list_has_left_is_used_by_others():
    rng = np.random.default_rng(0)
    n, events = 300, 30_000
    lists = new_lists(n, 4 * events, FLOAT)
    for i in (n * rng.random(events) ** 3).astype(int):
        append(lists, i, 0, 0.0, 1.0)
    assert lists.end[0] < 2.0 * events


@pytest.mark.parametrize("length", [0, 3, 4, 5, 64])
def test_a_full_list_has_space_only_if_there_is_memory(length):
    lists = new_lists(1, length, FLOAT)
    count = 0
    while has_space(lists, 0):
        append(lists, 0, 0, 0.0, 1.0)
        count += 1
    assert count <= length
    assert lists.end[0] <= length
