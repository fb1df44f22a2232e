import json
from dataclasses import replace

import numpy as np
import pytest

from onlinefw.experiments.results import Claim, Results, Series

KEYS = {"figure", "dataset", "series", "claims", "settings", "seconds", "version"}


def results(dataset="a", **more):
    return Results(
        figure="fig1",
        dataset=dataset,
        series=[Series.of("O-FW", "round", "h", [1, 2], np.array([0.5, 0.25]), dataset=dataset)],
        claims=[Claim("id", "It falls.", "falls", "slope -1", True, dataset=dataset)],
        settings={"quick": False, "radius": np.float64(2.0), "at": np.arange(2)},
        seconds=1.5,
        **more,
    )


def test_results_are_the_same_after_writing_and_reading(tmp_path):
    results().write(tmp_path / "deep" / "results.json")
    again = Results.read(tmp_path / "deep" / "results.json")
    assert again.series == results().series
    assert again.claims == results().claims
    assert again.settings == {"quick": False, "radius": 2.0, "at": [0, 1]}


def test_an_undecided_or_uninformative_claim_does_not_hold():
    claim = Claim("id", "It falls.", "falls", "slope -1", False, instead="undecided")
    assert claim.verdict == "undecided"
    with pytest.raises(ValueError, match="cannot hold and be undecided"):
        replace(claim, holds=True)
    with pytest.raises(ValueError, match="'undecided', 'uninformative' or empty, got 'maybe'"):
        replace(claim, instead="maybe")


def test_the_file_has_the_documented_keys(tmp_path):
    results().write(tmp_path / "results.json")
    stored = json.loads((tmp_path / "results.json").read_text())
    assert set(stored) >= KEYS
    assert set(stored["series"][0]) >= {"label", "x_name", "y_name", "x", "y"}
    assert set(stored["claims"][0]) >= {"id", "statement", "predicted", "measured", "holds"}


def test_nothing_half_written_is_left_when_a_value_is_not_json(tmp_path):
    broken = results(extra={"h": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        broken.write(tmp_path / "results.json")
    assert list(tmp_path.iterdir()) == []


def test_a_series_needs_as_many_x_as_y_and_finite_numbers():
    with pytest.raises(ValueError, match="2 values of round and 1 of h"):
        Series("O-FW", "round", "h", [1, 2], [1.0])
    with pytest.raises(ValueError, match="not finite"):
        Series("O-FW", "round", "h", [1], [np.inf])


def test_points_that_are_not_finite_are_left_out_of_a_series_of_arrays():
    assert Series.of("gap", "round", "gap", [1, 2, 3], [1.0, np.nan, 3.0]).x == [1.0, 3.0]


def test_merging_keeps_the_parts_in_order():
    both = Results.merge([results("a"), results("b")])
    assert both.dataset == "a, b"
    assert [series.dataset for series in both.series] == ["a", "b"]
    assert [claim.dataset for claim in both.claims] == ["a", "b"]
    assert both.seconds == 3.0 and set(both.settings) == {"a", "b"}


def test_settings_and_extras_are_by_data_set_however_many_there_are():
    assert set(Results.merge([results()]).settings) == {"a"}
    assert set(Results.merge([results(extra={"r": 1.0})]).extra) == {"a"}
