"""``ofw recommend``: the items a user would rate highest."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from .. import FrankWolfeMatrixCompletion
from .._words import printable
from ..readers import IdMap
from .model_file import ids_of, load_model
from .refuse import one_line_errors
from .spreadsheet import safe_text

__all__ = ["run_recommend"]


def run_recommend(
    model_path: Path,
    user: str,
    n: int,
    seen: bool,
    as_json: bool,
    spreadsheet_safe: bool = False,
) -> None:
    """Print items with their predicted ratings, best first."""
    with one_line_errors("recommend"):
        model = load_model(model_path)
        if not isinstance(model, FrankWolfeMatrixCompletion):
            raise ValueError(
                f"{model_path} is a {type(model).__name__}: only a matrix model recommends "
                "(ofw fit matrix)"
            )
        users = IdMap()
        row_ids, _ = ids_of(model)
        users.add(row_ids)
        row = int(users.lookup([user])[0])
        if row < 0:
            raise ValueError(
                f"{model_path} has not seen the user {user!r}; it knows {len(users):,}, "
                f"such as {', '.join(map(str, users.ids[:3]))}"
            )
        items, scores = model.recommend(row_ids[row], n, exclude_seen=not seen)
    if as_json:
        pairs = zip(items.tolist(), scores.tolist(), strict=True)
        typer.echo(json.dumps([{"item": item, "prediction": score} for item, score in pairs]))
        return
    for item, score in zip(items.tolist(), scores, strict=True):
        name = safe_text(item) if spreadsheet_safe and isinstance(item, str) else item
        typer.echo(f"{printable(name)}\t{score:.3f}")
