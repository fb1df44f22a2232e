"""Numbers with their nouns."""

import pytest

from onlinefw._words import counted, printable


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


def test_what_would_steer_a_terminal_is_escaped():
    shown = printable("a\x1b[2Jb\x07\u202ec\x9bd\x7f é 漢 😀\n\t.")
    assert shown == "a\\x1b[2Jb\\x07\\u202ec\\x9bd\\x7f é 漢 😀\n\t."
