"""Every way of judging, fed with what satisfies it and with what does not."""

import numpy as np
import pytest

from onlinefw.experiments import verdicts

WHAT = {"id": "some-claim", "statement": "Something is so."}
T = np.arange(2, 200)
NAMES = ("O-FW", "O-PG")


def rate(h, **more):
    return verdicts.no_slower_than(T, h, lambda t: 1.0 / t, "1/t", **more, **WHAT)


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (rate(3.0 / T), True),
        (rate(3.0 / T**1.5), True),
        (rate(3.0 / np.sqrt(T)), False),
        (rate([1.0 / T, 2.0 / T**0.5, 2.0 / T**0.5]), False),
        (rate([1.0 / T**5, T * 1.0]), False),  # steep on average, but seeds disagree
        (rate(np.where(T < 50, 1.0, 50.0 / T), first=50), True),
        (rate(np.where(T < 50, 1.0, 50.0 / T)), False),
        (verdicts.decays(T, 1.0 / T**0.1, **WHAT), True),
        (verdicts.decays(T, np.full(T.size, 2.0), **WHAT), False),
        (verdicts.decays(T, T.astype(float), **WHAT), False),
        (verdicts.never_above([1.0, 2.0], [1.0, 3.0], **WHAT), True),
        (verdicts.never_above([1.0, 3.1], [1.0, 3.0], **WHAT), False),
        (verdicts.lower(1.0, 2.0, "error", names=NAMES, **WHAT), True),
        (verdicts.lower(2.0, 2.0, "error", names=NAMES, **WHAT), False),
        (verdicts.close(1.0, 2.0, "error", within=1.0, names=NAMES, **WHAT), True),
        (verdicts.close(1.0, 2.1, "error", within=1.0, names=NAMES, **WHAT), False),
        (verdicts.at_most(1.0, 1.0, "error", **WHAT), True),
        (verdicts.at_most(1.1, 1.0, "error", **WHAT), False),
        (verdicts.flat([9.0, 1.0, 1.0, 1.4], **WHAT), True),
        (verdicts.flat([9.0, 1.0, 1.0, 1.6], **WHAT), False),
        (verdicts.sooner(([1, 2], [5, 1]), ([1, 3], [5, 1]), "MSE", names=NAMES, **WHAT), True),
        (verdicts.sooner(([1, 3], [5, 1]), ([1, 2], [5, 1]), "MSE", names=NAMES, **WHAT), False),
        (
            verdicts.sooner(
                ([1, 3], [5, 1]), ([1, 2], [5, 1]), "MSE", names=NAMES, within=2.0, **WHAT
            ),
            True,
        ),
    ],
)
def test_a_claim_holds_exactly_where_its_criterion_is_met(claim, holds):
    assert claim.holds is holds
    assert claim.predicted and claim.measured
    assert claim.id == "some-claim"


def test_the_level_of_a_race_is_the_best_that_both_reach():
    ours, theirs = ([1, 2, 3], [5.0, 2.0, 1.0]), ([1, 2, 3], [5.0, 4.0, 3.0])
    claim = verdicts.sooner(ours, theirs, "MSE", names=NAMES, **WHAT)
    assert "reaches MSE 3 sooner" in claim.predicted
    assert claim.measured == "O-FW in 2 s, O-PG in 3 s"


def test_the_interval_of_a_slope_is_over_seeds_if_there_are_several(rng):
    h = np.exp(0.1 * rng.standard_normal((5, T.size))) / T
    measured = verdicts.slopes(T, h)
    one_by_one = [verdicts.slopes(T, row).slope for row in h]
    assert measured.slope == pytest.approx(np.mean(one_by_one))
    assert measured.seeds == 5
    half = 2.776 * np.std(one_by_one, ddof=1) / np.sqrt(5)  # Student, 4 degrees of freedom
    assert measured.high - measured.slope == pytest.approx(half, rel=1e-3)


def test_logarithms_count_in_a_predicted_rate():
    h = np.log(T) ** 2 / T
    assert not rate(h).holds
    claim = verdicts.no_slower_than(T, h, lambda t: np.log(t) ** 2 / t, "log^2 t / t", **WHAT)
    assert claim.holds


def test_a_level_never_reached_takes_forever():
    assert verdicts.seconds_to(0.5, [1.0, 2.0], [3.0, 1.0]) == np.inf
