"""The commands of ``ofw``, their options and help texts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import rich  # noqa: F401 (if it is missing, fail here and not in the middle of a run)
import typer

from .._version import __version__
from .completion import mend_zsh
from .fit_options import losses_in_words
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
    """Take the tour: a file of ratings, a model learned from it, a page about the model.

    Every step is a command that works the same on your own data.
    """
    from .demo import run_demo

    run_demo(ratings, seed, out)


data_app = typer.Typer(
    help="List the real data sets, their terms and which are here; fetch more.",
    epilog="Example: ofw data fetch movielens100k mnist",
)
app.add_typer(data_app, name="data")


@data_app.callback(invoke_without_command=True)
def data(context: typer.Context) -> None:
    """List the real data sets, their terms and which are here; fetch more."""
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


class Kind(StrEnum):
    """What ``ofw fit`` learns."""

    matrix = "matrix"
    regression = "regression"
    classification = "classification"


class OnBadRow(StrEnum):
    """What to do with a row that cannot be used."""

    stop = "raise"
    skip = "skip"


# Options that several commands have.
Item = Annotated[str | None, typer.Option(help="Column of items.")]
NFeatures = Annotated[
    int | None, typer.Option(min=1, help="Features of LIBSVM rows, where a pipe has them.")
]
DataFormat = Annotated[
    str | None, typer.Option("--format", help="csv, tsv, parquet, libsvm or jsonl.")
]
Delimiter = Annotated[str | None, typer.Option(help="What separates cells.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether line 1 names the columns.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace a file of another kind where output goes.")
]

SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe", help="Put ' before text that a spreadsheet would run as a formula."
    ),
]


@app.command(
    epilog="Examples: ofw fit matrix ratings.csv -o ratings.ofw; "
    "ofw fit classification mail.csv --target spam --test-fraction 0.2 -o mail.ofw; "
    "ofw fit matrix u.data --user 1 --item 2 --rating 3 -o films.ofw",
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
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    features: Annotated[
        str | None,
        typer.Option(help="Columns to predict from, such as age,3-10; default: all others."),
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
    from .fit import FitOptions, run_fit
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
    columns: dict[str, Any] = {"user": user, "item": item, "rating": rating}
    if kind is not Kind.matrix:
        columns = {"target": target, "features": features, "zero_based": zero_based}
        columns["n_features"] = n_features
    settings: dict[str, Any] = {
        "batch_size": "auto" if batch_size == "auto" else _count("--batch-size", batch_size),
        "radius": radius if radius == "auto" else _number("--radius", radius),
        "test_share": test_fraction,
        "seed": seed,
        "epochs": epochs,
    }
    if loss is not None:
        settings["loss"] = loss
    if half_life is not None:
        number = half_life if half_life == "auto" else _number("--half-life", half_life)
        settings["half_life"] = number
    if classes is not None:
        settings["classes"] = _labels(classes)
    reading = _reading(on_bad_row, data_format, delimiter, header)
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


ModelFile = Annotated[Path, typer.Argument(help="A model that ofw fit has written.")]


@app.command(
    epilog="Example: ofw predict ratings.ofw pairs.csv -o predictions.csv",
)
def predict(
    model: ModelFile,
    data: Annotated[list[str], typer.Argument(help="What to predict: as for ofw fit.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="A .csv or .parquet file; otherwise standard output."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Column of users, if named otherwise.")] = None,
    item: Item = None,
    features: Annotated[str | None, typer.Option(help="Columns to predict from.")] = None,
    n_features: NFeatures = None,
    on_bad_row: Annotated[
        OnBadRow,
        typer.Option(help="End the run at a bad row, or leave the predictions of such rows empty."),
    ] = OnBadRow.stop,
    data_format: DataFormat = None,
    delimiter: Delimiter = None,
    header: Header = None,
    force: Force = False,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """Predict rows or pairs with a model, in their order.

    Users and items that the model has not seen are predicted from what is known without them, and
    counted on standard error. Ids and labels are written as they are: one that begins with =, +, -
    or @ runs as a formula where a spreadsheet opens the CSV, unless you say --spreadsheet-safe.
    """
    from .predict import run_predict

    columns = {"user": user, "item": item, "features": features, "n_features": n_features}
    reading = _reading(on_bad_row, data_format, delimiter, header)
    run_predict(model, data, out, columns, reading, force, spreadsheet_safe)


@app.command(epilog="Example: ofw recommend ratings.ofw --user 196 -n 5")
def recommend(
    model: ModelFile,
    user: Annotated[str, typer.Option(help="Whom to recommend to.")],
    n: Annotated[int, typer.Option("-n", min=1, help="How many items.")] = 10,
    seen: Annotated[bool, typer.Option("--seen", help="Also items rated already.")] = False,
    as_json: AsJson = False,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """Print the items that a user would rate highest, best first."""
    from .recommend import run_recommend

    run_recommend(model, user, n, seen, as_json, spreadsheet_safe)


@app.command("inspect", epilog="Example: ofw inspect mail.ofw --plot history.png")
def inspect_model(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=1, help="How many coefficients to show.")] = 10,
    plot: Annotated[Path | None, typer.Option(help="Draw its learning curve here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a model is, what it has seen, and how good it is."""
    from .inspect_model import run_inspect

    run_inspect(model, top, plot, as_json)


@app.command(epilog="Example: ofw report ratings.ofw -o report.html, then open report.html")
def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the page.")] = Path(
        "report.html"
    ),
    force: Force = False,
) -> None:
    """Write a page about a model: its scores, learning curve, certificate and pictures.

    One file with everything inside, which opens without network.
    """
    from .report import run_report

    run_report(model, out, force)


def _reading(
    on_bad_row: OnBadRow, data_format: str | None, delimiter: str | None, header: bool | None
) -> dict[str, Any]:
    """Return how files are to be read, as the readers call it."""
    return {
        "on_bad_row": on_bad_row.value,
        "format": data_format,
        "delimiter": delimiter,
        "header": header,
    }


def _number(option: str, text: str, otherwise: str = " or auto") -> float:
    from ..readers.columns import is_number

    if not is_number(text):
        refuse("fit", f"{option} takes a number{otherwise}, not {text!r}")
    return float(text)


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


app.command(
    epilog="Examples: ofw serve --new matrix --log events.db; ofw serve --follow events.db",
)(serve)
app.command(epilog="Example: ofw replay events.db --set half_life=5000")(replay)
