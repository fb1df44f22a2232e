"""Where, when and with what a table was made, and the table itself."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from joblib import cpu_count

ROOT = Path(__file__).parents[1]
BASIS = ("numpy", "scipy", "numba")
LOAD = os.getloadavg()[0]  # as the benchmark starts: what others were doing


def write_table(path: Path, title: str, lines: list[str], packages: Iterable[str] = ()) -> None:
    """Write a Markdown table; its first line says how, when and with what it was made.

    Parameters
    ----------
    path : Path
        Where; by convention ``--write`` writes it beside the script.
    title : str
        Its heading.
    lines : list of str
        The table and what is said about it.
    packages : iterable of str
        The distributions that it compares with, whose versions are named where they are installed.
    """
    text = "\n".join([f"# {title}", "", facts(packages), "", *lines])
    path.write_text(text.rstrip() + "\n", encoding="utf-8")


def facts(packages: Iterable[str] = ()) -> str:
    """Return the line on command, date, commit, versions, cores and load."""
    made_with = [f"Python {platform.python_version()}", *versions([*BASIS, *packages])]
    return (
        f"`{command(sys.argv)}` on {datetime.now(UTC).date()} at commit {commit()}; "
        f"{', '.join(made_with)}; {cores()}, load {LOAD:.1f} at the start, "
        f"{os.getloadavg()[0]:.1f} at the end."
    )


def command(words: list[str]) -> str:
    """Return what was typed, without the folders of the machine that it was typed on."""
    script = Path(words[0]).resolve().relative_to(ROOT)
    options = ["FOLDER" if Path(word).is_absolute() else word for word in words[1:]]
    return shlex.join(["python", str(script), *options])


def commit() -> str:
    """Return the commit, and whether the code has changed since.

    In a copy of the files without their history, what the environment variable COMMIT says.
    """
    head = _git("rev-parse", "--short=7", "HEAD") or os.environ.get("COMMIT", "unknown")
    changed = _git("status", "--porcelain", "--", "src", "benchmarks/*.py")
    return f"{head} with changes" if changed else head


def cores() -> str:
    """Return how many cores this process may use, and of how many where that is not all."""
    mine, there = cpu_count(), os.cpu_count()
    return f"{mine} cores" if mine == there else f"{mine} of {there} cores"


def versions(packages: Iterable[str]) -> list[str]:
    """Return names and versions of those that are installed, each once."""
    found = []
    for name in dict.fromkeys(packages):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
