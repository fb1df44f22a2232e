"""The error of files that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._words import printable

__all__ = ["ModelFileError", "reason", "whole"]


class ModelFileError(ValueError):
    """A file that is damaged, of another kind or version, or not of onlinefw at all.

    Examples
    --------
    >>> import pathlib, tempfile, onlinefw as ofw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "notes.ofw"
    ...     _ = path.write_text("no model")
    ...     try:
    ...         ofw.load(path)
    ...     except ofw.files.ModelFileError as error:
    ...         print(str(error).replace(str(path), "notes.ofw"))
    notes.ofw is not an onlinefw file
    """


@contextmanager
def whole(path: str | Path, what: str) -> Iterator[None]:
    """Turn every error that missing or altered values lead to into a ModelFileError of one line."""
    try:
        yield
    except (ImportError, OSError):  # about this machine, not about the file
        raise
    except Exception as error:  # whatever parts raise that were given what they do not expect
        raise ModelFileError(f"{path} does not hold a whole {what}: {reason(error)}") from None


def reason(error: BaseException) -> str:
    """Return what an error says, in one short line that steers no terminal."""
    said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    lines = said.splitlines() or [type(error).__name__]
    return printable(lines[0])[:200]
