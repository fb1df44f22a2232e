"""Errors as one line on stderr, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from .._words import printable

__all__ = ["one_line_errors", "refuse"]


def refuse(command: str, why: object, code: int = 2) -> NoReturn:
    """Say what is wrong in one line and end: code 2 is bad input, 1 a run that did not finish."""
    typer.echo(f"ofw {command}: {printable(' '.join(str(why).split()))}", err=True)
    raise typer.Exit(code)


@contextmanager
def one_line_errors(command: str) -> Iterator[None]:
    """Turn errors about files, data and values into one line and an exit code."""
    try:
        yield
    except BrokenPipeError:  # the program that reads our output has ended
        raise typer.Exit(0) from None
    except FileNotFoundError as error:
        refuse(command, f"{error.filename}: there is no such file; check the path")
    except OSError as error:
        refuse(command, f"{error.filename}: {error.strerror}" if error.filename else error)
    except ValueError as error:  # data, model files and parameters alike
        refuse(command, error)
