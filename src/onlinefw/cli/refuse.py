"""Errors as one line on stderr, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from .._words import printable

__all__ = ["in_words", "one_line_errors", "refuse"]


def refuse(command: str, why: object, code: int = 2) -> NoReturn:
    """Say what is wrong in one line and end: code 2 is bad input, 1 a run that did not finish."""
    typer.echo(f"ofw {command}: {printable(' '.join(str(why).split()))}", err=True)
    raise typer.Exit(code)


def in_words(error: BaseException) -> str:
    """Return what an error says, with the file that it is about."""
    if isinstance(error, FileNotFoundError):
        return f"{error.filename}: there is no such file; check the path"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    return str(error) or type(error).__name__


@contextmanager
def one_line_errors(command: str, and_say: str = "") -> Iterator[None]:
    """Turn errors about files, data and values into one line and an exit code."""
    try:
        yield
    except BrokenPipeError:  # the program that reads our output has ended
        raise typer.Exit(0) from None
    except (OSError, ValueError) as error:  # ValueError: data, model files and parameters alike
        refuse(command, in_words(error) + and_say)
