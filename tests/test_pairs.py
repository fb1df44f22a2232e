"""The combinations that tests are run with."""

from itertools import combinations, product

from .pairs import every_pair


def test_any_two_values_of_two_axes_meet():
    axes = ["ab", [1, 2, 3], (True, False), "xyz"]
    found = every_pair(*axes)
    for (i, one), (j, other) in combinations(enumerate(axes), 2):
        assert {(row[i], row[j]) for row in found} == set(product(one, other))
    assert len(found) <= 12  # of 36


def test_two_axes_have_all_their_combinations():
    assert set(every_pair("ab", "xyz")) == set(product("ab", "xyz"))
