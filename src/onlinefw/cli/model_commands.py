"""The commands that use a model file: predict, recommend, inspect and report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .first_look import look_at
from .options import (
    AsJson,
    DataFormat,
    Delimiter,
    Force,
    Header,
    Item,
    ModelFile,
    NFeatures,
    OnBadRow,
    SpreadsheetSafe,
    reading_options,
)

__all__ = ["app"]

app = typer.Typer()


@app.command(
    epilog="Example: ofw predict ratings.ofw pairs.csv -o predictions.csv",
)
def predict(
    model: ModelFile,
    data: Annotated[list[str], typer.Argument(help="What to predict: as for ofw fit.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="A .csv, .parquet or .jsonl file; otherwise standard output (-)."
        ),
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
    out = None if out == Path("-") else out
    outputs = [(out, "-o")]
    look_at("predict", models=[model], data=data, data_format=data_format, outputs=outputs)
    from .predict import run_predict

    columns = {"user": user, "item": item, "features": features, "n_features": n_features}
    reading = reading_options(on_bad_row, data_format, delimiter, header)
    run_predict(model, data, out, columns, reading, force, spreadsheet_safe)


@app.command(epilog="Example: ofw recommend ratings.ofw --user 196 -n 5")
def recommend(
    model: ModelFile,
    user: Annotated[str | None, typer.Option(help="Whom to recommend to.")] = None,
    users: Annotated[
        Path | None, typer.Option(help="A file with a user in every line, for many at once.")
    ] = None,
    had: Annotated[
        str | None,
        typer.Option(
            help="For somebody new: items that they have had, such as film-3,film-9; in double "
            "quotes if they have commas."
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many items.")] = 10,
    seen: Annotated[
        bool, typer.Option("--seen", help="Also items that the user has had already.")
    ] = False,
    candidates: Annotated[
        Path | None, typer.Option(help="Only items of this file, one in every line.")
    ] = None,
    exclude: Annotated[
        Path | None, typer.Option(help="No items of this file, one in every line.")
    ] = None,
    because: Annotated[
        str | None, typer.Option(help="Say which of the user's own items speak for this one.")
    ] = None,
    as_json: AsJson = False,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """Print the items that a user would like best, best first.

    For many users the output is CSV: user, rank, item and score. Scores are predicted ratings, or
    of a model of clicks numbers that are higher for what fits better.
    """
    look_at("recommend", models=[model])
    from .recommend import Wish, run_recommend

    whom = Wish(user, users, had, because)
    limits = {"candidates": candidates, "exclude": exclude}
    run_recommend(model, whom, n, seen, limits, as_json, spreadsheet_safe)


@app.command("inspect", epilog="Example: ofw inspect mail.ofw --plot history.png")
def inspect_model(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=1, help="How many coefficients to show.")] = 10,
    plot: Annotated[Path | None, typer.Option(help="Draw its learning curve here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a model is, what it has seen, and how good it is."""
    look_at("inspect", models=[model], outputs=[(plot, "--plot")])
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
    """Write a page about a model: scores, certificate, pictures.

    One file with everything inside, which opens without network.
    """
    look_at("report", models=[model], outputs=[(out, "-o")])
    from .report import run_report

    run_report(model, out, force)
