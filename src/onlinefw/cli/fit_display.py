"""What ``ofw fit`` shows while it learns: a live line on a terminal, else plain lines."""

from __future__ import annotations

from math import isnan, nan
from time import perf_counter
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from .._words import is_informative
from ..fitting.session import Session

__all__ = ["Display"]

#: Seconds between two updates on a terminal, and between two plain lines.
LIVE, PLAIN = 0.2, 5.0


class Display:
    """A context for a run; call ``show`` after every round, and it prints now and then."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=True)
        self._live = self._console.is_terminal
        self._quiet = quiet
        self._started = self._last = perf_counter()
        self._rows_before: int | None = None
        self._bar: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._live and not self._quiet:
            columns = (BarColumn(24), TextColumn("{task.description}"), TimeRemainingColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task("reading", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, session: Session) -> None:
        """Show where the session stands, if it is time to."""
        now = perf_counter()
        if self._rows_before is None:
            self._rows_before = session.rows_learned
        if self._quiet or now - self._last < (LIVE if self._live else PLAIN):
            return
        self._last = now
        rate = (session.rows_learned - self._rows_before) / (now - self._started)
        history, (name, size) = session.model.history_, session.size_so_far()
        line = (
            f"round {session.rounds:,}  {rate:,.0f} rows/s  {session.score.name} "
            f"{session.score.value:.4g}"
        )
        # The first events have no line in the history yet, and no event has a gap.
        loss, gap = (history[what][-1] if history[what].size else nan for what in ("loss", "gap"))
        line += "" if isnan(loss) else f"  loss {loss:.4g}"
        line += "" if isnan(gap) else f"  gap {gap:.3g}"
        kind = session.model.loss_
        if kind.convex and kind.nonnegative and is_informative(gap, loss) is False:
            line += " (uninformative: above the loss)"
        line += f"  {name} {size:,}"
        if self._bar is None:
            self._console.print(line, highlight=False, soft_wrap=True)
        else:
            total, done = session.expected_rows, session.rows_learned + session.n_test
            self._bar.update(self._task, description=line, total=total, completed=done)
