"""Figure 4 at a tiny size: what it leaves behind, its pictures, and verdicts both ways."""

from copy import deepcopy

import numpy as np
import pytest

from onlinefw.datasets import SinglePixel, make_single_pixel
from onlinefw.experiments import single_pixel
from onlinefw.experiments.recorder import log_rounds
from onlinefw.experiments.results import Results
from onlinefw.experiments.runner import run_experiment
from onlinefw.experiments.single_pixel import SinglePixelImaging
from onlinefw.plots.single_pixel import draw

from .toy import refuse, silent, stored

TINY = dict(
    size=12, readings=240, iterations=40, inner_steps=10, minimum_steps=3000, seeds=2, quick=True
)


def tiny(dataset="simulated"):
    return SinglePixelImaging(dataset, **TINY)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    out = tmp_path_factory.mktemp("fig4")
    return out, run_experiment(tiny(), out, silent)


def test_it_leaves_curves_and_pictures(played):
    _, results = played
    assert [(s.panel, s.label) for s in results.series] == [
        ("objective", "O-FW"),
        ("distance", "O-FW"),
        ("objective", "O-AW"),
        ("distance", "O-AW"),
        ("radius", "radius r"),
        ("radius", "radius r / 2"),
        ("radius", "radius 2 r"),
    ]
    for series in results.series:
        assert len(series.x) == len(series.y) == log_rounds(40).size
        assert np.all(np.array(series.y) > 0)
    images = results.extra["images"]
    assert [image["label"] for image in images] == [
        "O-FW",
        "O-AW",
        "ridge, all readings",
        "truth",
        "O-FW, radius r / 2",
        "O-FW, radius 2 r",
    ]
    assert all(np.shape(image["values"]) == (12, 12) for image in images)


def test_the_radius_is_the_light_of_the_picture_and_the_minimum_is_below_every_learner(played):
    light = make_single_pixel(12, 240, noise=0.5).image.sum()
    table = {(row["learner"], index): row for index, row in enumerate(played[1].extra["table"])}
    rows = list(table.values())
    assert [row["radius"] for row in rows] == pytest.approx(
        [light, light, light / 2, 2 * light], rel=0.05
    )
    for row in rows:
        assert row["min F is at least"] <= row["min F"] < row["final F"]


def test_the_results_are_read_back_as_they_were(played):
    out, results = played
    read = stored(out, "fig4", "simulated")
    assert (read.series, read.claims, read.extra) == (
        results.series,
        results.claims,
        results.extra,
    )


def test_a_second_time_gives_the_same_and_a_finished_run_is_not_repeated(played, tmp_path):
    out, results = played
    assert run_experiment(tiny(), out, refuse).series == results.series
    again = run_experiment(tiny(), tmp_path, silent)
    assert (again.series, again.claims, again.extra) == (
        results.series,
        results.claims,
        results.extra,
    )


@pytest.mark.slow
def test_readings_without_a_truth_are_compared_with_ridge(played, tmp_path, monkeypatch):
    camera = make_single_pixel(12, 300)
    real = SinglePixel(camera.masks.astype(np.uint8), camera.y, None)
    monkeypatch.setattr(single_pixel, "fetch_single_pixel", lambda name: real)
    results = run_experiment(tiny("mug64"), tmp_path, silent)
    assert "truth" not in [image["label"] for image in results.extra["images"]]
    (claim,) = [claim for claim in results.claims if claim.id == "pixel-image-ofw-mug64"]
    assert "ridge" in claim.predicted
    for shown in (results, Results.merge([results, played[1]])):
        figure = draw(shown)
        figure.savefig(tmp_path / "figure.png")
        pictures = sum(len(axes.images) for axes in figure.axes)
        assert pictures == (5 if shown is results else 11)


def test_the_papers_readings_come_first_if_they_are_there(monkeypatch):
    for there, usual in (
        ({"R64", "mug64"}, ["R64", "simulated"]),
        ({"mug64"}, ["mug64", "simulated"]),
        (set(), ["simulated"]),
    ):
        monkeypatch.setattr(single_pixel, "available", there.__contains__)
        assert single_pixel.usual_datasets() == usual


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("dataset", single_pixel.DATASETS)
def test_make_needs_no_data_and_gives_as_many_orders_as_wished(dataset, quick):
    experiment = single_pixel.make(dataset, quick=quick, seeds=4)
    assert experiment.settings["quick"] is quick
    assert len(experiment.runs()) == 2 * 4 + 2 + 2
    with pytest.raises(ValueError, match="one of R64, mug64, simulated, got 'cup'"):
        single_pixel.make("cup", quick=quick, seeds=None)


@pytest.fixture
def good():
    """Records that agree with everything the paper says."""
    t, truth = log_rounds(40), [[1.0, 0.0], [0.0, 2.0]]
    record = {
        "t": t.tolist(),
        "F": (0.5 + 10.0 / t).tolist(),
        "final F": 0.7,
        "radius": 3.0,
        "nonzeros": 2,
        "image": [[0.9, 0.1], [0.0, 1.7]],
    }
    names = [run.name for run in tiny().runs()]
    records = {name: deepcopy(record) for name in names if "seed" in name}
    records["minimum"] = {name: {"F": 0.5, "gap": 1e-6} for name in single_pixel.RADII}
    records["reference"] = {"penalty": 0.1, "held-out F": 1.0, "image": truth, "truth": truth}
    return records


def verdicts(records):
    return {claim.id: claim.holds for claim in tiny().claims(records)}


def test_records_that_agree_with_the_paper_hold(good):
    assert len(verdicts(good)) == 6
    assert all(verdicts(good).values())


def slowly(record):
    """Both regimes."""
    record["F"] = [0.5 + (value - 0.5) ** 0.5 for value in record["F"]]


def slowly_at_last(record):
    """Slow enough to fail from 0.4 T on, so fast before that one slope across both holds."""
    t = np.array(record["t"])
    record["F"] = (0.5 + np.where(t <= 16, t**-2.0, t**-0.5 * 16**-1.5)).tolist()


def slowly_at_first(record):
    t = np.array(record["t"])
    record["F"] = (0.5 + np.where(t <= 16, t**-0.5, t**-3.0 * 16**2.5)).tolist()


def turned(record):
    record["image"] = record["image"][::-1]


@pytest.mark.parametrize(
    ("claim", "label", "spoil"),
    [
        ("pixel-rate-ofw-late-simulated", "O-FW", slowly_at_last),
        ("pixel-rate-ofw-early-simulated", "O-FW", slowly_at_first),
        ("pixel-rate-oaw-late-simulated", "O-AW", slowly_at_last),
        ("pixel-rate-oaw-early-simulated", "O-AW", slowly_at_first),
        ("pixel-image-ofw-simulated", "O-FW", turned),
        ("pixel-image-oaw-simulated", "O-AW", turned),
    ],
)
def test_a_record_that_contradicts_a_claim_is_seen(good, claim, label, spoil):
    for name, record in good.items():
        if name.startswith(label):
            spoil(record)
    found = verdicts(good)
    assert [one for one, holds in found.items() if not holds] == [claim]


def test_a_rate_that_is_too_slow_throughout_fails_in_both_windows(good):
    for name, record in good.items():
        if name.startswith("O-FW"):
            slowly(record)
    failed = {one for one, holds in verdicts(good).items() if not holds}
    assert failed == {"pixel-rate-ofw-early-simulated", "pixel-rate-ofw-late-simulated"}
