"""Figure 3 at a tiny size: what it leaves behind, and verdicts both ways."""

from copy import deepcopy

import numpy as np
import pytest

from onlinefw.experiments import online_lasso
from onlinefw.experiments.online_lasso import AGGREGATED, LEARNERS, RADII, SHRINKING, OnlineLasso
from onlinefw.experiments.recorder import log_rounds
from onlinefw.experiments.runner import run_experiment
from onlinefw.plots.online_lasso import draw

from .toy import refuse, silent, stored

TIMED = ("lasso-round-",)


def tiny():
    return OnlineLasso(m=30, n=100, T=60, seeds=2, quick=True)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    out = tmp_path_factory.mktemp("fig3")
    return out, run_experiment(tiny(), out, silent)


def test_it_leaves_curves_for_every_learner_and_radius(played):
    _, results = played
    for place in RADII:
        for x_name, bounds in (("round", ["slow bound of O-FW"]), ("seconds", [])):
            here = [s for s in results.series if s.panel == place and s.x_name == x_name]
            assert [s.label for s in here] == [*LEARNERS, SHRINKING, AGGREGATED, *bounds]
            for series in here:
                assert len(series.x) == len(series.y) == log_rounds(60).size
                assert np.all(np.array(series.y) > 0)
    assert len(results.extra["table"]) == 10
    assert results.settings["quick"] is True


def test_the_results_are_read_back_as_they_were(played):
    out, results = played
    read = stored(out, "fig3", "synthetic")
    assert (read.series, read.claims, read.extra) == (
        results.series,
        results.claims,
        results.extra,
    )


def test_a_second_time_gives_the_same_numbers_and_a_finished_run_is_not_repeated(played, tmp_path):
    out, results = played
    assert run_experiment(tiny(), out, refuse).series == results.series
    again = run_experiment(tiny(), tmp_path, silent)
    for one, other in zip(results.series, again.series, strict=True):
        assert one.y == other.y
        assert one.x == other.x or one.x_name == "seconds"
    for one, other in zip(results.claims, again.claims, strict=True):
        assert one == other or one.id.startswith(TIMED)


def test_it_is_drawn(played, tmp_path):
    figure = draw(played[1])
    figure.savefig(tmp_path / "figure.png")
    assert [axes.get_xlabel() for axes in figure.axes] == ["round", "round", "seconds", "seconds"]


@pytest.mark.parametrize("quick", [True, False])
def test_make_gives_the_sizes_of_the_paper_and_as_many_seeds_as_wished(quick):
    experiment = online_lasso.make("synthetic", quick=quick, seeds=7)
    # Full runs take seeds that no first run has played.
    assert experiment.settings["seeds"] == list(range(7) if quick else range(100, 107))
    assert (experiment.settings["m"], experiment.settings["n"]) == (80, 300)
    assert experiment.settings["quick"] is quick
    names = [run.name for run in experiment.runs()]
    assert len(set(names)) == len(names) == 2 * 5 * 7 + 1
    with pytest.raises(ValueError, match="one of synthetic, got 'mnist'"):
        online_lasso.make("mnist", quick=quick, seeds=None)


@pytest.fixture
def good():
    """Records that agree with everything the paper says."""
    t = log_rounds(60)
    level = {"O-AW": 0.9}
    records = {
        f"{label}, {place}, seed {seed}": {
            "t": t.tolist(),
            "h": (level.get(label, 1.0) * (1 + seed) / t).tolist(),
            "seconds": (0.001 * t).tolist(),
            "slow bound": (100.0 / np.sqrt(t)).tolist(),
            "final h": 0.1,
            "certificate": 0.2,
            "nonzeros": 5,
            "round milliseconds": [3.0, *[1.0] * 9],
            "worst h": 1000.0,
        }
        for place in RADII
        for label in [*LEARNERS, SHRINKING, AGGREGATED]
        for seed in range(2)
    }
    records["one step"] = {"linear minimisation, us": 1.0, "projection, us": 2.0}
    return records


def verdicts(records):
    return {claim.id: claim.holds for claim in tiny().claims(records)}


def test_records_that_agree_with_the_paper_hold(good):
    found = verdicts(good)
    assert len(found) == len(tiny().claims(good)) == 12
    assert all(found.values())


def slowly(record):
    record["h"] = [value**0.5 for value in record["h"]]


def late(record):
    record["round milliseconds"][-1] = 1.6


def high(record):
    record["h"][-1] = 2 * record["slow bound"][-1]


def behind(record):
    record["h"] = [1.3 * value for value in record["h"]]


@pytest.mark.parametrize(
    ("claim", "of", "spoil"),
    [
        ("lasso-rate-interior-ofw", "O-FW, interior", slowly),
        ("lasso-rate-interior-oaw", "O-AW, interior", slowly),
        ("lasso-rate-boundary-ofw", "O-FW, boundary", slowly),
        ("lasso-rate-boundary-oaw", "O-AW, boundary", slowly),
        ("lasso-spg-similar-rate-interior", "sPG, interior", slowly),
        ("lasso-spg-similar-rate-boundary", "sPG, boundary", slowly),
        ("lasso-slow-bound-interior", "O-FW, interior", high),
        ("lasso-slow-bound-boundary", "O-FW, boundary, seed 1", high),
        ("lasso-oaw-ahead-boundary", "O-AW, boundary", behind),
        ("lasso-round-cost-constant-ofw", "O-FW", late),
        ("lasso-round-cost-constant-oaw", "O-AW", late),
    ],
)
def test_a_record_that_contradicts_a_claim_is_seen(good, claim, of, spoil):
    bad = deepcopy(good)
    for name, record in bad.items():
        if name.startswith(of):
            spoil(record)
    assert not verdicts(bad)[claim]


def test_a_bound_above_the_worst_feasible_theta_is_not_counted(good):
    for record in good.values():
        if "worst h" in record:
            record["worst h"] = 0.5
    claims = [claim for claim in tiny().claims(good) if "slow-bound" in claim.id]
    assert [claim.verdict for claim in claims] == ["uninformative"] * 2


def test_a_dear_linear_minimisation_is_seen(good):
    good["one step"]["linear minimisation, us"] = 2.5
    assert not verdicts(good)["lasso-round-cheaper-than-spg"]


def test_one_seed_can_be_played_but_decides_no_rate():
    experiment = OnlineLasso(m=30, n=100, T=60, seeds=1)
    records = {run.name: run.play(lambda t: None) for run in experiment.runs()}
    claims = experiment.results(records, 0.0).claims
    assert len(claims) == 12
    assert {claim.verdict for claim in claims if "rate" in claim.id} == {"undecided"}
