"""Rounds that happen or do not: nobody sees half of one, whatever interrupts it."""

from __future__ import annotations

import os
from _thread import RLock  # a class, which threading.RLock is not
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGINT
from threading import get_ident, main_thread
from time import perf_counter
from typing import Any, NoReturn
from weakref import WeakSet

try:  # signal.signal is this, and turns numbers into enumerations, which takes longer
    from _signal import signal as set_handler  # type: ignore[import-not-found]
except ImportError:
    from signal import signal as set_handler

__all__ = [
    "Broken",
    "BrokenModel",
    "Turns",
    "Uninterrupted",
    "WholeRound",
    "broken_model",
    "pieces",
    "unchanged_unless_learned",
]

#: A compiled loop over events ends after about so many seconds, so that Ctrl-C is heard.
SECONDS = 0.05


class Uninterrupted:
    """Lets Ctrl-C wait for the end of a block; pressed again, it does not wait.

    Only the main thread gets signals. Within a block another one changes nothing.

    Examples
    --------
    >>> import signal
    >>> from onlinefw._whole import Uninterrupted
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> try:
    ...     with Uninterrupted():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("goes on to the end")
    ... except KeyboardInterrupt:
    ...     print("and then stops")
    goes on to the end
    and then stops
    >>> _ = signal.signal(signal.SIGINT, before)
    """

    __slots__ = ("_before", "_came")
    #: Whether the main thread is in such a block.
    _entered = False
    _main = main_thread().ident

    def __enter__(self) -> None:
        self._before: Any = None
        self._came: Any = None
        if Uninterrupted._entered or get_ident() != Uninterrupted._main:
            return
        before = set_handler(SIGINT, self._wait)
        if not callable(before):  # interrupts are ignored, end the process, or are not Python's
            set_handler(SIGINT, before)
            return
        Uninterrupted._entered, self._before = True, before

    def _wait(self, *signal: Any) -> None:
        if self._came is not None:
            self._before(*signal)
        self._came = signal

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            return
        Uninterrupted._entered = False
        set_handler(SIGINT, self._before)
        if self._came is not None:
            self._before(*self._came)


class WholeRound(Uninterrupted):
    """A round of an owner, which is told if it fails: ``owner.round_failed(error, mark)``.

    ``mark`` is what the owner looked like before.
    """

    __slots__ = ("_mark", "_owner")

    def __init__(self, owner: Any, mark: Any) -> None:
        self._owner, self._mark = owner, mark

    def __exit__(self, *raised: Any) -> None:
        if raised[1] is not None:
            self._owner.round_failed(raised[1], self._mark)
        Uninterrupted.__exit__(self)


def pieces(n: int, shortest: int = 64) -> Iterator[slice]:
    """Cut n events into pieces that take about SECONDS each: the next one is longer or shorter.

    Whoever takes them learns each as a whole; an interrupt comes between two of them.
    """
    done, size = 0, shortest
    while done < n:
        began = perf_counter()
        yield slice(done, min(done + size, n))
        done += size
        seconds = perf_counter() - began
        if seconds < SECONDS / 2:
            size *= 2
        elif seconds > SECONDS:
            size = max(1, size // 2)


class Turns(RLock):  # type: ignore[misc] # final for its types only
    """A lock that lets one thread at a time use a model: who asks during a round waits for its end.

    A process that was forked in the middle of a round of another thread has half a round for ever.
    Its copy of the lock says so.

    Examples
    --------
    >>> from onlinefw._whole import Turns
    >>> turns = Turns()
    >>> with turns, turns:  # a thread may take its turn within its turn
    ...     turns.check()
    """

    def __init__(self) -> None:
        self.cut_in_two = False
        _all_turns.add(self)

    def check(self) -> None:
        """Refuse a model that was forked in the middle of a round."""
        if self.cut_in_two:
            raise broken_model("this process was forked while another thread played it")

    def forked(self) -> None:
        """Be free in a new process, which has no other thread that could hold it."""
        if self.acquire(blocking=False):
            self.release()
        else:
            self._at_fork_reinit()  # type: ignore[attr-defined]
            self.cut_in_two = True


_all_turns: WeakSet[Turns] = WeakSet()


def _forked() -> None:
    Uninterrupted._main = main_thread().ident
    for turns in _all_turns:
        turns.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@contextmanager
def unchanged_unless_learned(model: Any, rounds: list[Any]) -> Iterator[None]:
    """If this fails before a round has been noted in ``rounds``, leave the model as it was."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        if not rounds:
            vars(model).clear()
            vars(model).update(before)
        raise


class BrokenModel(RuntimeError):
    """A round failed half-way, so that what was learned is of no finished round.

    Whatever is asked of the model from then on raises it. Go back to the last checkpoint, or begin
    anew with ``fit``. Ctrl-C does not lead to it, unless it is pressed twice in one round.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> oracle = ofw.objectives.GradientOracle(lambda theta, t: theta - 1.0, 3)
    >>> steps = [1.0, 0.5, 7.0].__getitem__
    >>> learner = ofw.OnlineFrankWolfe(oracle, ofw.sets.L1Ball(1.0), step=lambda t: steps(t - 1))
    >>> try:
    ...     for _ in range(3):
    ...         _ = learner.observe()  # the third step is not in (0, 1]
    ... except ValueError:
    ...     pass
    >>> try:
    ...     learner.theta
    ... except ofw.BrokenModel:
    ...     print("half a round")
    half a round
    """


def broken_model(why: str) -> BrokenModel:
    """Return the error that says what happened and what to do."""
    return BrokenModel(
        f"a round failed half-way ({why}), so this model is of no finished round: go back to the "
        "last checkpoint, or begin anew with fit"
    )


class Broken:
    """Stands where a part was whose round failed half-way; whatever is asked of it is refused.

    Examples
    --------
    >>> from onlinefw._whole import Broken, BrokenModel
    >>> try:
    ...     Broken(MemoryError()).predict
    ... except BrokenModel as error:
    ...     print(str(error)[:50])
    a round failed half-way (MemoryError), so this mod
    """

    def __init__(self, error: BaseException) -> None:
        self.__dict__["_why"] = type(error).__name__ + (f": {error}" if str(error) else "")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise broken_model(self.__dict__["_why"])

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        self.__getattr__(name)
