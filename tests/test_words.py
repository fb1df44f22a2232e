"""Numbers with their nouns."""

import pytest

from onlinefw._words import counted


@pytest.mark.parametrize(
    ("n", "noun", "text"),
    [
        (0, "row", "0 rows"),
        (1, "user", "1 user"),
        (2, "item", "2 items"),
        (1_234_567, "rating", "1,234,567 ratings"),
    ],
)
def test_one_is_singular(n, noun, text):
    assert counted(n, noun) == text
