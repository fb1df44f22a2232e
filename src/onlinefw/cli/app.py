"""The commands of ``ofw``, their options and help texts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import rich  # noqa: F401 (if it is missing, fail here and not in the middle of a run)
import typer

from .._version import __version__
from . import typed
from .completion import mend_zsh
from .first_look import look_at
from .fit_options import losses_in_words
from .model_commands import app as model_commands
from .options import (
    DataFormat,
    Delimiter,
    Drop,
    Force,
    Header,
    Item,
    Missing,
    NFeatures,
    OnBadRow,
    Text,
    reading_options,
)
from .refuse import one_line_errors, refuse
from .serving import replay, serve
from .usage import OneLineUsage

mend_zsh()
app = typer.Typer(
    name="ofw",
    cls=OneLineUsage,
    help="Projection-free online learning: sparse and low-rank models from data that keep "
    "arriving, with a certificate.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # frames leave the words half of 80 columns
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
    epilog="Example: ofw demo --out tour, then open tour/report.html",
)
def demo(
    ratings: Annotated[int, typer.Option(min=500, help="How many ratings to make.")] = 60_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the ratings.")] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for the ratings, the model and the page.")
    ] = Path("ofw-demo"),
) -> None:
    """Take the tour: from a file of ratings to a model and a page.

    Every step is a command that works the same on your own data.
    """
    typed.say_starting()
    from .demo import run_demo

    run_demo(ratings, seed, out)


data_app = typer.Typer(
    help="List the real data sets and their terms; fetch them.",
    epilog="Example: ofw data fetch movielens100k mnist",
)
app.add_typer(data_app, name="data")


@data_app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    """List the real data sets and their terms; fetch them."""
    if context.invoked_subcommand is None:
        from .data import list_datasets

        list_datasets()


@data_app.command(epilog="Example: ofw data fetch movielens100k mnist")
def fetch(
    names: Annotated[list[str], typer.Argument(help="Names from the list of ofw data.")],
) -> None:
    """Download and verify data sets; what is there already is kept.

    The folder is the platform's cache folder, or what ONLINEFW_DATA names.
    """
    from .data import fetch_datasets

    fetch_datasets(names)


class Kind(StrEnum):
    """What ``ofw fit`` learns."""

    matrix = "matrix"
    clicks = "clicks"
    regression = "regression"
    classification = "classification"


@app.command(
    epilog="Examples: ofw fit matrix ratings.csv -o ratings.ofw; "
    "ofw fit classification mail.csv --target spam --test-fraction 0.2 -o mail.ofw; "
    "ofw fit matrix u.data --user 1 --item 2 --rating 3 -o films.ofw; "
    "ofw fit clicks plays.csv -o plays.ofw",
)
def fit(
    context: typer.Context,
    kind: Annotated[Kind, typer.Argument(help="What to learn.")],
    data: Annotated[
        list[str],
        typer.Argument(
            help="CSV, TSV, Parquet, LIBSVM or JSON lines, also .gz and .zst; several, patterns, "
            "or - for standard input."
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the model.")],
    user: Annotated[str | None, typer.Option(help="Column of users: name or number.")] = None,
    item: Item = None,
    rating: Annotated[str | None, typer.Option(help="Column of ratings.")] = None,
    at_least: Annotated[
        float | None,
        typer.Option(help="Clicks from ratings: only those that are at least this count."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    features: Annotated[
        str | None,
        typer.Option(help="Columns to predict from, such as age,3-10,f0-f39; default: all others."),
    ] = None,
    drop: Drop = None,
    missing: Annotated[
        Missing,
        typer.Option(help="A feature is missing: end the run, fill in the mean, or drop the row."),
    ] = Missing.refuse,
    text: Annotated[
        Text | None,
        typer.Option(help="Columns of text: one column for each category, or a few by a hash."),
    ] = None,
    sort_by: Annotated[
        str | None,
        typer.Option(help="Learn in the order of this column, such as timestamp (needs memory)."),
    ] = None,
    radius: Annotated[
        str, typer.Option(help="Size of the constraint set; auto finds it on the first rows.")
    ] = "auto",
    loss: Annotated[str | None, typer.Option(help=f"Loss. {losses_in_words()}.")] = None,
    batch_size: Annotated[str, typer.Option(help="Rows per round, or auto.")] = "auto",
    half_life: Annotated[
        str | None,
        typer.Option(
            help="For data that change: after so many rows one counts half as much; auto finds it."
        ),
    ] = None,
    epochs: Annotated[
        int,
        typer.Option(
            min=1, help="Passes: the first over the data, the others over what is kept in memory."
        ),
    ] = 1,
    classes: Annotated[
        str | None,
        typer.Option(help="All labels, such as ham,spam; default: those of the first rows."),
    ] = None,
    test_fraction: Annotated[
        float, typer.Option(min=0.0, max=0.99, help="Share of the rows to hold out for a score.")
    ] = 0.0,
    test: Annotated[str | None, typer.Option(help="A file to score the model on.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides which rows are held out.")] = 0,
    device: Annotated[
        str, typer.Option(help="Where the data are kept: cpu, cuda (a GPU per worker), or auto.")
    ] = "cpu",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Where to write checkpoints, for --resume.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Rounds between two checkpoints.")] = 1000,
    resume: Annotated[Path | None, typer.Option(help="Go on from a checkpoint.")] = None,
    on_bad_row: Annotated[
        OnBadRow,
        typer.Option(help="End the run at a bad row, or leave it out and count it."),
    ] = OnBadRow.stop,
    data_format: DataFormat = None,
    delimiter: Delimiter = None,
    header: Header = None,
    n_features: NFeatures = None,
    zero_based: Annotated[
        bool, typer.Option("--zero-based", help="LIBSVM features are numbered from 0.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Spread the data over this many Ray workers.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="Address of a running Ray, such as auto or host:6379.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
    force: Force = False,
) -> None:
    """Learn a model from a file or a pipe.

    Columns are given by name, or by number counted from 1. Every row is predicted before it is
    learned, which gives a fair score without test data. Ctrl-C ends the round and writes the model;
    with --checkpoint, the same command with --resume goes on. Whatever fails after the first round,
    what was learned is kept in a checkpoint, and the error says where.
    """
    from .fit_options import check_kind, check_loss

    given = [
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    with one_line_errors("fit"):
        check_kind(kind.value, given)
        if loss is not None:
            check_loss(kind.value, loss)
        if kind is Kind.clicks and rating is not None and at_least is None:
            raise ValueError("--rating goes with --at-least: which ratings count as clicks?")
    columns: dict[str, Any] = {"user": user, "item": item, "rating": rating}
    if kind not in (Kind.matrix, Kind.clicks):
        columns = {"target": target, "features": features, "zero_based": zero_based}
        columns |= {"n_features": n_features, "drop": drop, "missing": missing.value}
        columns["text"] = None if text is None else text.value
    columns["sort_by"] = sort_by
    settings: dict[str, Any] = {"test_share": test_fraction, "seed": seed}
    if kind is Kind.clicks:
        settings["at_least"] = at_least
    else:
        settings |= {
            "batch_size": "auto" if batch_size == "auto" else _count("--batch-size", batch_size),
            "radius": radius if radius == "auto" else _number("--radius", radius),
            "epochs": epochs,
        }
    if loss is not None:
        settings["loss"] = loss
    if half_life is not None:
        settings["half_life"] = half_life if half_life == "auto" else _half_life(half_life)
    if classes is not None:
        settings["classes"] = _labels(classes)
    reading = reading_options(on_bad_row, data_format, delimiter, header)
    outputs = [(out, "-o"), (checkpoint, "--checkpoint")]
    files = [*data, test]
    look_at("fit", models=[resume], data=files, data_format=data_format, outputs=outputs)
    typed.say_starting(quiet or as_json)
    from .fit import FitOptions, run_fit

    run_fit(
        FitOptions(kind.value, data, columns, reading, settings),
        out,
        test=test,
        checkpoint_at=checkpoint,
        every=every,
        resume_from=resume,
        given=given,
        workers=workers,
        ray_address=ray_address,
        device=_device(device, workers),
        quiet=quiet,
        as_json=as_json,
        force=force,
    )


app.add_typer(model_commands)


def _number(option: str, text: str, otherwise: str = " or auto") -> float:
    from ..readers.columns import is_number

    if not is_number(text):
        refuse("fit", f"{option} takes a number{otherwise}, not {text!r}")
    return float(text)


def _half_life(text: str) -> float:
    number = _number("--half-life", text)
    if not number >= 1.0:
        refuse("fit", f"--half-life counts observations, at least 1, or is auto, not {text}")
    return number


def _labels(text: str) -> list[int] | list[str]:
    """Return labels as they are read from files."""
    import numpy as np

    from ..readers.cells import labels

    given = [part.strip() for part in text.split(",")]
    read: list[Any] = labels(np.array(given, dtype=object)).tolist()
    if len(set(read)) < 2 or "" in read:
        refuse("fit", f"--classes takes at least two labels, such as ham,spam, not {text!r}")
    return read


def _count(option: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        refuse("fit", f"{option} takes a whole number from 1, or auto, not {text!r}")
    return int(text)


def _device(name: str, workers: int | None) -> str:
    """Refuse a device that this machine lacks, before any work; workers check their own."""
    from .._devices import check_device, check_device_name

    try:
        check_device(name) if workers is None else check_device_name(name)
    except (RuntimeError, ValueError) as error:
        refuse("fit", error)
    return name


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
        typer.Option(help="One data set of the figure; by default those available (see ofw data)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Reduced sizes: everything in a few minutes.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of seeds; by default each experiment has its own."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for figures, results and the page.")] = Path(
        "ofw-paper"
    ),
) -> None:
    """Make the paper's figures and rate table, with verdicts.

    Finished runs are kept in the folder: stopped with Ctrl-C, the same command goes on.
    """
    from .reproduce import run_reproduce

    run_reproduce(figure.value, dataset, quick, seeds, out)


app.command(
    epilog="Examples: ofw serve --new matrix --log events.db; ofw serve --follow events.db",
)(serve)
app.command(epilog="Example: ofw replay events.db --set half_life=5000")(replay)
