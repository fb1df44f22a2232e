"""``ofw predict``: predict rows or pairs with a model, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .. import (
    FrankWolfeClassifier,
    FrankWolfeMatrixCompletion,
    FrankWolfeRecommender,
    RadiusSearch,
)
from .._typing import Array
from .._words import counted, printable
from ..fitting.notes import notes_of
from ..readers import DataError, IdMap, Reader, read_ratings, read_rows
from .model_file import ids_of, load_model, nobody
from .paths import check_output
from .predictions_file import check_format, table_sink
from .refuse import one_line_errors
from .spreadsheet import safe_columns

__all__ = ["run_predict", "with_gaps"]


def run_predict(
    model_path: Path,
    data: list[str],
    out: Path | None,
    columns: dict[str, Any],
    reading: dict[str, Any],
    force: bool = False,
    spreadsheet_safe: bool = False,
) -> None:
    """Read, predict and write chunk by chunk."""
    with one_line_errors("predict"):
        if out is not None:
            check_format(out, spreadsheet_safe)
            check_output(out, "-o", "predictions", [*data, model_path], force)
        model = load_model(model_path)
        notes = notes_of(model)
        given = {name: value for name, value in columns.items() if value is not None}
        columns = {**notes.get("columns", {}), "features": None, **given}
        if isinstance(model, (FrankWolfeMatrixCompletion, FrankWolfeRecommender)):
            tables = _pairs(model, data, columns, reading)
        else:
            if reading["header"] is None and _has_names_like_numbers(notes):
                reading = {**reading, "header": True}
            tables = _rows(model, data, columns, reading, notes)
        with table_sink(out) as write:
            for table in tables:
                write(safe_columns(table) if spreadsheet_safe else table)


def _has_names_like_numbers(notes: dict[str, Any]) -> bool:
    """Whether a feature has a name that could be taken for the number of a column."""
    features = _columns_of(notes) or []
    return bool(notes.get("header")) and any(name.isdecimal() for name in features)


def _pairs(
    model: FrankWolfeMatrixCompletion | FrankWolfeRecommender,
    data: list[str],
    columns: Any,
    reading: Any,
) -> Iterator[dict[str, Any]]:
    users, items = IdMap(), IdMap()
    for known, ids in zip((users, items), ids_of(model), strict=True):
        known.add(ids)
    unknown = {"users": 0, "items": 0, "rows": 0}
    called: list[str] = []
    wanted = {name: columns.get(name) for name in ("user", "item")}
    with read_ratings(data, needs_rating=False, **wanted, **reading) as reader:

        def predicted(chunk: Any) -> dict[str, Any]:
            X = np.column_stack((users.lookup(chunk.users), items.lookup(chunk.items)))
            unknown["users"] += int((X[:, 0] < 0).sum())
            unknown["items"] += int((X[:, 1] < 0).sum())
            unknown["rows"] += int((X < 0).any(axis=1).sum())
            if not called:
                called.extend(_names_of_pairs(reader))
            table = dict(zip(called, (chunk.users, chunk.items), strict=True))
            return {**table, "prediction": _of_pairs(model, X)}

        yield from _tables(reader, predicted)
    if unknown["rows"]:
        typer.echo(
            f"ofw predict: {counted(unknown['rows'], 'row')} with a user ({unknown['users']:,}) or "
            f"item ({unknown['items']:,}) that the model has not seen: predicted from what is "
            "known without it",
            err=True,
        )


def _of_pairs(model: FrankWolfeMatrixCompletion | FrankWolfeRecommender, X: Array) -> Array:
    """Return predictions of pairs of numbers, -1 for what is not known."""
    if isinstance(model, FrankWolfeMatrixCompletion):
        X[X < 0] = max(model.shape_)  # an index that no row or column has
        return model.predict_entries(*X.T, unknown="fallback")
    users, items = ids_of(model)
    names = [*users.tolist(), nobody(users)]  # number -1 is the last
    known = X[:, 1] >= 0
    scores = np.full(len(X), np.nan)
    pairs = [[names[i], items[j]] for i, j in X[known].tolist()]
    if pairs:
        scores[known] = model.predict(pairs)
    return scores


def _names_of_pairs(reader: Any) -> tuple[str, str]:
    """Return the file's names of the two columns, unless one of them is that of the predictions."""
    names = tuple(reader.column_names.values())[:2] if reader.has_header else None
    return names if names and "prediction" not in names else ("user", "item")


