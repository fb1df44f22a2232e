"""``ofw inspect``: what a model file holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .. import RadiusSearch
from .._words import counted, forgetting_in_words, mood_in_words, printable
from ..files import read_header
from ..fitting.certificate import gap_said
from ..fitting.column_counts import is_rare
from ..fitting.described import described
from ..fitting.notes import notes_of
from .first_look import check_path
from .json_text import as_json_text
from .model_file import load_model
from .refuse import one_line_errors

__all__ = ["run_inspect"]

#: Facts that the text tells in a sentence.
SENTENCES: dict[str, Callable[..., str]] = {
    "forgetting": forgetting_in_words,
    "mood": mood_in_words,
}
RARE = "rare, so this rests on few rows"
#: What ``ofw fit`` notes of itself.
MADE = {"date": "on", "command": "with"}


def run_inspect(model_path: Path, top: int, plot: Path | None, as_json: bool) -> None:
    """Print what the model is, what it has seen, and how good it is."""
    with one_line_errors("inspect"):
        if plot is not None:
            check_path(plot, "--plot")
        model, header = load_model(model_path), read_header(model_path)
        facts = described(model, top)
        facts["made by"] = f"onlinefw {header['onlinefw']}"
        made = notes_of(model).get("made", {})
        facts |= {f"made {how}": made[what] for what, how in MADE.items() if what in made}
        if plot is not None:
            from ..plots import plot_history

            best = model.best_estimator_ if isinstance(model, RadiusSearch) else model
            np.ravel(plot_history(best))[0].figure.savefig(plot, dpi=110)
    if as_json:
        typer.echo(as_json_text(facts))
        return
    for line in _lines(facts):
        typer.echo(printable(line))
    if plot is not None:
        typer.echo(f"plot: {plot}")


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if name == "gap":
            yield gap_said(facts)
        elif name in ("gap is a certificate", "certificate is informative") or value is None:
            continue
        elif name == "largest coefficients" and "classes" in facts:
            for label, row in value.items():
                yield f"{name}, for the class {label}:"
                yield from _rows(row, facts)
        elif name == "largest coefficients":
            yield f"{name}:"
            yield from _rows(value, facts)
        elif name == "seen in rows":
            continue  # beside the coefficients
        elif name in SENTENCES:
            yield f"{name}: {SENTENCES[name](**value)}"
        elif isinstance(value, dict):
            yield f"{name}: {', '.join(f'{key} {_shown(item)}' for key, item in value.items())}"
        else:
            yield f"{name}: {_shown(value)}"


def _rows(coefficients: dict[str, float], facts: dict[str, Any]) -> Iterator[str]:
    """Return lines of coefficients, with the number of rows in which their columns were seen."""
    seen, rows = facts["seen in rows"], facts.get("rows learned", 0)
    for feature, value in coefficients.items():
        beside = ""
        if feature in seen:
            rare = f": {RARE}" if is_rare(seen[feature], rows) else ""
            beside = f"\tseen in {seen[feature]:,} of {counted(rows, 'row')}{rare}"
        yield f"  {feature}\t{value:+.4g}{beside}"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
