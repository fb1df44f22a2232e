"""Combinations for parametrised tests: every pair of values, not the whole product."""

from itertools import combinations, product

__all__ = ["every_pair"]


def every_pair(*axes):
    """Return few combinations in which any two values of two axes meet.

    Three axes of 4 values have 64 combinations and 16 that do this: what goes wrong depends on one
    value, or on two that meet.
    """
    choices = list(product(*(range(len(axis)) for axis in axes)))
    met = {choice: {*combinations(enumerate(choice), 2)} for choice in choices}
    left, chosen = set().union(*met.values()), []
    while left:
        chosen.append(max(choices, key=lambda choice: len(met[choice] & left)))
        left -= met[chosen[-1]]
    return [tuple(axis[k] for axis, k in zip(axes, choice, strict=True)) for choice in chosen]