def _columns_of(notes: dict[str, Any]) -> list[str] | None:
    """Return the columns from which a model's features are made, as its data called them."""
    treatment = notes.get("treatment") or {}
    return treatment.get("columns") or notes.get("features")


def _rows(
    model: Any, data: list[str], columns: Any, reading: Any, notes: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    # The reader puts the columns in order and gives arrays, which have no names to compare.
    model.__dict__.pop("feature_names_in_", None)
    names = columns["features"] or _columns_of(notes)
    wanted = {
        "target": columns.get("target"),
        "features": names,
        "like": notes.get("treatment"),
        "zero_based": columns.get("zero_based", False),
        # LIBSVM rows have no names: a model of named columns can only compare their width, so
        # it must not be set here to what the model has.
        "n_features": columns.get("n_features") if names else model.n_features_in_,
    }
    with read_rows(data, needs_target=False, **wanted, **reading) as reader:
        if reader.n_features not in (None, model.n_features_in_):
            raise DataError(
                f"the rows have {counted(reader.n_features, 'feature')} and the model "
                f"{model.n_features_in_}",
                file=", ".join(data),
                remedy="say which with --features"
                if reader.feature_names
                else "give rows as the model was learned from: LIBSVM features have no names",
            )
        best = model.best_estimator_ if isinstance(model, RadiusSearch) else model
        sure = isinstance(best, FrankWolfeClassifier) and hasattr(best, "predict_proba")

        def predicted(chunk: Any) -> dict[str, Any]:
            table = {"prediction": model.predict(chunk.X)}
            if sure:
                table["probability"] = model.predict_proba(chunk.X).max(axis=1)
            return table

        yield from _tables(reader, predicted)


def _tables(reader: Any, predicted: Callable[[Any], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield Arrow columns with a value for each row read; NaN or null for one left out."""
    import pyarrow as pa

    empty: dict[str, Any] = {}
    for chunk, indices in with_gaps(reader):
        if chunk is not None:
            columns = {name: pa.array(values) for name, values in predicted(chunk).items()}
            empty = {name: column[:0] for name, column in columns.items()}
        elif empty:
            columns = empty
        else:
            raise DataError("no row can be predicted", remedy=str(reader.bad_rows))
        take = pa.array(indices, mask=indices < 0)
        yield {name: column.take(take) for name, column in columns.items()}
    if reader.bad_rows.total:
        left = printable(reader.bad_rows)
        typer.echo(f"ofw predict: {left}; their predictions are NaN or empty", err=True)


def with_gaps(reader: Reader[Any]) -> Iterator[tuple[Any, Array]]:
    """Yield chunks, each with an index for every row of the file: into the chunk, or -1 for a gap.

    If the data end with bad rows, the last chunk is None and its indices are all -1.
    """
    gaps, file, passed_before = 0, None, 0
    for chunk in reader:
        at = chunk.position
        if at["file"] != file:
            file, passed_before = at["file"], 0
        passed = at["row"] + at["passed"]
        n_here = passed - passed_before
        # All other rows left out so far were at the end of the files before this one.
        ended = reader.bad_rows.total - gaps - (n_here - len(chunk))
        indices = np.full(ended + n_here, -1)
        indices[ended + chunk.rows - passed_before - 1] = np.arange(len(chunk))
        gaps += len(indices) - len(chunk)
        passed_before = passed
        yield chunk, indices
    if reader.bad_rows.total > gaps:
        yield None, np.full(reader.bad_rows.total - gaps, -1)
