"""The smaller parts of Table 1: runs at a tiny size, verdicts both ways, and the exact pieces."""

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from onlinefw.experiments import rates
from onlinefw.experiments.error_growth import (
    SHARPNESS,
    ErrorGrowth,
    flipped_labels,
    lasso_error_squared,
    matrix_errors,
    sigmoid_error,
)
from onlinefw.experiments.exponents import between, slower_than
from onlinefw.experiments.hybrid_rates import HybridRates
from onlinefw.experiments.inexact_gradients import InexactGradients
from onlinefw.experiments.known_optimum import inside, on_a_face, on_a_flat_face
from onlinefw.experiments.lemma import Lemma
from onlinefw.experiments.observation_families import FAMILIES, ObservationFamilies
from onlinefw.experiments.rate_parts import PARTS
from onlinefw.experiments.results import Results
from onlinefw.experiments.runner import run_experiment
from onlinefw.experiments.slow_instances import SlowInstances
from onlinefw.plots.rates import draw

from .toy import stored

MAKE = {
    "growth": lambda: ErrorGrowth(T=1, seeds=2, quick=True),
    "lemma": lambda: Lemma(T=60, seeds=2, quick=True),
    "inexact": lambda: InexactGradients(T=100, seeds=2, quick=True),
    "slow": lambda: SlowInstances(T=100, seeds=2, quick=True),
    "hybrid": lambda: HybridRates(T=100, seeds=2, quick=True),
    "families": lambda: ObservationFamilies(T=60, seeds=2, quick=True),
}


def silent(experiment, run):
    return nullcontext(lambda done: None)


@pytest.fixture(scope="module")
def parts():
    """Every part with its records."""
    made = {name: make() for name, make in MAKE.items()}
    return {
        name: (part, {run.name: run.play(lambda done: None) for run in part.runs()})
        for name, part in made.items()
    }


def holds(part, records):
    return {claim.id: claim.holds for claim in part.claims(records)}


def edited(records, **changes):
    """Copy the records with some values replaced by functions of the record."""
    records = deepcopy(records)
    for record in records.values():
        for key, change in changes.items():
            if key in record:
                record[key] = change(record)
    return records


def along(exponent):
    return lambda record: (np.array(record["t"], dtype=float) ** -exponent).tolist()


# End to end --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKE)
def test_a_part_is_written_and_read_back_equal(name, tmp_path):
    results = run_experiment(MAKE[name](), tmp_path, silent)
    assert stored(tmp_path, "table1", name) == results
    assert all(min(series.y) > 0 for series in results.series)
    ids = [claim.id for claim in results.claims]
    assert len(ids) == len(set(ids)) > 0
    assert all(claim.source and claim.dataset == name for claim in results.claims)


def test_the_parts_are_those_of_the_table():
    assert set(MAKE) == set(PARTS) < set(rates.DATASETS)


@pytest.mark.slow
def test_the_parts_draw(parts):
    merged = Results.merge([part.results(records, 1.0) for part, records in parts.values()])
    panels = [axes.get_title() for axes in draw(merged).axes if axes.get_title()]
    assert panels == list(dict.fromkeys(series.panel for series in merged.series))


# Verdicts both ways ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["inexact", "hybrid", "families"])
@pytest.mark.parametrize(("exponent", "expected"), [(2.1, True), (-0.5, False)])
def test_rates_are_judged_by_their_slope(name, exponent, expected, parts):
    part, records = parts[name]
    values = along(exponent)
    verdict = holds(part, edited(records, h=values, regret=values))
    judged = [one for one in verdict if not one.endswith(("-bound", "-a1"))]
    assert judged
    assert all(verdict[one] is expected for one in judged)


def test_bounds_are_judged_only_where_they_say_something(parts):
    part, records = parts["inexact"]
    bounds = [
        one for one in holds(part, edited(records, bites=lambda _: 5)) if one.endswith("-bound")
    ]
    assert len(bounds) == 12
    good = holds(part, edited(records, bites=lambda _: 5, share=lambda _: 0.9))
    bad = holds(part, edited(records, bites=lambda _: 5, share=lambda _: 1.1))
    assert all(good[one] for one in bounds)
    assert not any(bad[one] for one in bounds)
    none = holds(part, edited(records, bites=lambda _: 0))
    assert not any(one.endswith("-bound") for one in none)


def test_the_lemma_is_judged_by_the_worst_round(parts):
    part, records = parts["lemma"]
    assert all(holds(part, records).values())
    assert not any(holds(part, edited(records, smallest=lambda _: 0.99)).values())


def test_slow_is_slow_and_fast_is_fast(parts):
    part, records = parts["slow"]
    fast, slow = (holds(part, edited(records, h=along(e))) for e in (1.8, 0.55))
    for one in ("face", "face--mu---0"):
        assert (fast[f"t1-slow-ofw-{one}"], slow[f"t1-slow-ofw-{one}"]) == (False, True)
        assert (fast[f"t1-slow-oaw-{one}-rate"], slow[f"t1-slow-oaw-{one}-rate"]) == (True, False)
    assert (fast["t1-slow-ofw-flat"], slow["t1-slow-ofw-flat"]) == (False, True)


def test_growth_is_judged_by_the_fitted_number(parts):
    part, records = parts["growth"]
    steep = holds(part, edited(records, fitted=lambda _: 5.0))
    falling = holds(part, edited(records, fitted=lambda _: -0.5))
    for one, steep_holds in steep.items():
        assert steep_holds is one.endswith("-longer")
        assert falling[one] is not one.endswith("-longer")


