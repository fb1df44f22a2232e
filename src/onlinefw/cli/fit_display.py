"""What ``ofw fit`` shows while it works: a live line on a terminal, else a plain line now and then.

The line names what is being done (reading, compiling, racing radii, learning, writing) with the
seconds that it has taken, so that nothing ever seems to stand still.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack
from math import isnan, nan
from time import perf_counter
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .._words import is_informative
from ..fitting.session import Session
from . import typed
from .compiling import Compiling

__all__ = ["Display"]

#: Seconds between two looks at the session for a terminal, and between two plain lines.
LIVE, PLAIN = 0.2, 5.0
#: Columns of the bar.
BAR = 12
#: Rows a second are those of the last so many seconds ...
RECENT = 5.0
#: ... and they are told, with the time that is left, when so many seconds have been measured.
MEASURED = 0.5
#: Compiling that took less is not worth a word.
A_MOMENT = 0.5
#: What is done between rounds: the bar stays where it is.
BETWEEN_ROUNDS = {"reading", "learning", "writing the checkpoint"}
ONCE = "once on this machine"


class Display:
    """A context for a command; ``phase`` names what it does, ``show`` is called after a round."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=True)
        self._quiet, self._terminal = quiet, self._console.is_terminal
        self._compiling = Compiling(self._say_compiling)
        self._stack = ExitStack()
        self._doing, self._since = "reading", self._worked()
        self._last = perf_counter()
        #: What is known of the rounds, the most important first, and the share that is done.
        self._facts: list[str] = []
        self._share: float | None = None
        self._marks: deque[tuple[float, int]] = deque()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._compiling.watched())
        if self._terminal and not self._quiet:
            live = Live(console=self._console, get_renderable=self._line, transient=True)
            self._stack.enter_context(live)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def phase(self, doing: str) -> None:
        """Name what is done from now on."""
        if doing not in BETWEEN_ROUNDS:
            self._facts, self._share = [], None
        self._doing, self._since = doing, self._worked()
        self._say(doing)

    def show(self, session: Session) -> None:
        """Show where the session stands, if it is time to."""
        self._mark(session.rows_learned)
        if self._quiet or perf_counter() - self._last < (LIVE if self._terminal else PLAIN):
            return
        total, done = session.expected_rows, session.rows_learned + session.n_test
        share = min(1.0, done / total) if total and not session.refined else None
        facts = [f"{session.rows_learned:,} rows", *self._speed(session), *_standing(session)]
        doing = _doing(session)
        if doing != self._doing:
            self._doing, self._since = doing, self._worked()
        self._facts, self._share = facts, share
        percent = "" if share is None else f" {share:.0%}"
        self._say("  ".join([f"{doing}{percent}", *facts]))
        self._last = perf_counter()

    def say_how_long(self) -> None:
        """Say at the end how long the command took, and how much of it was compiling."""
        took, compiled = typed.seconds(), self._compiling.seconds
        if self._quiet or (took < PLAIN and not self._terminal):
            return
        of_it = f", {typed.in_words(compiled)} of it compiling ({ONCE})"
        line = f"took {typed.in_words(took)}{of_it if compiled > A_MOMENT else ''}"
        self._console.print(line, highlight=False, soft_wrap=True)

    def _worked(self) -> float:
        """Return a time that stands still while loops are compiled.

        Compiling happens in the first rounds only, so it says nothing about those to come.
        """
        return perf_counter() - self._compiling.seconds

    # Rows a second --------------------------------------------------------------------------------

    def _mark(self, rows: int) -> None:
        """Note how many rows were learned by now."""
        now = self._worked()
        self._marks.append((now, rows))
        while self._marks[0][0] < now - RECENT and len(self._marks) > 2:
            self._marks.popleft()

    def _speed(self, session: Session) -> list[str]:
        """Return rows a second and the time left, as soon as they can be told."""
        (began, before), (now, rows) = self._marks[0], self._marks[-1]
        if session.refined or now - began < MEASURED or rows <= before:
            return []
        rate = (rows - before) / (now - began)
        said = [f"{rate:,.0f} rows/s"]
        if session.expected_rows is not None:
            left = session.expected_rows - rows - session.n_test
            said += [f"{typed.in_words(round(left / rate))} left"] if left > rate else []
        return said

    # What is printed ------------------------------------------------------------------------------

    def _line(self) -> Table:
        """Return the live line, no wider than the terminal: a bar, what is done, facts that fit."""
        line, bar = Table.grid(padding=(0, 1)), []
        if self._share is not None and not self._compiling.now:
            bar = [ProgressBar(total=1.0, completed=self._share, width=BAR)]
        room = self._console.width - (BAR + 2 if bar else 1)
        text = self._now()
        for fact in self._facts if not self._compiling.now else []:
            if len(text) + 2 + len(fact) <= room:
                text += f"  {fact}"
        line.add_row(*bar, Text(text, no_wrap=True, overflow="ellipsis"))
        return line

    def _now(self) -> str:
        """Return what is done now, with its seconds unless the facts show that it moves."""
        if self._compiling.now:
            return f"compiling, {ONCE}  {self._compiling.seconds:.0f} s"
        if self._share is not None:
            return f"{self._doing} {self._share:.0%}"
        return f"{self._doing}  {self._worked() - self._since:.0f} s"

    def _say_compiling(self) -> None:
        self._say(f"compiling, {ONCE}  {self._compiling.seconds:.0f} s so far")

    def _say(self, line: str) -> None:
        """Print a plain line, if it is time to and there is no live one."""
        if self._quiet or self._terminal or perf_counter() - self._last < PLAIN:
            return
        self._last = perf_counter()
        self._console.print(line, highlight=False, soft_wrap=True)


def _doing(session: Session) -> str:
    """Return what the rounds are about."""
    if session.refined:
        return f"going over what was kept, round {session.refined:,}"
    racing = session.model.n_radii_
    return f"racing {racing} radii" if racing > 1 else "learning"


def _standing(session: Session) -> list[str]:
    """Return what is known about the model: score, loss, gap and size."""
    history, (name, size) = session.model.history_, session.size_so_far()
    # The first events have no line in the history yet, and no event has a gap.
    loss, gap = (history[what][-1] if history[what].size else nan for what in ("loss", "gap"))
    known = {session.score.name: session.score.value, "loss": loss, "gap": gap}
    said = {what: f"{what} {value:.4g}" for what, value in known.items() if not isnan(value)}
    kind = session.model.loss_
    if kind.convex and kind.nonnegative and is_informative(gap, loss) is False:
        said["gap"] += " (uninformative: above the loss)"
    return [*said.values(), f"{name} {size:,}"]
