"""Figure 1 at a tiny size: from runs to curves, verdicts and a picture."""

import copy
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from onlinefw.baselines import batch_frank_wolfe
from onlinefw.datasets import Ratings, make_matrix_completion
from onlinefw.experiments import matrix_completion, matrix_players
from onlinefw.experiments.matrix_completion import MatrixCompletion, Plan
from onlinefw.experiments.matrix_problems import synthetic_problem
from onlinefw.experiments.results import Results, plain
from onlinefw.experiments.runner import run_experiment
from onlinefw.iterates import LowRank
from onlinefw.objectives import ObservedEntries
from onlinefw.plots.matrix_completion import draw
from onlinefw.sets import TraceNormBall

from .toy import stored

SHORT = Plan(rounds=40, batch=20, radius=300.0, batch_steps=15, alt_iterations=3)
PLANS = {
    "synthetic": replace(SHORT, rounds=120, radius=None, opg_rounds=40, shape=(10, 60), rank=2),
    "movielens100k": replace(SHORT, rounds=30, opg_rounds=20, shape=(30, 40)),
    "movielens1m": SHORT,
    "generated20m": replace(SHORT, shape=(60, 40), n_test=100),
}


@pytest.fixture(autouse=True)
def _made_up_ratings(monkeypatch):
    rng = np.random.default_rng(0)
    places = rng.permutation(50 * 60)[:2000]
    stars = rng.integers(1, 6, 2000)
    ratings = Ratings.from_ids(places // 60 + 1, places % 60 + 1, stars)
    monkeypatch.setattr(matrix_completion, "fetch_movielens", lambda name: ratings)


def quiet(experiment, run):
    return nullcontext(lambda t: None)


def played(dataset, out, **kwargs):
    experiment = MatrixCompletion(dataset, PLANS[dataset], quick=True, **kwargs)
    return experiment, run_experiment(experiment, out, quiet)


@pytest.fixture(scope="module")
def synthetic_records():
    experiment = MatrixCompletion("synthetic", PLANS["synthetic"], seeds=2)
    return {run.name: plain(run.play(lambda t: None)) for run in experiment.runs()}


@pytest.mark.parametrize("dataset", PLANS)
def test_from_runs_to_results(dataset, tmp_path):
    _, results = played(dataset, tmp_path)
    assert stored(tmp_path, "fig1", dataset) == results
    assert results.settings["quick"]
    plan = PLANS[dataset]
    labels = {panel: [s.label for s in results.series if s.panel == panel] for panel in
              ("rounds", "seconds")}  # fmt: skip
    online = ["O-FW", "O-PG"] if plan.opg_rounds else ["O-FW"]
    assert labels["rounds"] == [*online, "duality gap"]
    assert labels["seconds"] == [*online, "batch FW", "active ALT", "duality gap"]
    for series in results.series:
        assert series.dataset == dataset
        assert np.all(np.diff(series.x) > 0)
        assert np.isfinite(series.y).all()
    by_round = [s for s in results.series if (s.panel, s.label) == ("rounds", "O-FW")]
    assert by_round[0].x[-1] == plan.rounds
    ids = [claim.id for claim in results.claims]
    assert len(set(ids)) == len(ids)
    assert all(claim.dataset == dataset for claim in results.claims)


def test_two_runs_give_the_same_numbers_and_a_finished_one_is_not_repeated(tmp_path, monkeypatch):
    _, first = played("synthetic", tmp_path / "a", seeds=2)
    _, second = played("synthetic", tmp_path / "b", seeds=2)
    for one, other in zip(first.series, second.series, strict=True):
        assert one.y == other.y
        if one.x_name == "round":
            assert one.x == other.x
    monkeypatch.setattr(MatrixCompletion, "problem", lambda self, seed: pytest.fail("loaded"))
    _, again = played("synthetic", tmp_path / "a", seeds=2)
    assert again == first


def test_other_settings_are_played_anew(tmp_path):
    played("synthetic", tmp_path)
    names = []

    def display(experiment, run):
        names.append(run.name)
        return nullcontext(lambda t: None)

    other = replace(PLANS["synthetic"], rounds=60)
    run_experiment(MatrixCompletion("synthetic", other, quick=True), tmp_path, display)
    assert names == ["O-FW", "O-PG", "batch FW", "active ALT"]


def test_the_excess_is_that_of_the_stochastic_objective():
    problem = synthetic_problem((10, 60), rank=2, n=100, factor=1.1, seed=0)
    data = make_matrix_completion((10, 60), 2, 100, seed=0)
    truth = LowRank.from_factors(data.left, np.ones(2), data.right)
    assert problem.measure(truth) == pytest.approx(0.0, abs=1e-20)
    assert problem.measure(LowRank((10, 60))) == pytest.approx(np.mean(truth.dense() ** 2) / 2)


def test_delta_is_the_way_to_the_boundary():
    problem = synthetic_problem((10, 60), rank=2, n=100, factor=1.1, seed=0)
    data = make_matrix_completion((10, 60), 2, 100, seed=0)
    u, s, vt = np.linalg.svd(data.left @ data.right.T, full_matrices=False)
    outside = (u * (s + problem.delta / np.sqrt(10))) @ vt
    assert np.linalg.norm(outside, "nuc") == pytest.approx(problem.radius)
    assert np.linalg.norm(outside - data.left @ data.right.T) == pytest.approx(problem.delta)


def test_batch_frank_wolfe_is_the_baseline_of_that_name():
    problem = synthetic_problem((10, 60), rank=2, n=500, factor=1.1, seed=0)
    ours = matrix_players.BatchFrankWolfe(problem.shape, problem.radius)
    ours.observe(problem.X, problem.y)
    for _ in range(9):
        ours.observe(None, None)
    objective = ObservedEntries(problem.shape)
    objective.observe(problem.X, problem.y)
    ball = TraceNormBall(problem.radius)
    theirs = batch_frank_wolfe(objective, ball, max_iter=10, tol=0.0)
    np.testing.assert_allclose(ours.theta.dense(), theirs.theta.dense(), atol=1e-5)


def test_training_and_test_ratings_are_apart():
    experiment = MatrixCompletion("movielens1m", PLANS["movielens1m"])
    problem = experiment.problem(0)
    assert len(problem.X) == 800
    seen = LowRank.from_factors(np.eye(50), np.zeros(50), np.zeros((60, 50)))
    test_mean_square = problem.measure(seen)
    ratings = matrix_completion.fetch_movielens("1m")
    order = np.random.default_rng(0).permutation(2000)
    assert test_mean_square == pytest.approx(np.mean(ratings.values[order[1600:]] ** 2))
    assert problem.y.tolist() == ratings.values[order[:800]].tolist()
    assert experiment.problem(1).y.tolist() != problem.y.tolist()


def test_too_many_rounds_for_the_ratings():
    experiment = MatrixCompletion("movielens1m", replace(PLANS["movielens1m"], rounds=81))
    with pytest.raises(ValueError, match="81 rounds of 20 are more than the 1600"):
        experiment.problem(0)


def verdict(experiment, records, what):
    (claim,) = [c for c in experiment.claims(records) if c.id == f"mc-{what}-{experiment.dataset}"]
    return claim.holds


def test_rates_and_costs_both_ways(synthetic_records):
    experiment = MatrixCompletion("synthetic", PLANS["synthetic"], seeds=2)
    for slope, holds in ((-1.05, True), (-0.5, False)):
        records = copy.deepcopy(synthetic_records)
        for name in ("O-FW", "O-FW, seed 1"):
            records[name]["measure"] = [7.0 * t**slope for t in records[name]["t"]]
        assert verdict(experiment, records, "rate") == holds
        assert verdict(experiment, records, "anytime") == holds
    for slope, holds in ((-0.3, True), (0.1, False)):
        records = copy.deepcopy(synthetic_records)
        for name in ("O-FW", "O-FW, seed 1"):
            records[name]["gap"] = [3.0 * t**slope for t in records[name]["t"]]
        assert verdict(experiment, records, "gap-decays") == holds
    for last, holds in ((1.2, True), (2.0, False)):
        records = copy.deepcopy(synthetic_records)
        records["O-FW"]["round_milliseconds"] = np.linspace(0.1, 1.0, 4).tolist() + [last] * 6
        records["O-FW"]["round_milliseconds"][3] = 1.0
        assert verdict(experiment, records, "round-cost") == holds


def test_who_is_faster_both_ways(synthetic_records):
    experiment = MatrixCompletion("synthetic", PLANS["synthetic"], seeds=2)
    for factor, holds in ((10.0, True), (0.1, False)):
        records = copy.deepcopy(synthetic_records)
        records["O-PG"]["seconds"] = [factor * s for s in records["O-FW"]["seconds"]]
        records["O-PG"]["measure"] = records["O-FW"]["measure"]
        assert verdict(experiment, records, "faster-than-opg") == holds


def test_batch_claims_both_ways():
    experiment = MatrixCompletion("generated20m", PLANS["generated20m"])
    t = [2, 10, 20, 40]
    ours = {"t": t, "seconds": [1, 2, 3, 4], "measure": [4, 3, 2, 1.0], "gap": [8, 4, 2, 1]}
    slower = {"seconds": [5, 6, 7, 8], "measure": [4, 3, 2, 1.0]}
    faster = {"seconds": [0.5, 0.6, 0.7, 0.8], "measure": [4, 3, 2, 0.9]}
    holds = experiment.claims({"O-FW": ours, "batch FW": slower, "active ALT": slower})
    fails = experiment.claims({"O-FW": ours, "batch FW": faster, "active ALT": faster})
    kinds = ("faster-than-batch", "comparable-to-alt", "same-mse-as-alt")
    assert [claim.id for claim in holds[:3]] == [f"mc-{kind}-generated20m" for kind in kinds]
    assert [claim.holds for claim in holds[:3]] == [True] * 3
    assert [claim.holds for claim in fails[:3]] == [False] * 3


@pytest.mark.slow
def test_the_figure_has_a_column_for_each_data_set(tmp_path):
    parts = [played(dataset, tmp_path)[1] for dataset in ("synthetic", "generated20m")]
    figure = draw(Results.merge(parts))
    assert len(figure.axes) == 4
    assert [axes.get_title() for axes in figure.axes[:2]] == ["synthetic", "generated20m"]
    assert "1 / t" in [line.get_label() for line in figure.axes[0].lines]
    figure.savefig(tmp_path / "figure.png")
    assert len(draw(parts[1]).axes) == 2


def test_every_data_set_can_be_made():
    for dataset in matrix_completion.DATASETS:
        for quick in (False, True):
            experiment = matrix_completion.make(dataset, quick=quick, seeds=None)
            assert experiment.settings["quick"] is quick
            assert experiment.runs()[0].rounds == experiment.plan.rounds
    assert matrix_completion.make("synthetic", quick=True, seeds=5).settings["seeds"] == 5
    assert matrix_completion.usual_datasets()[:2] == ["synthetic", "movielens100k"]
