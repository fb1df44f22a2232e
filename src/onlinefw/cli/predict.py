"""``ofw predict``: what a model says about rows or pairs, in their order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .. import FrankWolfeClassifier, FrankWolfeMatrixCompletion, RadiusSearch
from ..files import load
from ..readers import DataError, IdMap, read_ratings, read_rows
from .refuse import one_line_errors

__all__ = ["run_predict"]


def run_predict(
    model_path: Path,
    data: list[str],
    out: Path | None,
    columns: dict[str, Any],
    reading: dict[str, Any],
) -> None:
    """Read, predict and write chunk by chunk."""
    with one_line_errors("predict"):
        model = load(model_path)
        notes = getattr(model, "notes_", {})
        given = {name: value for name, value in columns.items() if value is not None}
        columns = {**notes.get("columns", {}), **given}
        if isinstance(model, FrankWolfeMatrixCompletion):
            tables = _pairs(model, data, columns, reading)
        else:
            tables = _rows(model, data, columns, reading, notes.get("features"))
        with _sink(out) as write:
            for table in tables:
                write(table)


def _pairs(
    model: FrankWolfeMatrixCompletion, data: list[str], columns: Any, reading: Any
) -> Iterator[dict[str, Any]]:
    users, items = IdMap(), IdMap()
    users.add(model.row_ids_)
    items.add(model.col_ids_)
    unknown = {"users": 0, "items": 0, "rows": 0}
    wanted = {name: columns.get(name) for name in ("user", "item")}
    with read_ratings(data, needs_rating=False, **wanted, **reading) as reader:
        for chunk in reader:
            X = np.column_stack((users.lookup(chunk.users), items.lookup(chunk.items)))
            unknown["users"] += int((X[:, 0] < 0).sum())
            unknown["items"] += int((X[:, 1] < 0).sum())
            unknown["rows"] += int((X < 0).any(axis=1).sum())
            X[X < 0] = max(len(users), len(items))  # a number that no row or column has
            predicted = model.predict(X, unknown="fallback")
            yield {"user": chunk.users, "item": chunk.items, "prediction": predicted}
    if unknown["rows"]:
        typer.echo(
            f"ofw predict: {unknown['rows']:,} rows with a user ({unknown['users']:,}) or item "
            f"({unknown['items']:,}) that the model has not seen: predicted from what is known "
            "without it",
            err=True,
        )


def _rows(
    model: Any, data: list[str], columns: Any, reading: Any, features: list[str] | None
) -> Iterator[dict[str, Any]]:
    wanted = {
        "target": columns.get("target"),
        "features": columns.get("features") or features,
        "zero_based": columns.get("zero_based", False),
    }
    with read_rows(
        data, needs_target=False, n_features=model.n_features_in_, **wanted, **reading
    ) as reader:
        if reader.n_features not in (None, model.n_features_in_):
            raise DataError(
                f"the rows have {reader.n_features} features and the model {model.n_features_in_}",
                remedy="say which with --features",
            )
        best = model.best_estimator_ if isinstance(model, RadiusSearch) else model
        sure = isinstance(best, FrankWolfeClassifier) and hasattr(best, "predict_proba")
        for chunk in reader:
            table = {"prediction": model.predict(chunk.X)}
            if sure:
                table["probability"] = model.predict_proba(chunk.X).max(axis=1)
            yield table


@contextmanager
def _sink(out: Path | None) -> Iterator[Any]:
    """Give a function that writes tables: CSV to standard output, CSV or Parquet to a file."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from .._files import whole_file

    writer: Any = None

    def open_writer(file: Any, schema: Any) -> Any:
        if out is not None and out.suffix == ".parquet":
            return parquet.ParquetWriter(file, schema)
        return csv.CSVWriter(file, schema)

    @contextmanager
    def target() -> Iterator[Any]:
        if out is None:
            yield sys.stdout.buffer
        else:
            with whole_file(out) as file:
                yield file

    with target() as file:

        def write(columns: dict[str, Any]) -> None:
            nonlocal writer
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            if writer is None:
                writer = open_writer(file, table.schema)
            writer.write_table(table.cast(writer.schema) if hasattr(writer, "schema") else table)

        yield write
        if writer is not None:
            writer.close()
