"""``ofw reproduce``: the paper's figures and table, with a verdict on every claim."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .._files import write_text
from ..datasets import DataFileError, DownloadError
from ..experiments.experiment import Advance, Experiment, Run
from ..experiments.figures import FIGURES
from ..experiments.page import page, verdict_count
from ..experiments.results import Results
from ..experiments.runner import Skipped, merged, read_or_none, run_experiment
from ..plots.figures import draw_figure
from .refuse import refuse

__all__ = ["run_reproduce"]

PICTURES = ("png", "pdf")
#: Of one width, so that the statements after them begin in one column.
MARKS = {
    "holds": "[green]holds[/]        ",
    "fails": "[red]does not hold[/]",
    "undecided": "[yellow]undecided[/]    ",
    "uninformative": "[dim]says nothing[/] ",
}


def run_reproduce(
    figure: str, dataset: str | None, quick: bool, seeds: int | None, out: Path
) -> None:
    """Play the experiments, write figures and the page, and print the verdicts."""
    chosen = _chosen(figure, dataset)
    _check_folder(out)
    console = Console()
    try:
        _reproduce(chosen, quick, seeds, out, named=dataset is not None, console=console)
    except KeyboardInterrupt:
        why = "stopped; finished runs are kept, the same command goes on from here"
        refuse("reproduce", why, 1)
    except (OSError, ModuleNotFoundError) as error:  # a full disk, a missing extra
        refuse("reproduce", f"{error}; finished runs are kept", 1)


def _chosen(figure: str, dataset: str | None) -> list[tuple[str, str]]:
    """Return the (figure, data set) pairs to run; refuse a data set that no figure has."""
    names = list(FIGURES) if figure == "all" else [figure]
    if dataset is None:
        return [(name, usual) for name in names for usual in FIGURES[name].usual_datasets()]
    chosen = [(name, dataset) for name in names if dataset in FIGURES[name].datasets]
    if not chosen:
        known = ", ".join(dict.fromkeys(d for name in names for d in FIGURES[name].datasets))
        refuse("reproduce", f"{figure} has no data set {dataset!r}; it has {known}")
    return chosen


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be written, before the runs and not after them."""
    nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        refuse("reproduce", f"cannot write to {out}; choose a folder with --out")


def _reproduce(
    chosen: list[tuple[str, str]],
    quick: bool,
    seeds: int | None,
    out: Path,
    *,
    named: bool,
    console: Console,
) -> None:
    started = perf_counter()
    skipped: list[Skipped] = []
    for name in dict.fromkeys(name for name, _ in chosen):
        for dataset in [dataset for owner, dataset in chosen if owner == name]:
            experiment = FIGURES[name].make(dataset, quick=quick, seeds=seeds)
            try:
                results = run_experiment(experiment, out, _displays(console))
            except (DownloadError, DataFileError) as error:
                if named:
                    refuse("reproduce", error, 1)
                skipped.append(Skipped(name, dataset, str(error)))
                console.print(f"[yellow]skipped[/] {name} {dataset}: {error}", soft_wrap=True)
                continue
            _say(console, results)
        _write_page(out, quick, skipped)
    claims = [claim for results in _figures(out, quick).values() for claim in results.claims]
    console.print(f"\n{verdict_count(claims)}; {perf_counter() - started:,.0f} s in all")
    console.print(f"page: {out / 'index.html'}", soft_wrap=True)


def _displays(console: Console):  # type: ignore[no-untyped-def]
    """Return what shows the progress of a run: a bar on a terminal, and a line at its end."""

    @contextmanager
    def display(experiment: Experiment, run: Run) -> Iterator[Advance]:
        title = f"{experiment.figure} {experiment.dataset}: {run.name}"
        started = perf_counter()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(
            *columns,
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as bar:
            task = bar.add_task(title, total=run.rounds)
            yield lambda done: bar.update(task, completed=done)
        console.print(f"{title} [dim]{perf_counter() - started:.1f} s[/]", highlight=False)

    return display


def _say(console: Console, results: Results) -> None:
    for claim in results.claims:
        console.print(
            f"  {MARKS[claim.verdict]} {claim.statement} [dim]{claim.measured}[/]", highlight=False
        )


def _figures(out: Path, quick: bool) -> dict[str, Results]:
    """Return the figures whose results are in the folder, merged over their data sets."""
    found = {name: merged(out, name, figure.datasets, quick) for name, figure in FIGURES.items()}
    return {name: results for name, results in found.items() if results is not None}


def _write_page(out: Path, quick: bool, skipped: list[Skipped]) -> None:
    """Draw the figures whose results have changed, and write the page with all of them."""
    figures = _figures(out, quick)
    for name, results in figures.items():
        if not _is_written(results, out / name):
            _write_figure(results, out / name)
    pictures = {name: out / name / "figure.png" for name in figures}
    seconds = sum(results.seconds for results in figures.values())
    about = f"{seconds:,.0f} s of runs on {os.cpu_count()} cores."
    write_text(
        out / "index.html", page(figures, pictures, quick=quick, skipped=skipped, about=about)
    )


def _is_written(results: Results, folder: Path) -> bool:
    drawn = all((folder / f"figure.{suffix}").exists() for suffix in PICTURES)
    return drawn and read_or_none(folder / "results.json") == results


def _write_figure(results: Results, folder: Path) -> None:
    picture = draw_figure(results)
    for suffix in PICTURES:
        picture.savefig(folder / f"figure.{suffix}", dpi=110)
    results.write(folder / "results.json")
