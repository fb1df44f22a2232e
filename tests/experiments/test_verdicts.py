"""Every way of judging, fed with what satisfies it and with what does not."""

import numpy as np
import pytest

from onlinefw.experiments import verdicts

WHAT = {"id": "some-claim", "statement": "Something is so."}
T = np.arange(2, 200)
NAMES = ("O-FW", "O-PG")
#: Constants of three seeds, whose curves have one shape.
SEEDS = np.array([[1.0], [2.0], [3.0]])


def rate(h, **more):
    return verdicts.no_slower_than(T, h, lambda t: 1.0 / t, "1/t", **more, **WHAT)


def equivalent(ours, theirs):
    return verdicts.equivalent(ours, theirs, "error", margin=0.1, names=NAMES, **WHAT)


def over_seeds(ours, theirs):
    return verdicts.lower_over_seeds(ours, theirs, "error", names=NAMES, **WHAT)


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (rate(SEEDS / T), True),
        (rate(SEEDS / T**1.5), True),
        (rate(SEEDS / np.sqrt(T)), False),
        (rate(SEEDS * np.where(T < 50, 1.0, 50.0 / T), first=50), True),
        (rate(SEEDS * np.where(T < 50, 1.0, 50.0 / T)), False),
        (verdicts.decays(T, 1.0 / T**0.1, **WHAT), True),
        (verdicts.decays(T, np.full(T.size, 2.0), **WHAT), False),
        (verdicts.decays(T, T.astype(float), **WHAT), False),
        (verdicts.decays(T, SEEDS / T**0.1, **WHAT), True),
        (verdicts.decays(T, SEEDS * T, **WHAT), False),
        (verdicts.never_above([1.0, 2.0], [9.0, 3.0], worst=4.0, **WHAT), True),
        (verdicts.never_above([1.0, 3.1], [9.0, 3.0], worst=4.0, **WHAT), False),
        (equivalent([1.0, 1.1, 0.9], [1.01, 1.1, 0.9]), True),
        (equivalent([1.0, 1.1, 0.9], [1.5, 1.6, 1.4]), False),
        (over_seeds([1.0, 2.0, 3.0], [1.1, 2.2, 3.4]), True),
        (over_seeds([1.1, 2.2, 3.4], [1.0, 2.0, 3.0]), False),
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
    assert claim.verdict == ("holds" if holds else "fails")
    assert claim.holds is holds
    assert claim.predicted and claim.measured
    assert claim.id == "some-claim"


def test_the_level_of_a_race_is_the_best_that_both_reach():
    ours, theirs = ([1, 2, 3], [5.0, 2.0, 1.0]), ([1, 2, 3], [5.0, 4.0, 3.0])
    claim = verdicts.sooner(ours, theirs, "MSE", names=NAMES, **WHAT)
    assert "reaches MSE 3 sooner" in claim.predicted
    assert claim.measured == "3: O-FW 2 s, O-PG 3 s"


#: Of curves from 8 to a best value in equal steps, one a second, or slower.
def falling(best, seconds_a_step=1.0, steps=8):
    return np.arange(steps) * seconds_a_step, np.linspace(8.0, best, steps)


def race(ours, theirs, constant=6.0, **more):
    return verdicts.sooner(ours, theirs, "MSE", names=NAMES, constant=constant, **more, **WHAT)


def test_levels_are_below_the_constant_down_to_the_best_that_both_reach_and_all_are_shown():
    claim = race(falling(1.0), falling(0.5, 2.0))
    assert "reaches MSE 5 to 1 (the constant prediction has 6) sooner" in claim.predicted
    assert claim.measured == (
        "5: O-FW 3 s, O-PG 6 s; 4: O-FW 4 s, O-PG 8 s; 3: O-FW 5 s, O-PG 10 s; "
        "2: O-FW 6 s, O-PG 12 s; 1: O-FW 7 s, O-PG 14 s"
    )
    assert claim.verdict == "holds"
    assert race(falling(0.5, 2.0), falling(1.0)).verdict == "fails"


def test_if_one_alone_beats_the_constant_the_other_fails_to_reach_any_level():
    claim = race(falling(1.0), falling(7.0, 2.0))
    assert "MSE 5 to 1 " in claim.predicted
    assert claim.measured.endswith("1: O-FW 7 s, O-PG not; O-PG ends after 14 s with 7 at best")
    assert claim.verdict == "holds"
    assert race(falling(7.0, 2.0), falling(1.0)).verdict == "fails"
    # At the constant itself there is no race: the one that just reaches it does not beat it.
    assert race(falling(1.0), falling(6.0, 2.0)).verdict == "holds"


def test_a_run_that_ended_too_early_may_lose_but_does_not_let_the_other_win():
    assert race(falling(1.0), falling(7.0, 0.1)).verdict == "undecided"  # it ended after 0.7 s
    # In time at the first level, and nothing to say of the last ones.
    assert race(falling(1.0), falling(7.0, 0.5)).verdict == "undecided"


