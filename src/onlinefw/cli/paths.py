"""Paths to write to, checked before the run begins."""

from __future__ import annotations

from pathlib import Path

__all__ = ["check_path"]


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
