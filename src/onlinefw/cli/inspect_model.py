"""``ofw inspect``: what a model file holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .. import FrankWolfeMatrixCompletion, FrankWolfeRecommender, RadiusSearch
from .._typing import Array
from .._words import counted, forgetting_in_words, memory_in_words, mixture_in_words, printable
from ..files import read_header
from ..fitting.certificate import gap_facts, gap_said
from ..fitting.column_counts import is_rare
from ..fitting.forgetting import forgetting_facts
from ..fitting.notes import columns_seen, notes_of
from .first_look import check_path
from .json_text import as_json_text
from .model_file import load_model
from .refuse import one_line_errors

__all__ = ["run_inspect"]

#: Facts that the text tells in a sentence.
SENTENCES: dict[str, Callable[..., str]] = {
    "forgetting": forgetting_in_words,
    "mixture": mixture_in_words,
    "short memory": memory_in_words,
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
        facts = describe(model, top)
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


def describe(model: Any, top: int = 10) -> dict[str, Any]:
    """Return facts about a fitted or loaded model, as values that JSON has."""
    notes = notes_of(model)
    summary = notes.get("summary", {})
    facts: dict[str, Any] = {"model": type(model).__name__}
    best = model.best_estimator_ if isinstance(model, RadiusSearch) else model
    facts["loss"] = str(best.loss)
    facts["rounds"] = int(model.n_rounds_)
    for name in ("rows learned", "progressive", "held out", "test file"):
        if name in summary:
            facts[name] = summary[name]
    facts |= gap_facts(best)
    if best.half_life is not None:
        facts["forgetting"] = forgetting_facts(best)
    if isinstance(model, FrankWolfeRecommender):
        facts |= {"users": len(model.users_), "items": len(model.items_), "rank": model.rank_}
        facts["unobserved"] = model.unobserved_
        popular = sorted(model.popularity_.items(), key=lambda one: -one[1])[:top]
        facts["most popular"] = {str(item): float(n) for item, n in popular}
        return facts
    if isinstance(model, FrankWolfeMatrixCompletion):
        shape = model.shape_
        facts |= {"rows": shape[0], "columns": shape[1], "rank": model.rank_}
        facts["radius"] = model.radius_
        for name, found in (("mixture", model.mixture_), ("short memory", model.short_memory_)):
            facts |= {} if found is None else {name: found._asdict()}
        return facts
    coef = np.reshape(best.coef_, (-1, best.n_features_in_))
    facts |= {"nonzeros": int(np.count_nonzero(coef)), "coefficients": coef.size}
    facts |= {"features": coef.shape[1], "features used": int(coef.any(axis=0).sum())}
    facts["radius"] = best.radius_
    if notes.get("columns are scaled"):
        facts["radius is for"] = (
            "columns on one scale (mean 0, deviation 1); coefficients are in the units of the file"
        )
    names = notes.get("features") or [f"feature {j + 1}" for j in range(coef.shape[1])]
    largest = [_largest(row, names, top) for row in coef]
    seen = columns_seen(notes)
    facts["seen in rows"] = {names[j]: seen[j] for j in seen if any(names[j] in r for r in largest)}
    if not hasattr(model, "classes_"):
        facts["largest coefficients"] = largest[0]
        return facts
    facts["classes"] = labels = model.classes_.tolist()
    # Two classes have one row of coefficients: positive ones favour the second class.
    favoured = labels if len(labels) > 2 else labels[1:]
    facts["largest coefficients"] = {
        str(label): row for label, row in zip(favoured, largest, strict=True)
    }
    return facts


def _largest(row: Array, names: list[str], top: int) -> dict[str, float]:
    order = np.argsort(-np.abs(row), kind="stable")[:top]
    return {names[j]: float(row[j]) for j in order if row[j] != 0.0}


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
