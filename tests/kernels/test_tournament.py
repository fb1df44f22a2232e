"""The largest key is found, whatever grows and shrinks, and the first of equal ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.kernels.tournament import SLOPE, THETA, fill, key_of, largest, levels, lift

ONES = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])


def keys(table, active):
    return np.array([key_of.py_func(table, j, active) for j in range(len(table))])


@st.composite
def changes(draw):
    n = draw(st.integers(1, 150))
    one = st.tuples(st.integers(0, n - 1), ONES, ONES, st.booleans())
    return n, draw(st.lists(one, max_size=60))


@given(changes(), st.booleans())
def test_the_largest_key_is_found_after_every_change(case, active):
    n, events = case
    table, starts = np.zeros((n, 3)), levels(n)
    bounds = np.empty(starts[-1])
    fill(table, bounds, starts, active)
    for j, theta, slope, ask in events:
        table[j, THETA], table[j, SLOPE] = theta, slope
        lift(bounds, starts, j, key_of.py_func(table, j, active))
        if ask:
            own = keys(table, active)
            wanted = -1 if own.max() == -np.inf else int(np.argmax(own))
            assert largest(table, bounds, starts, active) == wanted


@given(changes())
def test_bounds_that_are_made_anew_find_the_same(case):
    n, events = case
    table, starts = np.zeros((n, 3)), levels(n)
    bounds, anew = np.zeros(starts[-1]), np.empty(starts[-1])
    for j, _, slope, _ in events:
        table[j, SLOPE] = slope
        lift(bounds, starts, j, abs(slope))
    fill(table, anew, starts, False)
    assert largest(table, bounds, starts, False) == largest(table, anew, starts, False)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 65, 513])
def test_a_tree_has_one_root(n):
    starts = levels(n)
    assert starts[-1] - starts[-2] == 1
    assert starts[1] == -(-n // 8)


def test_what_is_not_a_number_is_never_the_largest_and_ends_the_search():
    table, starts = np.zeros((20, 3)), levels(20)
    bounds = np.empty(starts[-1])
    table[:, SLOPE] = np.nan
    fill(table, bounds, starts, False)
    assert largest(table, bounds, starts, False) == -1
    table[11, SLOPE] = 1.0
    lift(bounds, starts, 11, 1.0)
    assert largest(table, bounds, starts, False) == 11
