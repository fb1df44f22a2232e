"""Random generators as plain values: a state that was tampered with never reaches numpy."""

import numpy as np
import pytest

from onlinefw._randomness import FIELDS, generator_from_state, generator_state


@pytest.mark.parametrize("name", FIELDS)
def test_a_generator_goes_on_where_it_stopped(name):
    rng = np.random.Generator(getattr(np.random, name)(7))
    rng.integers(10, size=13, dtype=np.int32)
    again = generator_from_state(generator_state(rng))
    np.testing.assert_array_equal(again.random(2000), rng.random(2000))
    np.testing.assert_array_equal(again.integers(9, size=5), rng.integers(9, size=5))


def leaves(values, path=()):
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        elif name != "bit_generator":
            yield (*path, name)


def with_leaf(values, path, leaf):
    first, *rest = path
    return {**values, first: with_leaf(values[first], rest, leaf) if rest else leaf}


FORGED = [-1, 2**130, 1.5, "4", None, True, [1], {}, np.zeros(3, np.uint64)]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_a_forged_field_is_refused(name, forged):
    state = generator_state(np.random.Generator(getattr(np.random, name)(7)))
    for path in leaves(state):
        with pytest.raises((ValueError, TypeError, LookupError)):
            generator_from_state(with_leaf(state, path, forged))


@pytest.mark.parametrize(
    ("name", "path"), [("MT19937", ("state", "pos")), ("Philox", ("buffer_pos",))], ids=str
)
def test_a_position_beyond_the_buffer_is_refused(name, path):
    state = generator_state(np.random.Generator(getattr(np.random, name)(7)))
    with pytest.raises(ValueError, match=f"{path[-1]} of a {name} is 100000000"):
        generator_from_state(with_leaf(state, path, 10**8))
