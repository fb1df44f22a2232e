"""The command that was typed, and how long it has taken: imports, which take seconds, included."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from time import perf_counter

__all__ = ["command", "date", "in_words", "note", "say_starting", "seconds", "speak_for"]

_words: list[str] = []
_began = perf_counter()


def note(words: Sequence[str]) -> None:
    """Note that a command was typed, now."""
    global _began
    _words[:], _began = words, perf_counter()


def speak_for(words: Sequence[str]) -> None:
    """Take these words for what was typed: the demo runs commands that it shows."""
    _words[:] = words


def command() -> str:
    """Return the command as it can be typed again.

    Examples
    --------
    >>> from onlinefw.cli import typed
    >>> typed.note(["fit", "matrix", "my ratings.csv"])
    >>> typed.command()
    "ofw fit matrix 'my ratings.csv'"
    """
    return shlex.join(["ofw", *_words])


def date() -> str:
    """Return the time of now: 2026-01-31 18:05 UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def seconds() -> float:
    """Return the seconds since the command was typed."""
    return perf_counter() - _began


def say_starting(quiet: bool = False) -> None:
    """Say on a terminal that the command has begun, before what takes seconds to import.

    Whatever is printed next takes the place of the word.
    """
    if not quiet and sys.stderr.isatty():
        sys.stderr.write("starting\r")
        sys.stderr.flush()


def in_words(seconds: float) -> str:
    """Return a duration as people say it.

    Examples
    --------
    >>> from onlinefw.cli.typed import in_words
    >>> in_words(0.04), in_words(3.21), in_words(41.7), in_words(200.0), in_words(7300.0)
    ('0.0 s', '3.2 s', '42 s', '3 min 20 s', '2 h 1 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
