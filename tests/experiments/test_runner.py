import json

import pytest

from onlinefw.experiments import runner
from onlinefw.experiments.results import Results
from onlinefw.experiments.runner import merged, run_experiment

from .toy import Toy, silent


def test_every_run_leaves_a_record_and_the_experiment_its_results(tmp_path):
    results = run_experiment(Toy(), tmp_path, silent)
    folder = tmp_path / "fig3" / "runs" / "quick" / "toy"
    names = {"o-fw-seed-0.json", "o-fw-seed-1.json", "part.json"}
    assert {path.name for path in folder.iterdir()} == names
    stored = Results.read(folder / "part.json")
    assert stored.series == results.series and stored.claims == results.claims
    assert results.claims[0].holds


def test_a_finished_run_is_not_repeated(tmp_path):
    first = run_experiment(Toy(), tmp_path, silent)
    again = Toy()
    assert run_experiment(again, tmp_path, silent).series == first.series
    assert again.played == []


def test_after_an_interruption_only_the_rest_is_played(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_experiment(Toy(fail=True), tmp_path, silent)
    rest = Toy()
    run_experiment(rest, tmp_path, silent)
    assert rest.played == [1]


@pytest.mark.parametrize("spoil", ["settings", "version", "truncated"])
def test_a_record_of_other_settings_or_another_version_or_a_broken_one_is_played_again(
    tmp_path, spoil
):
    run_experiment(Toy(), tmp_path, silent)
    path = tmp_path / "fig3" / "runs" / "quick" / "toy" / "o-fw-seed-0.json"
    stored = json.loads(path.read_text())
    if spoil == "truncated":
        path.write_text(path.read_text()[:40])
    else:
        stored[spoil] = {"settings": {"quick": False}, "version": "0"}[spoil]
        path.write_text(json.dumps(stored))
    again = Toy()
    run_experiment(again, tmp_path, silent)
    assert again.played == [0]


def test_a_figure_is_made_of_all_its_parts_of_the_same_size_and_version(tmp_path, monkeypatch):
    run_experiment(Toy(dataset="b"), tmp_path, silent)
    run_experiment(Toy(dataset="a"), tmp_path, silent)
    run_experiment(Toy(dataset="full", quick=False), tmp_path, silent)
    assert merged(tmp_path, "fig3", ("a", "b"), quick=True).dataset == "a, b"
    assert merged(tmp_path, "fig3", ("a", "b"), quick=False).dataset == "full"
    assert merged(tmp_path, "fig1", (), quick=True) is None
    monkeypatch.setattr(runner, "__version__", "another")
    assert merged(tmp_path, "fig3", ("a", "b"), quick=True) is None


def test_more_seeds_replay_none_of_those_there(tmp_path):
    run_experiment(Toy(seeds=2), tmp_path, silent)
    more = Toy(seeds=3)
    run_experiment(more, tmp_path, silent)
    assert more.played == [2]


def test_a_quick_run_leaves_the_full_one_alone(tmp_path):
    run_experiment(Toy(quick=False), tmp_path, silent)
    run_experiment(Toy(quick=True), tmp_path, silent)
    again = Toy(quick=False)
    run_experiment(again, tmp_path, silent)
    assert again.played == []


def test_a_part_that_cannot_be_read_is_left_out(tmp_path):
    run_experiment(Toy(dataset="a"), tmp_path, silent)
    run_experiment(Toy(dataset="b"), tmp_path, silent)
    (tmp_path / "fig3" / "runs" / "quick" / "b" / "part.json").write_text('{"figure": "fig3"}')
    assert merged(tmp_path, "fig3", ("a", "b"), quick=True).dataset == "a"
