"""What ``ofw fit`` shows while it learns."""

import re

import pytest

from onlinefw.cli import fit_display

from ..readers.writing import write
from .running import ofw, ratings, rows

LINE = re.compile(
    r"round \d+  [\d,]+ rows/s  (mse|error) \S+  loss (?P<loss>\S+)(  gap (?P<gap>\S+))?"
    r"(?P<says> \(uninformative: above the loss\))?  (atoms|nonzeros) \d+"
)


@pytest.mark.parametrize("kind", ["matrix", "regression", "classification"])
def test_plain_lines_where_there_is_no_terminal(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_display, "PLAIN", 0.0)
    target = "label" if kind == "classification" else "number"
    data = write(tmp_path / "a.csv", ratings() if kind == "matrix" else rows(target=target))
    fit = ("fit", kind, data, "-o", tmp_path / "m.ofw", "--radius", "5", "--batch-size", "40")
    lines = ofw(*fit).stderr.splitlines()
    assert len(lines) == 6
    for line in lines:
        shown = LINE.fullmatch(line)
        assert shown, line
        if shown["gap"] is not None:  # theta has been corrected in this round
            above = float(shown["gap"]) >= float(shown["loss"]) and kind != "classification"
            assert bool(shown["says"]) is above
    assert LINE.fullmatch(lines[0])["gap"] is not None


def test_ratings_one_after_another_have_no_gap_and_at_first_no_loss(tmp_path, monkeypatch):
    """On a new machine the first ones take seconds, since loops are compiled: they are shown."""
    monkeypatch.setattr(fit_display, "PLAIN", 0.0)
    data = write(tmp_path / "a.csv", ratings())
    fit = "fit", "matrix", data, "-o", tmp_path / "m.ofw", "--batch-size", "40"
    result = ofw(*fit)
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert len(lines) == 6
    begin = r"round \d+  [\d,]+ rows/s  mse \S+"
    assert all(re.fullmatch(begin + r"  atoms \d+", line) for line in lines[:2]), lines
    assert all(re.fullmatch(begin + r"  loss \S+  atoms \d+", line) for line in lines[2:]), lines


def test_a_bar_on_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_display, "LIVE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    data = write(tmp_path / "a.csv", ratings())
    fit = ("fit", "matrix", data, "-o", tmp_path / "m.ofw", "--radius", "5", "--batch-size", "40")
    result = ofw(*fit)
    assert result.exit_code == 0
    assert "\x1b[" in result.stderr and "written: " in result.stdout
    quiet = ofw(*fit, "--quiet")
    assert quiet.output == ""
