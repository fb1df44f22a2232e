"""``ofw report``: a page about a model."""

from __future__ import annotations

from pathlib import Path

import typer

from .._files import write_text
from ..report import report_page
from .fit_display import Display
from .model_file import load_model
from .paths import check_output
from .refuse import one_line_errors

__all__ = ["run_report"]


def run_report(model_path: Path, out: Path, force: bool = False) -> None:
    """Write the page, and say where it is."""
    with one_line_errors("report"):
        check_output(out, "-o", "page", [model_path], force)
        with Display(quiet=False) as display:
            display.phase(f"reading {model_path.name}")
            model = load_model(model_path)
            display.phase("making the page")
            write_text(out, report_page(model, model_path.name))
    typer.echo(f"page: {out}")
