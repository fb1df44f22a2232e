"""Options that several commands of ``ofw`` have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class OnBadRow(StrEnum):
    """What to do with a row that cannot be used."""

    stop = "raise"
    skip = "skip"


class Missing(StrEnum):
    """What to do where a feature is missing."""

    refuse = "refuse"
    mean = "mean"
    drop = "drop"


class Text(StrEnum):
    """How columns of text become numbers."""

    one_hot = "one-hot"
    hash = "hash"


Drop = Annotated[str | None, typer.Option(help="Columns not to predict from, such as name,f7-f9.")]
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


ModelFile = Annotated[Path, typer.Argument(help="A model that ofw fit has written.")]


def reading_options(
    on_bad_row: OnBadRow, data_format: str | None, delimiter: str | None, header: bool | None
) -> dict[str, Any]:
    """Return how files are to be read, as the readers call it."""
    return {
        "on_bad_row": on_bad_row.value,
        "format": data_format,
        "delimiter": delimiter,
        "header": header,
    }