def test_the_remark_on_exponential_families_is_judged(parts):
    part, records = parts["families"]
    verdict = holds(part, records)
    assert verdict["t1-families-gaussian-a1"]
    assert verdict["t1-families-bernoulli-a1"]
    assert not verdict["t1-families-poisson-a1"]


def test_exponents_need_their_whole_interval():
    t = np.arange(1, 60)
    h = [1.0 / t, 2.0 / t**1.02]
    named = {"id": "x", "statement": "x"}
    assert slower_than(t, h, -1.2, "why", **named).holds
    assert not slower_than(t, h, -0.9, "why", **named).holds
    assert not slower_than(t, h[:1], -1.2, "why", **named).holds  # one seed has no interval
    assert between([1.0, 1.1, 0.9], 0.5, 1.5, "x", "why", **named).holds
    assert not between([1.0, 1.4, 0.6], 0.5, 1.5, "x", "why", **named).holds


# The exact pieces --------------------------------------------------------------------------------


PROBLEMS = {
    "inside l2": lambda seed: inside(6, 0.3, seed),
    "inside l1": lambda seed: inside(6, 0.1, seed, ball="l1"),
    "face": lambda seed: on_a_face(6, 3, 0.2, seed),
    "flat face": lambda seed: on_a_flat_face(8, 5, 2, 0.2, seed),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_known_minimiser_is_one(name, seed):
    problem = PROBLEMS[name](seed)
    n = problem.star.size
    assert problem.constraint.contains(problem.star)
    assert problem.excess(problem.star) == 0.0
    x = cp.Variable(n)
    d = x - problem.star
    value = problem.slope @ d + 0.5 * cp.quad_form(d, cp.psd_wrap(problem.Q))
    norm = cp.norm1(x) if problem.constraint.is_polytope else cp.norm2(x)
    assert cp.Problem(cp.Minimize(value), [norm <= 1.0]).solve() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_delta_is_the_distance_from_the_boundary(seed):
    for ball, order in (("l2", 2), ("l1", 1)):
        problem = inside(6, 0.1, seed, ball)
        signs = np.sign(problem.star) / np.sqrt(6)  # the l1 ball's nearest facet
        outwards = problem.star / np.linalg.norm(problem.star) if ball == "l2" else signs
        assert np.linalg.norm(problem.star + 0.1 * outwards, order) == pytest.approx(1.0)


@pytest.mark.parametrize(("alpha", "K"), [(0.25, 2), (0.75, 1), (1.0, 4)])
@pytest.mark.parametrize("algorithm", ["O-FW", "O-AW"])
def test_the_error_has_exactly_its_norm(algorithm, alpha, K):
    problem = inside(5, 0.3, 0) if algorithm == "O-FW" else on_a_face(5, 2, 0.2, 0)
    fn = problem.learner(algorithm, 0.3, alpha, K, seed=0).objective.fn
    for t in range(1, 6):
        error = fn(np.ones(5), t) - problem.gradient(np.ones(5))
        size = np.linalg.norm(error, 2 if algorithm == "O-FW" else np.inf)
        assert size == pytest.approx(0.3 / (K + t - 1) ** alpha)


def test_the_error_of_lasso_is_largest_at_a_vertex():
    """The same draws, and theta all over the ball: none is above, a vertex attains it."""
    n, t = 4, 400
    largest = lasso_error_squared(n, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    A = 2.0 * rng.integers(2, size=(t, n)) - 1.0
    star = np.array([0.5, 0.5, 0.0, 0.0])
    y = A @ star + rng.standard_normal(t)
    points = [*np.eye(n), *-np.eye(n), *rng.dirichlet(np.ones(n), 200)]
    errors = [np.abs(A.T @ (A @ p - y) / t - (p - star)).max() for p in points]
    assert (max(errors) / 3.0) ** 2 * t == pytest.approx(largest)


def test_the_error_of_the_sigmoid_loss_is_the_distance_to_the_mean_of_many_more_rows():
    n, t = 6, 400
    largest = sigmoid_error(n, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    labels = flipped_labels(n, rng)
    ((X, y),) = labels.rounds(1, t)
    points = rng.dirichlet(np.ones(n), 100) * rng.choice([-1.0, 1.0], (100, n))
    points = np.vstack([points, np.eye(n), -np.eye(n)])
    ((more, of_more),) = replace(labels, seed=labels.seed + 1).rounds(1, 100_000)

    def gradients(X, y):
        growth = np.exp(-np.abs(SHARPNESS * (X @ points.T)))  # p (1 - p), even in its argument
        return X.T @ (-SHARPNESS * y[:, None] * growth / (1.0 + growth) ** 2) / len(y)

    assert np.abs(gradients(X, y) - gradients(more, of_more)).max() == pytest.approx(
        largest, abs=0.03
    )


def test_the_noise_of_completion_has_its_order():
    noise, uneven = matrix_errors((30, 30), np.random.default_rng(0))
    # The norm of a matrix of independent entries: (sqrt(m1) + sqrt(m2)) times their deviation
    expected = 2.0 * np.sqrt(30) / np.sqrt(40_000 * 900)
    assert noise == pytest.approx(expected, rel=0.1)
    assert uneven == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
def test_the_excess_is_that_of_a_large_sample(family):
    rng = np.random.default_rng(0)
    truth, z = np.array([0.5, -0.8]), np.array([0.2, 0.6])
    y = family.draw(np.tile(truth, (200_000, 1)), rng)
    each = family.loss.value(z, y) - family.loss.value(truth, y)
    error = np.sqrt(each.var(axis=0).sum() / len(y)) / 2
    assert family.excess(z, truth) == pytest.approx(each.mean(), abs=5 * error)
    assert family.excess(truth, truth) == pytest.approx(0.0, abs=1e-15)
