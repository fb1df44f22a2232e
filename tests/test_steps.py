"""Step rules."""

from itertools import pairwise

import pytest

from onlinefw.steps import Harmonic, LogHarmonic, Power, ShortStep


def test_harmonic_is_the_papers_rule():
    assert [Harmonic(2)(t) for t in (1, 2, 3)] == [2 / 2, 2 / 3, 2 / 4]
    assert [Harmonic(1)(t) for t in (1, 2, 4)] == [1, 1 / 2, 1 / 4]


def test_power_is_the_nonconvex_rule():
    assert [Power(0.75)(t) for t in (1, 16)] == [1.0, 16**-0.75]


def test_log_harmonic_starts_below_one_and_decreases():
    steps = [LogHarmonic()(t) for t in range(1, 100)]
    assert steps[0] == pytest.approx(0.72919, abs=1e-4)
    assert all(a > b for a, b in pairwise(steps))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Harmonic(0),
        lambda: Power(0.4),
        lambda: Power(1.1),
        lambda: ShortStep(0.0),
        lambda: Harmonic(float("nan")),
    ],
)
def test_parameters_out_of_range_are_refused(make):
    with pytest.raises(ValueError, match="needs"):
        make()
