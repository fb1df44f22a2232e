"""What numba compiles while a command runs: once on a machine, then it is kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from numba.core.event import Listener, install_listener

__all__ = ["Compiling"]


class Compiling(Listener):
    """Counts the loops that are compiled, and the seconds; ``on_loop`` is called before each.

    Loops that are found in numba's cache are not compiled, so they are not counted.

    Examples
    --------
    >>> from numba import njit
    >>> from onlinefw.cli.compiling import Compiling
    >>> compiling = Compiling()
    >>> with compiling.watched():
    ...     njit(lambda x: x + 1)(1)
    2
    >>> compiling.loops, compiling.seconds > 0.0, compiling.now
    (1, True, False)
    """

    def __init__(self, on_loop: Callable[[], Any] = lambda: None) -> None:
        self.loops = 0
        self._on_loop = on_loop
        self._depth = 0  # a loop may call others, which are compiled within its time
        self._spent, self._since = 0.0, 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count what is compiled in this context."""
        with install_listener("numba:compile", self):
            yield

    @property
    def now(self) -> bool:
        """Whether something is being compiled."""
        return self._depth > 0

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._spent + (perf_counter() - self._since if self.now else 0.0)

    def on_start(self, event: Any) -> None:
        """A loop is compiled from now on."""
        self._on_loop()
        self.loops += 1
        if self._depth == 0:
            self._since = perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """It is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self._spent += perf_counter() - self._since
