"""Paths to write to, checked before the work begins."""

from __future__ import annotations

from pathlib import Path

__all__ = ["check_place"]


def check_place(path: Path, option: str) -> None:
    """Refuse a path to which no file can be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from onlinefw.cli.places import check_place
    >>> check_place(Path("nowhere/model.ofw"), "-o")
    Traceback (most recent call last):
        ...
    ValueError: the folder nowhere does not exist; create it first, or give another with -o
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file with {option}")
    if path.exists() and not path.is_file():
        # A file that is written whole takes the place of what was there, even of a device.
        raise ValueError(f"{path} is no ordinary file; name one with {option}")
    if not path.absolute().parent.is_dir():
        raise ValueError(
            f"the folder {path.parent} does not exist; create it first, or give another with "
            f"{option}"
        )
