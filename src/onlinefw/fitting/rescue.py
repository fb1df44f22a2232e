"""Write what a run has learned when it cannot go on: to wherever there is room on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["write_somewhere"]


def write_somewhere(write: Callable[[Path], None], name: str, folder: Path) -> Path:
    """Write a file to a folder, or else among the temporary files; return where it is.

    No file is replaced. If there is no room anywhere, the last OSError is raised.
    """
    problem: OSError | None = None
    for path in _paths(name, folder):
        try:
            write(path)
        except OSError as error:
            problem = error
        else:
            return path
    raise problem or OSError("there is no folder to write to")


def _paths(name: str, folder: Path) -> Iterator[Path]:
    yield _free(folder / name)
    with suppress(OSError):
        # A folder of its own, which other users cannot look into: a checkpoint holds the data.
        own = Path(tempfile.mkdtemp(prefix="onlinefw-"))
        try:
            yield own / name
        finally:
            with suppress(OSError):  # unless something was written
                own.rmdir()


def _free(path: Path) -> Path:
    """Return the path, with a number if there is a file of that name."""
    free, number = path, 1
    while free.exists() or free.is_symlink():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free
