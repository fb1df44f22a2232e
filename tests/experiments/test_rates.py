"""Table 1: its runs end to end at a tiny size, its verdicts both ways, and the exact pieces."""

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from onlinefw.experiments import rates
from onlinefw.experiments.bounds import BITING, Bounds, against_the_gradient
from onlinefw.experiments.convex_problems import (
    all_seen,
    inexact_quadratic,
    least_squares,
    make_fixed_design,
    make_random_design,
    matrix_completion,
    worst_excess,
)
from onlinefw.experiments.convex_rates import ConvexRates
from onlinefw.experiments.convex_rows import QUOTED, SETTINGS
from onlinefw.experiments.expected_sigmoid import FlippedLabels
from onlinefw.experiments.matrix_rate import SHAPE, MatrixRate, Stream, dense_steps, minimiser
from onlinefw.experiments.nonconvex_rates import NonConvexRates
from onlinefw.experiments.propositions import Propositions
from onlinefw.experiments.rate_rows import log_over, power, root_log_over
from onlinefw.experiments.results import Results
from onlinefw.experiments.runner import run_experiment
from onlinefw.losses import Sigmoid
from onlinefw.plots.rates import draw
from onlinefw.sets import L1Ball, L2Ball, TraceNormBall

from .toy import stored

TINY = {
    "ofw-matrix": lambda seed, T: matrix_completion((6, 8), 2, 20, T, 1.1, seed)[0],
    "oaw-convex": lambda seed, T: least_squares(
        make_fixed_design(8, 20, sparsity=0.5, sigma=10.0, seed=seed), "O-AW", T, 0.15
    ),
}
TINY_ROWS = tuple(replace(row, make=TINY.get(row.id, row.make)) for row in SETTINGS)
TINY_BITING = tuple(replace(row, longer=1) for row in BITING)
MAKE = {
    "convex": lambda: ConvexRates(T=120, seeds=2, quick=True, settings=TINY_ROWS),
    "non-convex": lambda: NonConvexRates(T=100, seeds=2, quick=True, n=6, nonzeros=2, batch=3),
    "bounds": lambda: Bounds(T=120, seeds=2, quick=True, rows=TINY_BITING),
    "matrix": lambda: MatrixRate(T=60, seeds=2, quick=True),
    "propositions": lambda: Propositions(T=250, seeds=2, quick=True),
}


