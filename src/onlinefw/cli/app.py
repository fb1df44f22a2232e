"""The commands."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import rich  # noqa: F401 (said to be missing here rather than in the middle of a run)
import typer

from .._version import __version__

app = typer.Typer(
    name="ofw",
    help="Projection-free online learning: sparse and low-rank models from data that keep "
    "arriving, with a certificate.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"onlinefw {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options before the command."""


@app.command(
    epilog="Example: ofw demo --rounds 2000 --out lasso.png",
)
def demo(
    rounds: Annotated[int, typer.Option(min=100, help="Rounds to stream.")] = 5000,
    radius: Annotated[
        float,
        typer.Option(
            min=0.01, max=100.0, help="Radius of the l1 ball, as a multiple of the true l1 norm."
        ),
    ] = 1.1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("ofw-demo.png"),
) -> None:
    """Stream the paper's online LASSO through O-FW, O-AW and stochastic projected gradient."""
    from .demo import run_demo

    run_demo(rounds, radius, seed, out)


data_app = typer.Typer(
    help="List the real data sets with their terms and what is there of them; fetch more.",
    epilog="Example: ofw data fetch movielens100k mnist",
)
app.add_typer(data_app, name="data")


@data_app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    """List the real data sets with their terms and what is there of them; fetch more."""
    if context.invoked_subcommand is None:
        from .data import list_datasets

        list_datasets()


@data_app.command(epilog="Example: ofw data fetch movielens100k mnist")
def fetch(
    names: Annotated[list[str], typer.Argument(help="Names from the list of ofw data.")],
) -> None:
    """Download, verify and parse data sets into the folder; what is there already is kept.

    The folder is the platform's cache folder, or what ONLINEFW_DATA names.
    """
    from .data import fetch_datasets

    fetch_datasets(names)


class PaperFigure(StrEnum):
    """What ``ofw reproduce`` makes."""

    fig1 = "fig1"
    fig2 = "fig2"
    fig3 = "fig3"
    fig4 = "fig4"
    table1 = "table1"
    all = "all"


@app.command(
    epilog="Example: ofw reproduce fig3 --quick --out paper, then open paper/index.html",
)
def reproduce(
    figure: Annotated[PaperFigure, typer.Argument(help="Which figure or table of the paper.")] = (
        PaperFigure.all
    ),
    dataset: Annotated[
        str | None,
        typer.Option(help="One data set of the figure; by default those at hand (see ofw data)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Reduced sizes: everything in under 5 minutes.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of seeds; by default each experiment has its own."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for figures, results and the page.")] = Path(
        "ofw-paper"
    ),
) -> None:
    """Make the paper's figures and rate table, with a verdict on every claim.

    Finished runs are kept in the folder: stopped with Ctrl-C, the same command goes on.
    """
    from .reproduce import run_reproduce

    run_reproduce(figure.value, dataset, quick, seeds, out)
