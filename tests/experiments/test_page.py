"""The page of `ofw reproduce`, and the command around it."""

import json
import re
from html.parser import HTMLParser

import matplotlib.figure
import pytest
from typer.testing import CliRunner

from onlinefw.cli.app import app
from onlinefw.datasets import DataFileError, DownloadError
from onlinefw.experiments import figures
from onlinefw.experiments.page import verdict_count
from onlinefw.experiments.results import UNDECIDED, UNINFORMATIVE, Claim
from onlinefw.plots.figures import DRAWN_BY

from .toy import Toy


class ToyFigure:
    datasets = ("toy", "other", "absent")

    def __init__(self):
        self.played, self.drawn = [], []

    def usual_datasets(self):
        return ["toy", "absent"]

    def make(self, dataset, *, quick, seeds):
        toy = Toy(dataset=dataset, quick=quick, seeds=seeds or 2)
        toy.played = self.played
        if dataset == "absent":
            toy.player = self.no_network
        return toy

    error: OSError = DownloadError("cannot reach example.org; put absent.zip into the folder")

    def no_network(self, seed):
        def play(advance):
            raise self.error

        return play

    def draw(self, results):
        self.drawn.append(results.settings["toy"]["quick"])
        return matplotlib.figure.Figure()

    title, of_the_paper = "A toy", ("toy", "missing")


@pytest.fixture
def toy(monkeypatch):
    figure = ToyFigure()
    monkeypatch.setitem(figures.FIGURES, "fig3", figure)
    monkeypatch.setitem(DRAWN_BY, "fig3", figure.draw)
    return figure


def reproduce(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def test_it_writes_results_figures_and_a_page(toy, tmp_path):
    done = reproduce("fig3", "--quick", "--out", tmp_path / "paper")
    assert done.exit_code == 0, done.output
    names = {path.name for path in (tmp_path / "paper" / "fig3").iterdir()}
    assert names == {"results.json", "figure.png", "figure.pdf", "runs"}
    stored = json.loads((tmp_path / "paper" / "fig3" / "results.json").read_text())
    assert stored["figure"] == "fig3" and stored["dataset"] == "toy"
    assert "1 of 1 claims hold" in done.output


def test_data_that_cannot_be_had_are_skipped_and_said_so(toy, tmp_path):
    done = reproduce("fig3", "--quick", "--out", tmp_path)
    assert "skipped fig3 absent: cannot reach example.org" in done.output
    assert "put absent.zip into the folder" in (tmp_path / "index.html").read_text()


def test_damaged_data_are_skipped_and_a_full_disk_ends_the_run(toy, tmp_path):
    toy.error = DataFileError("absent.zip is damaged; delete it")
    done = reproduce("fig3", "--quick", "--out", tmp_path)
    assert done.exit_code == 0 and "absent.zip is damaged" in done.output
    toy.error = OSError("no space left on device")
    done = reproduce("fig3", "--quick", "--out", tmp_path)
    assert done.exit_code == 1
    assert "no space left on device; finished runs are kept" in done.output


def test_data_that_were_asked_for_by_name_and_cannot_be_had_are_an_error(toy, tmp_path):
    done = reproduce("fig3", "--dataset", "absent", "--out", tmp_path)
    assert done.exit_code == 1
    assert "put absent.zip into the folder" in done.output


def test_the_page_stands_alone_and_escapes_what_it_shows(toy, tmp_path):
    reproduce("fig3", "--quick", "--out", tmp_path)
    text = (tmp_path / "index.html").read_text()
    assert "h falls like 1/t &lt;at least&gt;" in text
    assert "data:image/png;base64," in text
    assert not re.search(r"(src|href)=\"(https?:)?//", text)
    for link in re.findall(r'href="([^#"]+)"', text):
        assert (tmp_path / link).is_file()
    Balanced().feed(text)


def test_the_same_command_again_repeats_nothing(toy, tmp_path):
    reproduce("fig3", "--quick", "--out", tmp_path)
    played = list(toy.played)
    reproduce("fig3", "--quick", "--out", tmp_path)
    assert toy.played == played


def test_a_page_never_mixes_quick_and_full(toy, tmp_path):
    for size in (["--quick"], [], ["--quick"]):
        reproduce("fig3", "--dataset", "toy", "--out", tmp_path, *size)
    assert toy.drawn == [True, False, True]
    assert json.loads((tmp_path / "fig3" / "results.json").read_text())["settings"]["toy"]["quick"]


def test_the_page_says_what_the_paper_has_besides(toy, tmp_path):
    reproduce("fig3", "--quick", "--out", tmp_path)
    assert "The paper also has missing; not played here." in (tmp_path / "index.html").read_text()


def test_a_second_data_set_joins_the_figure(toy, tmp_path):
    reproduce("fig3", "--quick", "--dataset", "toy", "--out", tmp_path)
    reproduce("fig3", "--quick", "--dataset", "other", "--seeds", 1, "--out", tmp_path)
    stored = json.loads((tmp_path / "fig3" / "results.json").read_text())
    assert stored["dataset"] == "toy, other"
    assert [claim["dataset"] for claim in stored["claims"]] == ["toy", "other"]


def test_an_interruption_says_how_to_go_on(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "make", lambda dataset, quick, seeds: Toy(fail=True))
    done = reproduce("fig3", "--quick", "--out", tmp_path)
    assert done.exit_code == 1
    assert "the same command goes on from here" in done.output


def test_a_data_set_that_the_figure_does_not_have_is_refused(toy, tmp_path):
    done = reproduce("fig3", "--dataset", "mnist", "--out", tmp_path)
    assert done.exit_code == 2
    assert "fig3 has no data set 'mnist'; it has toy, other, absent" in done.output


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(toy, tmp_path):
    (tmp_path / "file").write_text("")
    done = reproduce("fig3", "--out", tmp_path / "file")
    assert done.exit_code == 2
    assert "choose a folder with --out" in done.output
    assert toy.played == []


def test_what_cannot_fail_is_not_counted():
    verdicts = {"a": True, "b": True, "c": False}
    claims = [Claim(name, "", "", "", holds) for name, holds in verdicts.items()]
    assert verdict_count(claims) == "2 of 3 claims hold"
    claims += [Claim("d", "", "", "", False, instead=UNDECIDED)]
    assert verdict_count(claims) == "2 of 4 claims hold, 1 undecided"
    claims += [Claim("e", "", "", "", False, instead=UNINFORMATIVE)] * 2
    assert verdict_count(claims) == (
        "2 of 4 claims hold, 1 undecided (2 more cannot fail and are not counted)"
    )


class Balanced(HTMLParser):
    """Fails on a tag that is closed but not open."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