class Display:
    """Counts the runs that are really played."""

    def __init__(self):
        self.played = 0

    def __call__(self, experiment, run):
        self.played += 1
        return nullcontext(lambda done: None)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The results of every part, and where they are."""
    out = tmp_path_factory.mktemp("rates")
    return out, {name: run_experiment(make(), out, Display()) for name, make in MAKE.items()}


@pytest.fixture(scope="module")
def records():
    """A second run of every part, with its experiment."""
    parts = {name: make() for name, make in MAKE.items()}
    return {
        name: (part, {run.name: run.play(lambda done: None) for run in part.runs()})
        for name, part in parts.items()
    }


def holds(experiment, records):
    return {claim.id: claim.holds for claim in experiment.claims(records)}


def verdicts(experiment, records):
    return {claim.id: claim.verdict for claim in experiment.claims(records)}


# End to end --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKE)
def test_a_part_has_finite_curves_and_is_read_back_equal(name, played):
    out, results = played
    assert stored(out, "table1", name) == results[name]
    for series in results[name].series:
        assert series.dataset == name
        assert len(series.x) >= 10
        assert np.all(np.isfinite(series.y))
        assert min(series.y) > 0
    ids = [claim.id for claim in results[name].claims]
    assert len(ids) == len(set(ids))
    assert all(claim.source and claim.dataset == name for claim in results[name].claims)


@pytest.mark.parametrize("name", MAKE)
def test_two_runs_give_the_same_numbers(name, played, records):
    experiment, again = records[name]
    assert experiment.curves(again) == played[1][name].series
    judged = {c.id: c for c in played[1][name].claims if not c.id.startswith("t1-cost")}
    assert {c.id: c for c in experiment.claims(again) if not c.id.startswith("t1-cost")} == judged


@pytest.mark.parametrize("name", MAKE)
def test_a_finished_run_is_not_repeated(name, played):
    display = Display()
    assert run_experiment(MAKE[name](), played[0], display) == played[1][name]
    assert display.played == 0


@pytest.mark.slow
def test_a_folder_is_resumed_with_more_seeds_from_the_same_first_one(tmp_path):
    def part(seeds):
        return MatrixRate(T=20, seeds=seeds, quick=True)

    display = Display()
    run_experiment(part(range(100, 102)), tmp_path, display)
    a_seed, display.played = display.played // 2, 0
    results = run_experiment(part(range(100, 103)), tmp_path, display)
    assert display.played == a_seed
    assert (results.settings["seeds"], results.settings["seeds from"]) == (3, 100)
    run_experiment(part(range(2)), tmp_path, display)
    assert display.played == 3 * a_seed


@pytest.mark.slow
def test_the_table_draws_with_all_its_parts_and_with_one(played):
    parts = list(played[1].values())
    for results in (Results.merge(parts), *parts):
        figure = draw(results)
        titled = [axes.get_title() for axes in figure.axes if axes.get_title()]
        assert titled == list(dict.fromkeys(series.panel for series in results.series))


@pytest.mark.parametrize("name", rates.DATASETS)
def test_the_registry_makes_every_part(name):
    assert name in rates.usual_datasets()
    quick = rates.make(name, quick=True, seeds=None)
    full = rates.make(name, quick=False, seeds=7)
    assert (quick.dataset, quick.settings["quick"], quick.settings["seeds"]) == (name, True, 3)
    assert (full.settings["quick"], full.settings["seeds"]) == (False, 7)
    raised = name in ("convex", "non-convex", "inexact", "hybrid")
    assert (quick.settings["seeds from"], full.settings["seeds from"]) == (0, 100 * raised)
    assert full.seeds == range(100 * raised, 100 * raised + 7)
    assert quick.settings["T"] < full.settings["T"]
    assert len(full.runs()) == len({run.name for run in full.runs()})


def test_the_registry_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="propositions"):
        rates.make("concave", quick=True, seeds=None)


def test_the_table_has_measured_and_quoted_rows(played):
    extra = played[1]["convex"].extra
    rows = extra["table"]
    assert [row["status"] for row in rows] == ["measured"] * len(SETTINGS) + [
        "quoted; run in the part hybrid"
    ] * len(QUOTED)
    for row in rows[: len(SETTINGS)]:
        low, high = row["measured_anytime_interval"]
        assert low <= row["measured_anytime_slope"] <= high
        assert row["predicted_anytime_slope"] < 0
    assert set(extra["constants"]) == {row.id for row in SETTINGS}
    assert all(len(seeds) == 2 for seeds in extra["constants"].values())


# Verdicts both ways ------------------------------------------------------------------------------


def edited(records, **changes):
    """Copy the records with some values replaced by functions of the record."""
    records = deepcopy(records)
    for record in records.values():
        for key, change in changes.items():
            if key in record:
                record[key] = change(record)
    return records


def along(x, exponent):
    return lambda record: (np.array(record[x], dtype=float) ** -exponent).tolist()


# log^3 T / T rises until T = 20, so over few rounds only growth is slower.
@pytest.mark.parametrize(("exponent", "expected"), [(1.0, True), (-0.5, False)])
def test_convex_rates_are_judged_by_their_slope(exponent, expected, records):
    experiment, measured = records["convex"]
    values = along("t", exponent)
    verdict = holds(experiment, edited(measured, h=values, regret=values))
    for row in SETTINGS:
        assert verdict[f"t1-{row.id}-anytime"] is expected
        assert verdict[f"t1-{row.id}-regret"] is expected


def of_worst(share):
    """A bound that is this share of what the worst feasible theta has."""
    return lambda record: [share * record["constants"]["worst"]] * len(record["t"])


def test_convex_bounds_and_costs_are_judged(records):
    experiment, measured = records["convex"]
    bounded = {name: r for name, r in measured.items() if "bound" in r}
    edits = edited(bounded, bound=of_worst(0.5))
    tight = {**measured, **edits}
    good = holds(
        experiment,
        edited(tight, h=lambda r: [0.9 * b for b in r.get("bound", r["h"])],
               milliseconds=lambda _: [1.0] * 10),
    )  # fmt: skip
    bad = holds(
        experiment,
        edited(tight, h=lambda r: [1.1 * b for b in r.get("bound", r["h"])],
               milliseconds=lambda _: list(range(1, 11))),
    )  # fmt: skip
    ids = [name for name in good if name.endswith("-bound")]
    assert (
        len(ids) == len(SETTINGS) - 1
    )  # all rows but matrix completion, whose constant is not known
    loose = {**measured, **edited(bounded, bound=of_worst(1.0))}
    assert {verdicts(experiment, loose)[name] for name in ids} == {"uninformative"}
    ids += [f"t1-cost-{row.id}" for row in SETTINGS if row.cost]
    assert all(good[name] for name in ids)
    assert not any(bad[name] for name in ids)


def test_bounds_that_bite_are_judged(records):
    experiment, measured = records["bounds"]
    tight = edited(measured, bound=lambda r: [0.5 * w for w in r["worst"]])
    below = edited(tight, value=lambda r: r["bound"])
    assert set(verdicts(experiment, below).values()) == {"holds"}
    # What a learner has that never leaves the worst feasible theta.
    frozen = edited(tight, value=lambda r: r["worst"])
    assert set(verdicts(experiment, frozen).values()) == {"fails"}


@pytest.mark.parametrize(("exponent", "expected"), [(0.6, True), (0.05, False)])
def test_nonconvex_rates_are_judged_by_their_slope(exponent, expected, records):
    experiment, measured = records["non-convex"]
    falls = along("T", exponent)
    verdict = holds(experiment, edited(measured, gap=falls, stationarity=falls))
    rates_ = [name for name in verdict if "bound" not in name]
    assert len(rates_) == 8
    assert all(verdict[name] is expected for name in rates_)


def test_nonconvex_bounds_are_judged(records):
    experiment, measured = records["non-convex"]
    bounds = [name for name in holds(experiment, measured) if "bound" in name]
    assert len(bounds) == 4
    assert all(verdicts(experiment, measured)[name] == "uninformative" for name in bounds)
    above = holds(experiment, edited(measured, gap=lambda r: [2.0 * b for b in r["bound"]]))
    assert not any(above[name] for name in bounds)


@pytest.mark.parametrize(("exponent", "expected"), [(0.5, True), (0.05, False)])
def test_gradient_errors_are_judged_by_their_slope(exponent, expected, records):
    experiment, measured = records["propositions"]
    verdict = holds(experiment, edited(measured, error=along("t", exponent)))
    judged = [name for name in verdict if not name.endswith("-bound")]
    assert len(judged) == 4
    assert all(verdict[name] is expected for name in judged)


def test_gradient_bounds_are_judged(records):
    experiment, measured = records["propositions"]
    above = edited(measured, error=lambda r: [1.1 * b for b in r.get("bound", [1.0] * len(r["t"]))])
    below = edited(measured, error=lambda r: [0.9 * b for b in r.get("bound", [1.0] * len(r["t"]))])
    bounds = [name for name in holds(experiment, measured) if name.endswith("-bound")]
    assert len(bounds) == 2  # that of matrix completion has a constant that is not known
    # One round's gradient, without averaging, is above the bounds of late rounds.
    below, above = (
        edited(edit, single=lambda r: [2.0 * r["bound"][-1]] * len(r["t"]))
        for edit in (below, above)
    )
    assert all(holds(experiment, below)[name] for name in bounds)
    assert not any(holds(experiment, above)[name] for name in bounds)
    idle = edited(below, single=lambda r: [0.5 * r["bound"][-1]] * len(r["t"]))
    assert {verdicts(experiment, idle)[name] for name in bounds} == {"uninformative"}


@pytest.mark.parametrize(("exponent", "expected"), [(1.0, "holds"), (0.1, "fails")])
def test_the_long_run_of_matrix_completion_is_judged_by_its_slope(exponent, expected, records):
    experiment, measured = records["matrix"]
    verdict = verdicts(experiment, edited(measured, h=along("t", exponent)))
    assert verdict["t1-matrix-long"] == expected
    assert verdict["t1-matrix-shortcuts"] == "holds"


def test_shortcuts_that_change_h_are_seen(records):
    experiment, measured = records["matrix"]
    measured = edited(measured, h=along("t", 1.0))
    for name, record in measured.items():
        if name.startswith("defaults"):
            record["h"] = along("t", 0.7)(record)
    assert verdicts(experiment, measured)["t1-matrix-shortcuts"] == "fails"


# The exact pieces --------------------------------------------------------------------------------


LABELS = FlippedLabels.make(6, 3, flip=0.25, sharpness=10.0, seed=0)
POINTS = {
    "somewhere": np.array([0.3, -0.1, 0.2, 0.0, -0.3, 0.1]),
    "near the truth": 0.4 * LABELS.theta + 0.001,
    "along the truth": 0.3 * LABELS.theta,
    "against the truth": -0.3 * LABELS.theta,
    "zero": np.zeros(6),
}


@pytest.mark.parametrize("theta", POINTS.values(), ids=POINTS)
def test_the_expected_gradient_is_the_mean_over_a_large_sample(theta):
    loss, total, rows = Sigmoid(LABELS.sharpness), np.zeros((2, 6)), 0
    for X, y in replace(LABELS, seed=1).rounds(10, 50_000):
        each = X * loss.derivative(X @ theta, y)[:, None]
        total += np.array([each.sum(axis=0), np.square(each).sum(axis=0)])
        rows += y.size
    mean = total[0] / rows
    error = np.sqrt((total[1] / rows - mean**2) / rows)
    assert np.all(np.abs(LABELS.gradient(theta) - mean) <= 5.0 * error)


def expected_loss(theta):
    """f(theta) by adaptive quadrature over z = <theta, x> / ||theta||."""
    length = np.linalg.norm(theta)
    c = theta @ LABELS.theta / (length * np.linalg.norm(LABELS.theta))
    q = np.sqrt(max(1.0 - c**2, 0.0))

    def integrand(z):
        right = LABELS.flip + (1.0 - 2.0 * LABELS.flip) * stats.norm.cdf(c * z / q)  # y = +1
        wrong = expit(-LABELS.sharpness * length * z)
        return stats.norm.pdf(z) * (right * wrong + (1.0 - right) * (1.0 - wrong))

    return integrate.quad(integrand, -9, 9, points=[0.0], epsabs=1e-13, epsrel=1e-12, limit=200)[0]


@pytest.mark.parametrize("name", ["somewhere", "near the truth"])
def test_the_expected_gradient_is_that_of_the_expected_loss(name):
    theta, step = POINTS[name], 1e-4
    slopes = [
        (expected_loss(theta + step * e) - expected_loss(theta - step * e)) / (2.0 * step)
        for e in np.eye(6)
    ]
    np.testing.assert_allclose(LABELS.gradient(theta), slopes, atol=1e-5)


def test_the_expected_gradient_at_zero_is_known():
    truth = LABELS.theta / np.linalg.norm(LABELS.theta)
    known = -10 / 4 * 0.5 * np.sqrt(2 / np.pi) * truth
    np.testing.assert_allclose(LABELS.gradient(np.zeros(6)), known, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ["O-FW", "O-AW"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_error_of_the_inexact_gradient_has_exactly_its_norm(algorithm, seed):
    problem = inexact_quadratic(algorithm, 5, 0.3, seed)
    learner = problem.learner()
    exact = inexact_quadratic(algorithm, 5, 0.0, seed).learner().objective.fn
    for t in range(1, 6):
        error = learner.objective.fn(np.ones(5), t) - exact(np.ones(5), t)
        size = np.linalg.norm(error, 2 if algorithm == "O-FW" else np.inf)
        assert size == pytest.approx(0.3 / np.sqrt(t + 1))


def test_the_excess_is_least_where_the_constants_say():
    stream = make_fixed_design(12, 6, sparsity=0.5, sigma=1.0, seed=0)
    inside = least_squares(stream, "O-FW", 10, 1.1)
    assert inside.excess(stream.theta) == 0.0
    assert inside.constants["delta"] > 0.0
    boundary = least_squares(stream, "O-AW", 10, 0.5)
    assert boundary.constants["delta"] == 0.0
    shrunk = 0.5 * stream.theta
    assert boundary.excess(shrunk) > 0.0
    assert boundary.constants["mu"] > 0.0
    wide = least_squares(make_fixed_design(6, 12, sparsity=0.5, sigma=1.0, seed=0), "O-FW", 10, 0.5)
    assert wide.constants["mu"] == 0.0
    assert wide.constants["fast_bound"] == 0.0


def on_the_sphere(n, number, rng):
    points = rng.standard_normal((number, n))
    return points / np.linalg.norm(points, axis=1)[:, None]


@pytest.mark.parametrize("n", [2, 5])
def test_the_worst_feasible_theta_is_found_and_feasible(n, rng):
    root, target = rng.standard_normal((n, n)), rng.standard_normal(n)
    Q = root.T @ root
    corners = 1.5 * np.concatenate([np.eye(n), -np.eye(n)])
    for ball, points in (
        (L1Ball(1.5), corners),
        (L2Ball(1.5), 1.5 * on_the_sphere(n, 200_000, rng)),
    ):
        values = 0.5 * np.einsum("ij,jk,ik->i", points - target, Q, points - target)
        found = worst_excess(Q, target, ball)
        assert found == pytest.approx(values.max(), rel=0.05)
        assert found >= values.max() * 0.999


@pytest.mark.parametrize(
    ("algorithm", "rate"), [("O-FW", "fast"), ("O-FW", "slow"), ("O-AW", "fast")]
)
def test_the_error_against_the_gradient_has_its_norm_and_its_direction(algorithm, rate):
    noisy, exact = (
        against_the_gradient(algorithm, rate, (0.6, 0.3), sigma, 0).learner().objective.fn
        for sigma in (0.05, 0.0)
    )
    ord = 2 if (algorithm, rate) == ("O-FW", "fast") else np.inf
    theta = np.array([0.2, -0.1])
    for t in range(1, 5):
        error = noisy(theta, t) - exact(theta, t)
        assert np.linalg.norm(error, ord) == pytest.approx(0.05 / np.sqrt(t + 1))
        assert error @ exact(theta, t) < 0


def test_the_library_and_numpy_play_matrix_completion_alike(records):
    experiment, measured = records["matrix"]
    both, dense = (experiment.each(measured, name, "h") for name in ("both", "dense"))
    np.testing.assert_allclose(both, dense, rtol=1e-4)


def test_the_minimiser_of_the_past_is_the_best_of_the_ball(rng):
    stream = Stream.make(0)
    *_, (_, theta, counts, sums) = dense_steps(stream, 400)
    ball = TraceNormBall(stream.radius)
    best = minimiser(counts, sums, ball, np.zeros(SHAPE), steps=4000)

    def value(point):
        return 0.5 * np.sum(counts * point**2) - np.sum(sums * point)

    gradient = counts * best - sums
    gap = np.sum(gradient * best) + stream.radius * np.linalg.norm(gradient, 2)
    assert np.linalg.norm(best, "nuc") <= stream.radius * (1 + 1e-9)
    assert 0 <= gap < 1e-3 * (value(theta) - value(best))


def test_random_designs_keep_their_almost_sure_constants():
    stream = make_random_design(3, 5, sparsity=0.5, sigma=1.0, seed=0)
    for A, _ in stream.rounds(20):
        assert np.abs(A).max() <= stream.B2
        assert np.abs(A.T @ A - stream.gram).max() <= stream.B1


def test_matrix_completion_knows_when_every_entry_has_been_seen():
    problem, data = matrix_completion((4, 5), 1, 10, 40, 1.1, seed=0)
    first = all_seen(data)
    where = data.rows.astype(int) * 5 + data.cols
    assert np.unique(where[:first]).size == 20
    assert np.unique(where[: first - 1]).size == 19
    assert problem.steady_from == -(-first // 10)
    with pytest.raises(ValueError, match="never seen"):
        matrix_completion((4, 5), 1, 1, 10, 1.1, seed=0)


def test_shapes_know_their_slope_and_pass_through_a_point():
    t = np.geomspace(100, 1e6, 30)
    assert power(0.25).slope(t) == pytest.approx(-0.25)
    assert log_over(0).slope(t) == pytest.approx(-1.0)
    assert -1.0 < log_over(1).slope(t) < log_over(2).slope(t) < root_log_over(2).slope(t)
    assert root_log_over(2, "T").name == "sqrt(log^2 T / T)"
    assert log_over(1).through(t, 7.0)[0] == pytest.approx(7.0)
