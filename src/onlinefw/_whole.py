"""Blocks that Ctrl-C does not cut in two, and what stands for a model that was cut in two."""

from __future__ import annotations

from signal import SIGINT
from threading import get_ident, main_thread
from typing import Any, NoReturn

try:  # signal.signal takes ten times as long
    from _signal import signal as set_handler  # type: ignore[import-not-found]
except ImportError:
    from signal import signal as set_handler

__all__ = ["Broken", "BrokenModel", "Uninterrupted", "broken_model"]


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

    def __enter__(self) -> None:
        self._before: Any = None
        self._came: Any = None
        if Uninterrupted._entered or get_ident() != main_thread().ident:
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


class BrokenModel(RuntimeError):
    """A round failed half-way, so that what was learned is of no finished round."""


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
