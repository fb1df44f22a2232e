"""The commands."""

from __future__ import annotations

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
