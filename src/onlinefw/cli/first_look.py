"""Wrong paths are answered at once, before anything heavy is imported."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..readers.sources import find_sources
from .refuse import one_line_errors

__all__ = ["check_path", "look_at"]


def look_at(
    command: str,
    *,
    models: Iterable[Path | None] = (),
    data: Sequence[str | None] = (),
    data_format: str | None = None,
    outputs: Iterable[tuple[Path | None, str]] = (),
) -> None:
    """Refuse models and data that are not there, and (path, option) where nothing can be written.

    What is in the files is looked at later.
    """
    with one_line_errors(command):
        for model in models:
            if model is not None:
                check_model(model)
        paths = [path for path in data if path is not None]
        if paths:
            find_sources(paths, data_format)
        for path, option in outputs:
            if path is not None:
                check_path(path, option)


def check_model(path: Path) -> None:
    """Refuse a path that no model can be read from."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file of a model")
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def check_path(path: Path, option: str) -> None:
    """Refuse a path to which no file can be written."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file with {option}")
    if path.exists() and not path.is_file():
        # Files are written aside and renamed, which would replace even a device or a pipe.
        raise ValueError(f"{path} is not an ordinary file; name one with {option}")
    if not path.absolute().parent.is_dir():
        raise ValueError(
            f"the folder {path.parent} does not exist; create it first, or give another with "
            f"{option}"
        )
    if not os.access(path.absolute().parent, os.W_OK):
        raise ValueError(
            f"the folder {path.parent} may not be written to; give another with {option}"
        )
