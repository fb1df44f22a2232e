"""What ``ofw fit`` shows while it works."""

import re
import sys
from itertools import pairwise

import pytest

from onlinefw.cli import fit_display

from ..readers.writing import write
from .running import ofw, ratings, rows
from .terminals import WIDTH, on_a_terminal

LINE = re.compile(
    r"(learning|racing \d+ radii) \d+%  \d+ rows(  (mse|error) \S+)?(  loss (?P<loss>\S+))?"
    r"(  gap (?P<gap>\S+))?(?P<says> \(uninformative: above the loss\))?  (atoms|nonzeros) \d+"
)
terminals = pytest.mark.skipif(sys.platform == "win32", reason="no terminals to open here")


def shown_rounds(kind, tmp_path, *options):
    """Return plain lines, one for each round, and check that the other lines name what is done."""
    target = "label" if kind == "classification" else "number"
    data = write(tmp_path / "a.csv", ratings() if kind == "matrix" else rows(target=target))
    result = ofw("fit", kind, data, "-o", tmp_path / "m.ofw", "--batch-size", "40", *options)
    assert result.exit_code == 0
    lines = [line for line in result.stderr.splitlines() if not line.startswith("compiling, ")]
    rounds = [line for line in lines if LINE.fullmatch(line)]
    others = [line for line in lines if line not in rounds and "correcting" not in line]
    assert others[0] == "learning" and others[-3:-1] == [
        "computing the certificate",
        "writing m.ofw",
    ]
    assert re.fullmatch(r"took [\d.]+ s(, .* of it compiling \(once on this machine\))?", lines[-1])
    return rounds


@pytest.mark.parametrize("kind", ["matrix", "regression", "classification"])
def test_plain_lines_where_there_is_no_terminal(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_display, "PLAIN", 0.0)
    lines = shown_rounds(kind, tmp_path, "--radius", "5")
    assert len(lines) == 6
    for line in lines:
        shown = LINE.fullmatch(line)
        if shown["gap"] is not None:  # theta has been corrected in this round
            above = float(shown["gap"]) >= float(shown["loss"]) and kind != "classification"
            assert bool(shown["says"]) is above
    assert LINE.fullmatch(lines[0])["gap"] is not None


def test_ratings_one_after_another_have_no_gap_and_at_first_no_loss(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_display, "PLAIN", 0.0)
    lines = shown_rounds("matrix", tmp_path)
    assert len(lines) == 6
    assert all(LINE.fullmatch(line)["gap"] is None for line in lines)
    has_loss = [LINE.fullmatch(line)["loss"] is not None for line in lines]
    assert has_loss == [False, False, True, True, True, True]


def test_a_score_that_is_not_known_yet_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_display, "PLAIN", 0.0)
    first, second, *_ = shown_rounds("regression", tmp_path, "--radius", "5")
    assert "mse" not in first and "mse" in second
    assert "nan" not in first


def test_radii_that_race_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_display, "PLAIN", 0.0)
    racing = [line.split()[:3:2] for line in shown_rounds("regression", tmp_path)]
    assert racing[0] == ["racing", "radii"]


def test_little_is_said_where_a_short_command_has_no_terminal(tmp_path):
    data = write(tmp_path / "a.csv", rows())
    result = ofw("fit", "regression", data, "-o", tmp_path / "m.ofw", "--radius", "5")
    assert result.exit_code == 0
    assert all("compiling" in line for line in result.stderr.splitlines())


@pytest.mark.parametrize("silent", ["--quiet", "--json"])
def test_nothing_is_shown_when_quiet(silent, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_display, "PLAIN", 0.0)
    data = write(tmp_path / "a.csv", rows())
    result = ofw("fit", "regression", data, "-o", tmp_path / "m.ofw", "--radius", "5", silent)
    assert result.stderr == ""


class Session:
    """What the display asks of a session."""

    expected_rows, n_test, refined = 1000, 0, 0

    def __init__(self, rows):
        self.rows_learned = rows


def test_rows_a_second_are_those_of_the_time_that_was_not_spent_compiling(monkeypatch):
    clock, compiled = [0.0], [0.0]
    monkeypatch.setattr(fit_display, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(fit_display.Compiling, "seconds", property(lambda self: compiled[0]))
    display = fit_display.Display(quiet=True)
    display._mark(0)
    assert display._speed(Session(0)) == []  # nothing to tell yet: not "0 rows/s"
    clock[0], compiled[0] = 21.0, 20.0
    display._mark(100)
    assert display._speed(Session(100)) == ["100 rows/s", "9.0 s left"]
    clock[0] = 31.0  # the last seconds count
    display._mark(600)
    clock[0] = 33.0
    display._mark(900)
    assert display._speed(Session(900)) == ["150 rows/s"]  # and it is over at once


def test_the_bar_stays_while_a_checkpoint_is_written_and_goes_when_the_rounds_are_over():
    display = fit_display.Display(quiet=True)
    display._share, display._facts = 0.5, ["500 rows"]
    display.phase("writing the checkpoint")
    assert display._now() == "writing the checkpoint 50%" and display._facts == ["500 rows"]
    display.phase("writing m.ofw")
    assert display._now() == "writing m.ofw  0 s" and display._facts == []


@terminals
@pytest.mark.slow
def test_on_a_new_machine_the_line_tells_what_happens_from_the_first_second(tmp_path):
    data = write(tmp_path / "a.csv", rows(n=3000))
    command = "fit", "regression", data, "--target", "target", "-o", tmp_path / "m.ofw"
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    code, shown = on_a_terminal(*command, **cache)
    assert code == 0
    summary = next(k for k, one in enumerate(shown) if one.text.startswith("learned "))
    live = shown[:summary]
    assert live[0].text == "starting"
    assert any("compiling, once on this machine" in one.text for one in live)
    assert "writing m.ofw" in live[-1].text
    for one in live:
        assert len(one.text) < WIDTH
        assert not re.search(r"nan|\b0 rows/s|-:--", one.text)
    # From the first word on something changes every few seconds (the line is drawn 4 times each).
    times = [one.seconds for one in shown]
    assert max(after - before for before, after in pairwise(times[1:])) < 5.0
    took = shown[-1].text
    assert re.fullmatch(r"took .* s, .* s of it compiling \(once on this machine\)", took)

    code, again = on_a_terminal(*command, "--force", **cache)
    assert code == 0
    assert not any("compiling" in one.text for one in again)
    assert re.fullmatch(r"took [\d.]+ s", again[-1].text)
