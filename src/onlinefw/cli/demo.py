"""``ofw demo``: the paper's synthetic online LASSO, live."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

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


def run_demo(rounds: int, radius_factor: float, seed: int, out: Path) -> None:
    """Run the three learners, print a table, write one picture."""
    if not out.parent.is_dir():
        typer.echo(f"ofw demo: the folder {out.parent} does not exist; create it first", err=True)
        raise typer.Exit(2)
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
        "h: distance of the expected loss from its minimum (needs the truth). certificate: the "
        "duality gap on the data seen (the learner knows it). rate: log-log slope of h over the "
        "last nine tenths of the rounds, one seed. The problem is not strongly convex, so of the "
        "theorems only the slow bound has all its constants here; it is drawn.",
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
            f"{rate.slope:+.2f} ± {(rate.high - rate.low) / 2:.2f}",
            PREDICTED[label],
            f"{curve.seconds_per_round * 1e6:,.0f} µs",
        )
    return table
