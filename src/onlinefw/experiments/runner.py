"""Play the runs of experiments, keep their records, and write what a figure has to show.

OUT/fig1/results.json, figure.png, figure.pdf
OUT/fig1/runs/full/synthetic/*.json      one record a run: a finished run is not repeated
OUT/fig1/runs/full/synthetic/part.json   the results on one data set
OUT/index.html                           all of it on one page

With reduced sizes ``quick`` is in place of ``full``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits  # comes with scikit-learn

from .._files import write_text
from .._version import __version__
from .experiment import Advance, Experiment, Record, Run
from .results import Results, plain, slug

__all__ = ["Skipped", "merged", "read_or_none", "run_experiment"]

#: Makes the progress display of a run: a context that gives the function to call with the round.
Display = Callable[[Experiment, Run], AbstractContextManager[Advance]]


@dataclass(frozen=True)
class Skipped:
    """An experiment whose data could not be had, and why."""

    figure: str
    dataset: str
    why: str


def run_experiment(experiment: Experiment, out: Path, display: Display) -> Results:
    """Play the runs that have no record yet, and write the results of the experiment."""
    folder = _folder(out, experiment.figure, experiment.settings["quick"]) / slug(
        experiment.dataset
    )
    records, seconds = {}, 0.0
    for run in experiment.runs():
        path = folder / f"{slug(run.name)}.json"
        stored = _read(path, experiment)
        if stored is None:
            stored = _play(experiment, run, display)
            write_text(path, json.dumps(stored, allow_nan=False) + "\n")
        records[run.name] = stored["values"]
        seconds += stored["seconds"]
    results = experiment.results(records, seconds)
    results.write(folder / "part.json")
    return results


def merged(out: Path, figure: str, order: Iterable[str], quick: bool) -> Results | None:
    """Return the figure with all its parts that are there, those of this version and size."""
    order = list(order)
    parts = [read_or_none(path) for path in _folder(out, figure, quick).glob("*/part.json")]
    ours = [part for part in parts if part is not None and part.version == __version__]
    ours.sort(key=lambda part: order.index(part.dataset) if part.dataset in order else 99)
    return Results.merge(ours) if ours else None


def read_or_none(path: Path) -> Results | None:
    """Read results, if they are there and can be read."""
    try:
        return Results.read(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # of another version, or damaged: made again from the records


def _play(experiment: Experiment, run: Run, display: Display) -> Record:
    started = perf_counter()
    # One BLAS thread: most matrices are small, and the numbers are then the same everywhere.
    with display(experiment, run) as advance, threadpool_limits(1, user_api="blas"):
        values = run.play(advance)
    return {
        "run": run.name,
        "settings": _as_stored(experiment.settings),
        "version": __version__,
        "seconds": perf_counter() - started,
        "values": _as_stored(values),
    }


def _read(path: Path, experiment: Experiment) -> Record | None:
    """Return the record of a run if it was made by this version with these settings."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        same = _key(stored["settings"]) == _key(_as_stored(experiment.settings))
        return stored if same and stored["version"] == __version__ and "values" in stored else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # missing or unreadable: play the run again


def _key(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what determines one run: not how many seeds there are besides its own."""
    return {name: value for name, value in settings.items() if not name.startswith("seeds")}


def _as_stored(value: Any) -> Any:
    """Return a value as JSON gives it back, so that a new record equals one read again."""
    return json.loads(json.dumps(plain(value)))


def _folder(out: Path, figure: str, quick: bool) -> Path:
    return out / figure / "runs" / ("quick" if quick else "full")
