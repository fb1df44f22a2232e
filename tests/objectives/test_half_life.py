"""An observation weighs half as much after every half-life, however the stream is cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.objectives.half_life import BLOCK, Clock, check_half_life, clock_from_state, new_clock

half_lives = st.floats(1.0, 1e4)


def weighed(half_life, pieces):
    """All weights of a stream in pieces, as they are at its end."""
    clock, weights = Clock(half_life), np.empty(0)
    for w in pieces:
        clock, factor, new = clock.after(w)
        weights = np.append(factor * weights, new)
    return clock, weights


@given(half_lives, st.integers(1, 500))
def test_a_weight_halves_with_every_half_life(half_life, n):
    clock, weights = weighed(half_life, [np.ones(n)])
    ages = np.arange(n)[::-1]
    np.testing.assert_allclose(weights / clock.unit, 2.0 ** (-ages / half_life), rtol=1e-11)


@given(half_lives, st.lists(st.integers(0, 300), min_size=1, max_size=6))
def test_pieces_give_the_same_weights_to_the_last_bit(half_life, sizes):
    at_once, all_weights = weighed(half_life, [np.ones(sum(sizes))])
    in_pieces, weights = weighed(half_life, [np.ones(size) for size in sizes])
    assert in_pieces == at_once
    young = slice(-int(30 * half_life), None)  # the older ones have come to nothing
    np.testing.assert_array_equal(weights[young], all_weights[young])


def test_no_weight_overflows_however_long_the_stream():
    clock = Clock(1.0)
    for _ in range(100):
        clock, factor, weights = clock.after(np.ones(1000))
        assert 0.0 < factor <= 1.0
        assert weights.max() < 2.0**BLOCK


def test_what_weighs_nothing_makes_nothing_older():
    clock, _, weights = Clock(3.0).after(np.array([2.0, 0.0, 0.0, 2.0]))
    assert clock == Clock(3.0, n=2)
    assert weights[0] / weights[3] == pytest.approx(2.0 ** (-1 / 3))


@pytest.mark.parametrize("bad", [0, 0.5, -3, np.inf, np.nan, True, "10"])
def test_what_is_no_half_life_is_refused_with_its_value(bad):
    with pytest.raises(ValueError, match=f"half_life must be a number.*got {bad!r}"):
        check_half_life(bad)


@pytest.mark.parametrize("long", [1e308, 10**400])
def test_what_is_too_long_to_be_reckoned_with_is_refused(long):
    with pytest.raises(ValueError, match=r"half_life must be at most 1e\+18, or None"):
        check_half_life(long)


def test_a_clock_goes_on_from_its_state():
    clock = Clock(2.5).after(np.ones(1000))[0]
    assert clock_from_state(clock.state_dict()) == clock
    assert clock_from_state(None) is None is new_clock(None)
    with pytest.raises(ValueError, match="impossible"):
        clock_from_state({**clock.state_dict(), "shift": 0})
