"""Cells of files as values."""

import numpy as np
import pytest

from onlinefw.readers.cells import labels


def as_objects(texts):
    out = np.empty(len(texts), dtype=object)
    out[:] = texts
    return out


def test_labels_that_are_whole_numbers_become_integers():
    assert labels(as_objects(["1", "1.0", "-1", "2e0"])).tolist() == [1, 1, -1, 2]


@pytest.mark.parametrize("label", ["0.5", "spam", "1e20", "9007199254740993.0"])
def test_other_labels_and_those_too_large_to_be_exact_stay_text(label):
    assert labels(as_objects(["1", label])).tolist() == ["1", label]


def test_integers_of_up_to_18_digits_are_exact():
    assert labels(as_objects(["1", "9007199254740993"])).tolist() == [1, 9007199254740993]
