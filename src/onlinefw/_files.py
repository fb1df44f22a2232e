"""Files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["whole_file", "write_text"]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file so that whoever reads the path sees all of it, or the file before it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, so that the rename is atomic.
    temporary = path.with_name(f".{path.name}-{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
