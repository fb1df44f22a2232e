"""``ofw data``: list the real data sets, and fetch them."""

from __future__ import annotations

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..datasets import data_folder, fetch
from ..datasets.registry import ENTRIES
from ..datasets.store import available
from .refuse import refuse

__all__ = ["fetch_datasets", "list_datasets"]


def list_datasets() -> None:
    """Print one row per data set, and the folder."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    for column in ("name", "size", "here"):
        table.add_column(column, no_wrap=True)
    table.add_column("what, and its terms")
    for name, entry in ENTRIES.items():
        here = "yes" if available(name) else "no"
        table.add_row(name, entry.size, here, f"{entry.what} ({entry.terms})")
    console = Console()
    console.print(table)
    # On a line of its own, not wrapped, so that it can be copied.
    console.print(f"folder: {data_folder()}", soft_wrap=True, highlight=False)


def fetch_datasets(names: list[str]) -> None:
    """Load each data set, from the folder or from its publisher; stop at the first that fails."""
    unknown = [name for name in names if name not in ENTRIES]
    if unknown:
        refuse("data", f"no data set {unknown[0]!r}; choose from {', '.join(ENTRIES)}")
    for name in names:
        try:
            fetch(name)
        except (OSError, ModuleNotFoundError) as error:
            refuse("data", error, 1)
        except KeyboardInterrupt:
            refuse("data", "stopped; the next fetch continues the download where this one was", 1)
        typer.echo(f"{name}: ready in {data_folder()}")
