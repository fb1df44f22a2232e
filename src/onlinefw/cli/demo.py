"""``ofw demo``: the paper's synthetic online LASSO, live."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from ..datasets import make_lasso
from ..experiments.online_lasso import (
    LEARNERS,
    Curve,
    minimum_excess,
    run_online_lasso,
    slow_bound,
)
from ..plots import plot_convergence

__all__ = ["run_demo"]

#: The paper's log t / t for both algorithms; a fixed step stalls at the noise.
PREDICTED = {"O-FW": "-1", "O-AW": "-1", "sPG": "0"}
SUFFIXES = (".png", ".pdf", ".svg")


def run_demo(rounds: int, radius_factor: float, seed: int, out: Path) -> None:
    """Run the three learners, print a table, write one picture."""
    _check_picture(out)
    try:
        with threadpool_limits(1):  # the matrices are small: a second thread only waits
            _run(rounds, radius_factor, seed, out)
    except KeyboardInterrupt:
        typer.echo("ofw demo: stopped; no picture was written", err=True)
        raise typer.Exit(1) from None


def _check_picture(out: Path) -> None:
    """Refuse a picture that could not be written, before the work and not after it."""
    problem = None
    if out.suffix.lower() not in SUFFIXES:
        problem = f"cannot draw {str(out)!r}: name a file that ends in {', '.join(SUFFIXES)}"
    elif not out.parent.is_dir():
        problem = f"the folder {out.parent} does not exist; create it first"
    elif not os.access(out if out.exists() else out.parent, os.W_OK) or out.is_dir():
        problem = f"cannot write {out}; choose another place with --out"
    if problem is not None:
        typer.echo(f"ofw demo: {problem}", err=True)
        raise typer.Exit(2)


def _run(rounds: int, radius_factor: float, seed: int, out: Path) -> None:
    console = Console()
    problem = make_lasso(seed=seed)
    radius = radius_factor * float(np.abs(problem.theta).sum())
    m, n = problem.A.shape
    console.print(
        f"Online LASSO: {n} features, {np.count_nonzero(problem.theta)} of them matter; "
        f"{rounds:,} rounds of {m} noisy rows each, "
        f"theta in the l1 ball of radius {radius:.2f} ({radius_factor:g} times the true norm)."
    )
    minimum = minimum_excess(problem, radius)
    curves: dict[str, Curve] = {}
    columns = (
        TextColumn("{task.description:>6}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        tasks = {label: progress.add_task(label, total=rounds) for label in LEARNERS}
        for label, learner_class in LEARNERS.items():

            def advance(t: int, task: object = tasks[label]) -> None:
                if t % 50 == 0 or t == rounds:
                    progress.update(task, completed=t)  # type: ignore[arg-type]

            curves[label] = run_online_lasso(
                problem, radius, rounds, learner_class, minimum=minimum, on_round=advance
            )
    console.print(_table(curves, rounds))
    console.print(
        "h: how far the expected loss is from its minimum (to know it takes the truth). "
        "certificate: an upper bound on the same distance for the mean loss of the data seen, "
        "which the learner computes by itself. rate: log-log slope of h from a tenth of the rounds "
        "on (one seed). sPG: stochastic projected gradient with its usual fixed step.",
        style="dim",
    )
    t = next(iter(curves.values())).t
    plot_convergence(curves, (t, slow_bound(problem, radius, t))).savefig(out, dpi=130)
    console.print(f"picture: {out}", soft_wrap=True)


def _table(curves: dict[str, Curve], rounds: int) -> Table:
    table = Table(
        title=f"after {rounds:,} rounds", box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True
    )
    table.add_column("", no_wrap=True)
    for column in ("h", "certificate", "nonzeros", "rate", "predicted", "time/round"):
        table.add_column(column, justify="right", no_wrap=True)
    for label, curve in curves.items():
        rate = curve.rate(first=max(20, rounds // 10))
        table.add_row(
            label,
            f"{curve.final_h:.3g}",
            f"{curve.final_certificate:.3g}",
            str(curve.nonzeros),
            f"{rate.slope:+.2f} +- {(rate.high - rate.low) / 2:.2f}",
            PREDICTED[label],
            f"{curve.seconds_per_round * 1e6:,.0f} us",
        )
    return table
