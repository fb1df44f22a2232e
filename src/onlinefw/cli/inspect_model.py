"""``ofw inspect``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer

from .. import FrankWolfeMatrixCompletion, RadiusSearch
from ..files import load, read_header
from .json_text import as_json_text
from .places import check_place
from .refuse import one_line_errors

__all__ = ["run_inspect"]


def run_inspect(model_path: Path, top: int, plot: Path | None, as_json: bool) -> None:
    """Print what the model is, what it has seen, and how good it is."""
    with one_line_errors("inspect"):
        if plot is not None:
            check_place(plot, "--plot")
        header, model = read_header(model_path), load(model_path)
        facts = describe(model, top)
        facts["made by"] = f"onlinefw {header['onlinefw']}"
        if plot is not None:
            from ..plots import plot_history

            best = model.best_estimator_ if isinstance(model, RadiusSearch) else model
            np.ravel(plot_history(best))[0].figure.savefig(plot, dpi=110)
    if as_json:
        typer.echo(as_json_text(facts))
        return
    for name, value in facts.items():
        if name == "largest coefficients":
            typer.echo(f"{name}:")
            for feature, coefficient in value.items():
                typer.echo(f"  {feature}\t{coefficient:+.4g}")
        elif isinstance(value, dict):
            inner = ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
            typer.echo(f"{name}: {inner}")
        else:
            typer.echo(f"{name}: {_shown(value)}")


def describe(model: Any, top: int = 10) -> dict[str, Any]:
    """Return what there is to say about a fitted or loaded model, as JSON-able values."""
    notes = getattr(model, "notes_", {})
    summary = notes.get("summary", {})
    facts: dict[str, Any] = {"model": type(model).__name__}
    best = model.best_estimator_ if isinstance(model, RadiusSearch) else model
    facts["loss"] = str(best.loss)
    facts["rounds"] = int(model.n_rounds_)
    for name in ("rows learned", "progressive", "held out", "test file"):
        if name in summary:
            facts[name] = summary[name]
    facts["certificate"] = float(best.gap_)
    if isinstance(model, FrankWolfeMatrixCompletion):
        shape = model.objective_.shape or (0, 0)
        facts |= {"rows": shape[0], "columns": shape[1], "rank": model.rank_}
        facts["radius"] = model.radius_
        return facts
    coef = np.atleast_2d(best.coef_)
    facts |= {"features": coef.shape[1], "nonzeros": int(np.count_nonzero(coef.any(axis=0)))}
    facts["radius"] = float(best.radius)
    if hasattr(model, "classes_"):
        facts["classes"] = [label.item() for label in model.classes_]
    size = np.abs(coef).max(axis=0)
    names = notes.get("features") or [f"feature {j + 1}" for j in range(coef.shape[1])]
    largest = [int(j) for j in np.argsort(-size)[:top] if size[j] > 0]
    strongest = coef[np.argmax(np.abs(coef), axis=0), np.arange(coef.shape[1])]
    facts["largest coefficients"] = {names[j]: float(strongest[j]) for j in largest}
    return facts


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
