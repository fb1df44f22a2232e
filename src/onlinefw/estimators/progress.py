"""A progress bar for rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(verbose: int, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of ``total`` rounds.

    The bar appears with ``verbose`` in terminals and notebooks, if rich is installed.
    """
    if not verbose:
        yield lambda: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda: None
        return
    console = Console(stderr=True)
    with Progress(console=console, disable=not (console.is_terminal or console.is_jupyter)) as bar:
        task = bar.add_task("rounds", total=total)
        yield lambda: bar.advance(task)
