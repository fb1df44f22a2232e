"""Wrong usage is refused in one line, as wrong data are."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from . import typed

__all__ = ["OneLineUsage"]

#: Of the click that typer uses, which is its own copy in some versions.
_UsageError: Any = typer.BadParameter.__base__


class OneLineUsage(TyperGroup):
    """Commands whose usage errors are one line on stderr, with exit code 2."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, and end the process unless told otherwise."""
        words = args[0] if args else extra.get("args")
        typed.note(sys.argv[1:] if words is None else words)
        if not extra.pop("standalone_mode", True):
            return super().main(*args, **extra, standalone_mode=False)  # type: ignore[misc]
        try:
            code = super().main(*args, **extra, standalone_mode=False)  # type: ignore[misc]
        except _UsageError as error:
            wants_help = type(error).__name__ == "NoArgsIsHelpError"
            typer.echo(error.format_message() if wants_help else _line(error), err=True)
            sys.exit(2)
        except typer.Abort:
            typer.echo("ofw: stopped", err=True)
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


def _line(error: Any) -> str:
    """Say what is wrong with which value, and where help is."""
    command = "ofw" if error.ctx is None else error.ctx.command_path
    message = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    # Where pydantic checks the values for typer, the message does not name the value given.
    problems: list[Any] = getattr(error.__cause__, "errors", list)()
    if problems and repr(problems[0]["input"]) not in message:
        message += f", got {problems[0]['input']!r}"
    return f"{command}: {message}; see {command} --help"
