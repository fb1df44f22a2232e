"""Figure 2: what its experiment measures, keeps, claims and draws."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy

import numpy as np
import pytest
from scipy.sparse import random_array

from onlinefw.datasets import Rows
from onlinefw.experiments import robust_classification as module
from onlinefw.experiments.results import Results, plain
from onlinefw.experiments.robust_classification import RobustClassification, Size
from onlinefw.experiments.runner import run_experiment
from onlinefw.plots.robust_classification import draw

from .toy import stored


def silent(*_):
    return nullcontext(lambda t: None)


def digits():
    """Pictures in which a bright column is a one."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (500, 8, 8)).astype(np.uint8)
    y = rng.integers(0, 3, 500)
    X[y == 1, :, 4] += 20
    return Rows(X_train=X[:400], y_train=y[:400], X_test=X[400:], y_test=y[400:])


def documents():
    X = random_array((500, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    y = np.where(X @ np.r_[np.ones(20), -np.ones(20)] > 0, 1, -1)
    return Rows(X_train=X[:402], y_train=y[:402], X_test=X[402:], y_test=y[402:])


@pytest.fixture(autouse=True)
def small_data(monkeypatch):
    monkeypatch.setattr(module, "fetch_mnist", digits)
    monkeypatch.setattr(module, "fetch_rcv1_binary", documents)
    monkeypatch.setattr(module, "fetch_rcv1v2_subset", documents)


def tiny(dataset="synthetic", seeds=2):
    return RobustClassification(dataset, Size(400, 100, (5, 4), 2), seeds=seeds, quick=True)


def records_of(experiment):
    return {run.name: run.play(lambda t: None) for run in experiment.runs()}


@pytest.fixture(scope="module")
def records():
    return records_of(tiny())


def holds(records, claim):
    return verdict(records, claim) == "holds"


def verdict(records, claim):
    (one,) = [c for c in tiny().claims(records) if c.id == f"{claim}-synthetic"]
    return one.verdict


@pytest.mark.parametrize("dataset", ["synthetic", "mnist", "rcv1v2-subset"])
def test_every_data_set_runs_is_kept_and_drawn(dataset, tmp_path):
    experiment = tiny(dataset)
    results = run_experiment(experiment, tmp_path, silent)
    kept = stored(tmp_path, "fig2", dataset)
    assert kept.claims == results.claims and kept.series == results.series
    assert kept.settings == plain(results.settings)
    assert {s.panel for s in results.series} >= {"no flips", "25% flips"}
    assert {s.dataset for s in results.series} == {dataset}
    for series in results.series:
        assert series.x[-1] == experiment.rounds
        assert np.all(np.isfinite(series.y)) and len(series.y) > 15
    assert len(results.claims) == 5
    assert all(claim.id.endswith(f"-{dataset}") for claim in results.claims)
    bound = next(claim for claim in results.claims if claim.source == "Theorem 3")
    assert bound.verdict == "uninformative", "a theorem, but few rounds"
    assert len(draw(results).axes) == 4  # two panels, each with an axis for the gap


def test_finished_runs_are_not_repeated(tmp_path, monkeypatch):
    first = run_experiment(tiny(), tmp_path, silent)
    monkeypatch.setattr(RobustClassification, "_play", lambda *_: pytest.fail("played again"))
    assert run_experiment(tiny(), tmp_path, silent).series == first.series


def test_the_same_seeds_give_the_same_numbers(records):
    again = records_of(tiny())
    assert again.keys() == records.keys()
    for name, record in records.items():
        for key, value in record.items():
            np.testing.assert_array_equal(value, again[name][key])


@pytest.mark.slow
def test_the_figure_of_several_data_sets_has_their_columns(tmp_path):
    parts = [run_experiment(tiny(name, 1), tmp_path, silent) for name in ("mnist", "rcv1")]
    figure = draw(Results.merge(parts))
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == [
        "mnist (class '1'), no flips",
        "rcv1.binary, no flips",
        "mnist (class '1'), 25% flips",
        "rcv1.binary, 25% flips",
    ]


def test_an_exact_share_of_the_labels_is_flipped():
    y = np.ones(402)
    flipped = module.with_flips(y, 0.25, seed=3)
    assert (flipped == -1).sum() == 100
    assert np.array_equal(flipped, module.with_flips(y, 0.25, seed=3))
    assert not np.array_equal(flipped, module.with_flips(y, 0.25, seed=4))
    assert np.array_equal(module.with_flips(y, 0.0, seed=3), y)


@pytest.mark.parametrize("dataset", ["synthetic", "mnist", "rcv1v2-subset"])
def test_everything_is_in_double_precision(dataset, monkeypatch):
    learners = []

    def watched(*arguments, **more):
        trace = play(*arguments, **more)
        learners.append(trace.learner)
        return trace

    play = module.play
    monkeypatch.setattr(module, "play", watched)
    experiment = tiny(dataset, 1)
    experiment.runs()[0].play(lambda t: None)
    problem = experiment._problem(0)
    assert problem.X_train.dtype == problem.X_test.dtype == np.float64
    (learner,) = learners
    assert learner.theta.dtype == np.float64
    assert learner.objective.gradient().dtype == np.float64
    stored = learner.objective.state_dict()
    assert "float32" not in {str(getattr(x, "dtype", "")) for x in arrays_of(stored)}


def arrays_of(state):
    """All arrays of a state, however deep."""
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, (list, tuple)):
        return [array for part in state for array in arrays_of(part)]
    return [state]


def test_documents_in_single_precision_become_doubles(monkeypatch):
    """As they come from LIBSVM's file."""
    stored = documents()
    single = Rows(
        stored.X_train.astype(np.float32), stored.y_train, stored.X_test.astype(np.float32),
        stored.y_test,
    )  # fmt: skip
    monkeypatch.setattr(module, "fetch_rcv1_binary", lambda: single)
    problem = module.load("rcv1", Size(400), 0)
    assert problem.X_train.dtype == problem.X_test.dtype == np.float64


def test_pixels_are_between_0_and_1():
    problem = module.load("mnist", Size(400), 0)
    stored = digits()
    assert sorted(problem.X_train.sum(axis=1)) == pytest.approx(
        sorted(stored.X_train.sum(axis=(1, 2)) / 255.0)
    )
    np.testing.assert_array_equal(problem.X_test * 255.0, stored.X_test.reshape(-1, 64))


def test_a_seed_has_an_order_of_mnist_of_its_own():
    one, same, other = (module.load("mnist", Size(400), seed) for seed in (0, 0, 1))
    assert np.array_equal(one.X_train, same.X_train)
    assert not np.array_equal(one.X_train, other.X_train)
    assert np.array_equal(np.sort(one.X_train, axis=0), np.sort(other.X_train, axis=0))
    bright = one.X_train.reshape(-1, 8, 8)[:, :, 4].sum(axis=1)
    assert bright[one.y_train > 0].mean() > bright[one.y_train < 0].mean() + 100 / 255


@pytest.mark.parametrize("dataset", ["synthetic", "rcv1"])
def test_the_constants_of_theorem_3_hold_for_the_batches(dataset):
    """Differences of f_t and of its gradients, at random points of the ball."""
    experiment = tiny(dataset, 1)
    problem, rng = experiment._problem(0), np.random.default_rng(1)
    shape = problem.shape or (problem.X_train.shape[1],)
    for loss, phi in module.LOSSES.items():
        constants = experiment._constants(loss, problem)
        for X, y in module.batches(problem.X_train, problem.y_train, problem.batch):
            near = rng.standard_normal(shape) * 0.01
            step = rng.standard_normal(shape) * 0.01
            z, moved = (X @ theta.reshape(-1) for theta in (near, near + step))
            change = np.mean(phi.value(moved, y)) - np.mean(phi.value(z, y))
            turn = X.T @ (phi.derivative(moved, y) - phi.derivative(z, y)) / len(y)
            norm = np.linalg.norm(step, experiment.setting.ord)
            assert abs(change) <= constants["G"] * norm
            assert np.linalg.norm(turn) <= constants["L"] * np.linalg.norm(step)
        radius = experiment.setting.radii[loss]
        assert constants["rho"] == constants["diameter"] == 2 * radius


def edited(records, loss, flips, **values):
    """Return a copy in which some records of one loss and share have other values."""
    records = deepcopy(records)
    for name, record in records.items():
        if name.startswith(f"{loss}, {flips}"):
            for key, change in values.items():
                record[key] = change(np.asarray(record[key], dtype=float))
    return records


def to(value):
    return lambda old: np.full_like(old, value)


def test_similar_without_flips_means_within_a_fifth(records):
    claim = "clf-similar-no-flips"
    both = edited(records, "logistic", "no flips", test_error=to(5.0))
    assert verdict(edited(both, "sigmoid", "no flips", test_error=to(5.9)), claim) == "holds"
    assert verdict(edited(both, "sigmoid", "no flips", test_error=to(6.1)), claim) == "fails"
    scattered = edited(both, "sigmoid", "no flips, seed 0", test_error=to(7.0))
    scattered = edited(scattered, "sigmoid", "no flips, seed 1", test_error=to(3.0))
    assert verdict(scattered, claim) == "undecided"


def test_better_with_flips_means_a_lower_error(records):
    claim = "clf-sigmoid-better-flips"
    both = edited(records, "logistic", "25% flips", test_error=to(10.0))
    assert holds(edited(both, "sigmoid", "25% flips", test_error=to(9.9)), claim)
    assert not holds(edited(both, "sigmoid", "25% flips", test_error=to(10.0)), claim)


@pytest.mark.parametrize(("flips", "slug"), [("no flips", "no-flips"), ("25% flips", "flips")])
def test_a_gap_that_grows_does_not_decay(records, flips, slug):
    t = np.array(records["sigmoid, no flips, seed 0"]["t"], dtype=float)
    claim = f"clf-gap-decays-{slug}"
    falling = edited(records, "sigmoid", flips, gap=lambda _: 1.0 / t)
    growing = edited(records, "sigmoid", flips, gap=lambda _: 0.01 * t)
    vanished = edited(records, "sigmoid", flips, gap=to(0.0))
    assert holds(falling, claim)
    assert not holds(growing, claim)
    assert not holds(vanished, claim)


@pytest.mark.parametrize("loss", ["sigmoid", "logistic"])
def test_one_gap_above_the_bound_is_seen(records, loss):
    def above_once(gap):
        gap[-1] = 1e9
        return gap

    assert verdict(records, "clf-gap-bound") == "uninformative"  # the bound is above G rho
    small = {name: {**record, "G": 1e6} for name, record in records.items()}
    assert verdict(small, "clf-gap-bound") == "holds"
    above = edited(small, loss, "25% flips", late_gap=above_once)
    assert verdict(above, "clf-gap-bound") == "fails"


def test_sizes_are_the_papers_unless_quick():
    rounds = {name: module.make(name, quick=False, seeds=None).rounds for name in module.DATASETS}
    assert rounds == {"synthetic": 4000, "mnist": 6000, "rcv1": 4048, "rcv1v2-subset": 4048}
    for name in module.DATASETS:
        quick = module.make(name, quick=True, seeds=2)
        assert quick.settings["quick"] and quick.settings["seeds"] == 2
        assert quick.rounds < rounds[name]


@pytest.mark.parametrize("at_hand", [True, False])
def test_the_papers_documents_are_used_where_they_are_at_hand(monkeypatch, at_hand):
    monkeypatch.setattr(module, "available", lambda name: at_hand)
    assert module.usual_datasets()[-1] == ("rcv1" if at_hand else "rcv1v2-subset")


def test_documents_whose_seeds_were_raised_take_fresh_ones_in_full_runs():
    full = module.make("rcv1v2-subset", quick=False, seeds=2)
    assert (full.settings["seeds"], full.settings["seeds from"]) == (2, 100)
    assert {run.name[-8:] for run in full.runs()} == {"seed 100", "seed 101"}
    assert module.make("rcv1v2-subset", quick=True, seeds=2).seeds == range(2)
    assert module.make("mnist", quick=False, seeds=None).seeds == range(5)
