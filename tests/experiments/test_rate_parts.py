"""The smaller parts of Table 1: runs at a tiny size, verdicts both ways, and the exact pieces."""

from contextlib import nullcontext
from copy import deepcopy

import cvxpy as cp
import numpy as np
import pytest

from onlinefw.experiments import rates
from onlinefw.experiments.error_growth import (
    SHARPNESS,
    ErrorGrowth,
    coin_rows,
    largest_sigmoid_error,
    lasso_error_squared,
    matrix_errors,
    sigmoid_errors,
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
from onlinefw.losses import Sigmoid
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
    judged = [one for one in verdict if not one.endswith("-bound")]
    assert judged
    assert all(verdict[one] is expected for one in judged)


def bounds_of(part, records):
    """The verdicts on bounds; there is one for each row."""
    found = {c.id: c.verdict for c in part.claims(records) if c.id.endswith("-bound")}
    assert len(found) == len(part.rows) == 12
    return set(found.values())


def test_every_bound_is_listed_and_judged_where_it_says_something(parts):
    part, records = parts["inexact"]
    bounds_of(part, records)

    def late(value):
        """Records of bounds that say something at the end, where h_t is so much of them."""
        return edited(
            records,
            share=lambda r: [*[0.2] * (len(r["t"]) - 1), value],
            **{"worst share": lambda r: [*[0.5] * (len(r["t"]) - 1), 4.0]},
        )

    assert bounds_of(part, late(0.9)) == {"holds"}
    assert bounds_of(part, late(1.1)) == {"fails"}
    idle = edited(late(0.9), **{"worst share": lambda r: [1.0] * len(r["t"])})
    assert bounds_of(part, idle) == {"uninformative"}


def test_the_shares_of_a_bound_are_of_all_rounds_since_the_one_that_is_drawn(parts):
    part, records = parts["inexact"]
    for row in part.rows:
        record = records[f"{row.id}, seed 0"]
        h, bound = np.array(record["h"]), np.array(record["bound"])
        worst = row.problem(0).worst() / bound
        assert np.all(np.array(record["share"]) >= h / bound)
        assert np.all(np.array(record["worst share"]) >= worst * (1.0 - 1e-12))
        assert record["worst share"][-1] == pytest.approx(worst[-1])
        # Bounds never rise: no round before the next drawn one has a larger share than that.
        assert np.all(np.array(record["worst share"])[:-1] <= worst[1:] * (1.0 + 1e-12))


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
    papers_steps = "t1-slow-ofw-face--steps-2----t---1-"
    assert (fast[papers_steps], slow[papers_steps]) == (False, True)


def test_what_is_slow_is_a_claim_of_ours_and_each_rate_names_its_theorem(parts):
    sources = {claim.id: claim.source for claim in parts["slow"][0].claims(parts["slow"][1])}
    assert len(sources) == 7
    assert {sources[one] for one in sources if not one.endswith("-rate")} == {
        "ours; Table 1 has upper bounds only"
    }
    assert sources["t1-slow-oaw-face-rate"] == "Theorem 2 (appendix)"
    assert sources["t1-slow-oaw-face--mu---0-rate"] == "Appendix, without strong convexity"
    assert sources["t1-slow-ofw-flat-rate"] == "Slow bound (appendix)"


def test_growth_is_judged_by_the_fitted_number(parts):
    part, records = parts["growth"]
    steep = holds(part, edited(records, fitted=lambda _: 5.0))
    falling = holds(part, edited(records, fitted=lambda _: -0.5))
    for one, steep_holds in steep.items():
        assert steep_holds is one.endswith("-longer")
        assert falling[one] is not one.endswith("-longer")


@pytest.mark.parametrize("R", [1.0, 10.0, 30.0])
def test_of_the_families_only_poisson_has_no_bound_on_its_curvature(R):
    """A1, which the paper says all exponential families satisfy: G'' is 1, at most 1/4, exp(z)."""
    most = {family.id: family.most_curved(R) for family in FAMILIES}
    assert most == pytest.approx({"Gaussian": 1.0, "Bernoulli": 0.25, "Poisson": np.exp(R)})


def test_the_largest_curvature_is_in_a_table(parts):
    part, records = parts["families"]
    for row in part.extra(records)["curvature"]:
        near, far = row["largest G'' on [-R, R]"], row["largest G'' on [-2R, 2R]"]
        assert 0.0 < row["largest that theta_t met"] <= near * (1.0 + 1e-9)
        assert (far > 1.01 * near) is (row["observations"] == "Poisson")


def test_exponents_are_judged_by_their_whole_interval():
    t = np.arange(1, 60)
    h = [1.0 / t, 2.0 / t**1.01, 1.0 / t**1.02]
    named = {"id": "x", "statement": "x"}
    assert slower_than(t, h, -1.2, "why", **named).verdict == "holds"
    assert slower_than(t, h, -0.9, "why", **named).verdict == "fails"
    assert slower_than(t, h, -1.01, "why", **named).verdict == "undecided"
    assert slower_than(t, h[:1], -1.2, "why", **named).verdict == "undecided"  # no interval
    around = [1.0, 1.1, 0.9]
    assert between(around, 0.5, 1.5, "x", "why", **named).verdict == "holds"
    assert between(around, 1.5, 2.0, "x", "why", **named).verdict == "fails"
    assert between(around, 0.0, 0.5, "x", "why", **named).verdict == "fails"
    assert between([1.0, 1.4, 0.6], 0.5, 1.5, "x", "why", **named).verdict == "undecided"
    assert between([1.0], 0.5, 1.5, "x", "why", **named).verdict == "undecided"


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


def test_the_error_of_the_sigmoid_loss_is_its_mean_gradient_over_a_quarter_of_its_sharpness():
    rng = np.random.default_rng(0)
    X, y, theta = rng.choice([-1.0, 1.0], (50, 5)), rng.choice([-1.0, 1.0], 50), np.full(5, 0.1)
    found = sigmoid_errors(y[:, None] * X, theta[None])[0] * SHARPNESS / 4.0
    plain = X.T @ Sigmoid(SHARPNESS).derivative(X @ theta, y) / 50
    np.testing.assert_allclose(found[0], plain, rtol=1e-10)


def test_labels_by_coin_have_an_expected_gradient_of_zero():
    rows = coin_rows(1, 200_000, 3, np.random.default_rng(0))
    thetas = np.array([[0.0, 0.0, 0.0], [0.1, -0.2, 0.05], [0.9, 0.1, 0.0]])
    errors, _ = sigmoid_errors(rows[0], thetas)
    assert np.abs(errors).max() < 5.0 / np.sqrt(200_000)  # each entry is at most 1


@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_the_largest_error_of_the_disc(seed):
    """Two features, and all of the disc on a fine grid: none is larger, and almost none missed."""
    rows = coin_rows(1, 400, 2, np.random.default_rng(seed))
    radii, angles = np.linspace(0.0, 1.0, 100), np.linspace(0.0, 2.0 * np.pi, 180)
    grid = [[r * np.cos(a), r * np.sin(a)] for r in radii for a in angles]
    largest = np.abs(sigmoid_errors(rows[0], np.array(grid))[0]).max()
    found = largest_sigmoid_error(rows, np.random.default_rng(seed + 10)).item()
    assert 0.99 * largest <= found <= 1.01 * largest


def test_the_search_is_above_random_points_of_the_ball_in_every_draw(rng):
    rows = coin_rows(3, 400, 8, rng)
    points = rng.standard_normal((3, 2_000, 8))
    points *= rng.random((3, 2_000, 1)) / np.linalg.norm(points, axis=-1, keepdims=True)
    at_points = np.abs(sigmoid_errors(rows, points)[0]).max(axis=(1, 2))
    assert np.all(largest_sigmoid_error(rows, rng) > at_points)


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
