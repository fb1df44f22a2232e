"""Whoever sees skipped tests sees in one line what they need."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from .skipped import KINDS, kind_of, skipped_line


def skipped(reason, *markers):
    return SimpleNamespace(
        longrepr=("test_a.py", 3, f"Skipped: {reason}"), keywords=dict.fromkeys(markers, 1)
    )


@pytest.mark.parametrize(
    ("reason", "needs"),
    [
        ("there is no NVIDIA GPU", "an NVIDIA GPU"),
        ("CuPy is not installed", "an NVIDIA GPU"),
        ("ONLINEFW_DATA names no folder of real data", "real data"),
        ("MovieLens 100k is not in the data folder", "real data"),
        ("could not import 'ray': No module named 'ray'", "Ray"),
        ("Ray is not installed: pip install 'onlinefw[ray]'", "Ray"),
        ("could not import 'cvxpy': No module named 'cvxpy'", "other packages"),
        ("there is no zsh", "another machine"),
    ],
)
def test_reasons_say_what_is_needed(reason, needs):
    assert kind_of(skipped(reason)).needs == needs


def test_one_line_counts_each_kind_and_says_how_it_runs():
    reports = [skipped("whatever", "gpu")] * 3 + [skipped("ONLINEFW_DATA names none")] * 2
    assert skipped_line(reports) == (
        "5 skipped: 3 for an NVIDIA GPU (on a machine with one: pytest -m gpu -n 0); "
        "2 for real data (ofw data fetch, then ONLINEFW_DATA=FOLDER pytest)"
    )
    assert skipped_line([]) is None


def test_the_last_reasons_fit_everything():
    assert kind_of(SimpleNamespace(longrepr="odd", keywords={})) is KINDS[-1]
    assert kind_of(SimpleNamespace(longrepr="a whole file")) is KINDS[-1]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_pytest_ends_with_the_line(tmp_path, workers):
    """In a run of its own, with and without workers, on tests that use this conftest's hook."""
    root = Path(__file__).parent.parent
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    (tmp_path / "test_a.py").write_text(
        "import pytest\n"
        "def test_runs(): pass\n"
        "def test_gpu(): pytest.skip('no GPU here')\n"
        "@pytest.mark.skip(reason='there is no zsh')\n"
        "def test_zsh(): pass\n"
    )
    run = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*run, "--rootdir", tmp_path, "-c", "/dev/null", tmp_path / "test_a.py"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    line = "2 skipped: 1 for an NVIDIA GPU (on a machine with one: pytest -m gpu -n 0); 1 for an"
    assert line in done.stdout
