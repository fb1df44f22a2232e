"""``ofw report``: a page about a model."""

from __future__ import annotations

from pathlib import Path

import typer

from .._files import write_text
from ..report import report_page
from .model_file import load_model
from .refuse import one_line_errors

__all__ = ["run_report"]


def run_report(model_path: Path, out: Path) -> None:
    """Write the page, and say where it is."""
    with one_line_errors("report"):
        if out.is_dir():
            raise ValueError(f"{out} is a folder; name a file for the page with -o")
        if not out.absolute().parent.is_dir():
            raise ValueError(f"the folder {out.parent} does not exist; create it first")
        write_text(out, report_page(load_model(model_path), model_path.name))
    typer.echo(f"page: {out}")