@pytest.mark.parametrize("best", [6.0, 7.0])
def test_nobody_wins_above_the_constant(best):
    claim = race(falling(best), falling(7.5))
    assert claim.verdict == "undecided"
    assert "O-FW ends after 7 s" in claim.measured
    assert race(falling(1.0), falling(1.0, 9.0), level=6.0).verdict == "undecided"


def test_a_race_that_is_won_at_some_levels_is_undecided_and_a_draw_with_losses_is_lost():
    fast_then_slow = [0.0, 0.1, 0.2, 0.3, 4.0, 90.0, 91.0, 92.0], np.linspace(8.0, 1.0, 8)
    assert race(fast_then_slow, falling(1.0)).verdict == "undecided"
    even_then_slow = [0.0, 1.0, 2.0, 3.0, 4.0, 90.0, 91.0, 92.0], np.linspace(8.0, 1.0, 8)
    assert race(even_then_slow, falling(1.0)).verdict == "fails"
    assert race(falling(1.0), falling(1.0)).verdict == "undecided"


@pytest.mark.parametrize(
    "claim",
    [
        rate(3.0 / T),  # one seed: no interval
        rate([1.0 / T**0.5, 9.0 / T**1.5, 1.0 / T]),  # seeds that disagree
        verdicts.decays(T, [1.0 / T, T / 40.0, 0.1 * T**0.0], **WHAT),
        equivalent(1.0, 1.0),
        equivalent([0.5, 1.5, 1.0], [1.0, 1.0, 1.0]),  # the same on average, but who knows
        over_seeds([1.0], [2.0]),
        over_seeds([1.0, 3.0, 1.0], [2.0, 2.0, 2.0]),
    ],
)
def test_what_the_seeds_cannot_tell_is_undecided(claim):
    assert claim.verdict == "undecided"
    assert not claim.holds
    assert claim.counts


def test_a_bound_that_no_feasible_theta_exceeds_is_uninformative():
    claim = verdicts.never_above([1.0, 2.0], [3.0, 5.0], worst=[3.0, 4.0], **WHAT)
    assert claim.verdict == "uninformative"
    assert not claim.holds
    assert not claim.counts


def test_a_bound_is_judged_only_where_a_feasible_theta_would_exceed_it():
    claim = verdicts.never_above([8.0, 1.0, 1.0], [9.0, 2.0, 4.0], worst=5.0, **WHAT)
    assert claim.verdict == "holds"
    assert "67% of the places" in claim.predicted
    assert claim.measured == "at most 0.5 times the bound there"


def test_a_bound_that_is_exceeded_fails_whatever_was_thought_to_be_the_worst():
    assert verdicts.never_above([2.0], [1.0], worst=0.5, **WHAT).verdict == "fails"


def test_a_slope_is_that_of_the_mean_over_seeds_and_its_interval_is_the_jackknife_s(rng):
    h = np.exp(0.1 * rng.standard_normal((5, T.size))) / T
    measured = verdicts.slopes(T, h)
    without = [verdicts.slopes(T, np.delete(h, k, 0).mean(axis=0)).slope for k in range(5)]
    assert measured.slope == pytest.approx(verdicts.slopes(T, h.mean(axis=0)).slope)
    assert measured.seeds == 5
    error = np.sqrt(4 / 5 * np.square(np.subtract(without, np.mean(without))).sum())
    # Student, 4 degrees of freedom
    assert measured.high - measured.slope == pytest.approx(2.776 * error, rel=1e-3)


def test_the_interval_of_a_slope_covers_the_truth_as_often_as_it_says(rng):
    covered = 0
    for _ in range(300):
        walks = np.cumsum(rng.standard_normal((10, 40)), axis=1)  # as correlated as one run is
        h = np.exp(0.05 * walks) / np.arange(10, 50)
        measured = verdicts.slopes(np.arange(10, 50), h)
        # the mean of log-normal walks rises by half of their variance a step
        expected = np.exp(0.5 * 0.05**2 * np.arange(1, 41)) / np.arange(10, 50)
        truth = verdicts.slopes(np.arange(10, 50), expected).slope
        covered += measured.low <= truth <= measured.high
    assert 0.9 <= covered / 300 <= 0.99


def test_logarithms_count_in_a_predicted_rate():
    h = SEEDS * np.log(T) ** 2 / T
    assert not rate(h).holds
    claim = verdicts.no_slower_than(T, h, lambda t: np.log(t) ** 2 / t, "log^2 t / t", **WHAT)
    assert claim.holds


def test_a_level_never_reached_takes_forever():
    assert verdicts.seconds_to(0.5, [1.0, 2.0], [3.0, 1.0]) == np.inf
