"""Numbers with their nouns, and what a certificate says."""

import pytest

from onlinefw._words import (
    counted,
    gap_in_words,
    gap_share,
    is_informative,
    mood_in_words,
    printable,
)


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


@pytest.mark.parametrize(
    ("gap", "loss", "informative", "share"),
    [
        (0.05, 0.5, True, "10%"),
        (0.0005, 0.5, True, "0.1%"),
        (0.5, 0.5, False, "uninformative"),  # 0 is as good a bound
        (6.17, 0.5, False, "uninformative"),
        (float("inf"), 0.5, False, "uninformative"),
        (0.1, 0.0, None, "unknown"),  # nothing is better than 0, whatever the gap
        (0.1, float("nan"), None, "unknown"),
        (0.1, None, None, "unknown"),
        (float("nan"), 0.5, None, "unknown"),
    ],
)
def test_a_certificate_above_the_loss_is_called_uninformative(gap, loss, informative, share):
    assert is_informative(gap, loss) is informative
    assert gap_share(gap, loss) == share
    said = gap_in_words(gap, True, loss)
    assert ("uninformative" in said) is (informative is False)
    assert ("%" in said) is (informative is True)
    if informative is False:
        assert "The model may still be good" in said


@pytest.mark.parametrize(("gain", "said"), [(0.03, "helps here"), (0.001, "hardly matters here")])
def test_a_mood_is_said_to_help_or_not(gain, said):
    assert f"That {said}: it explains {100 * gain:.2g}% of the variance" in mood_in_words(
        0.5, 0.1, gain
    )
