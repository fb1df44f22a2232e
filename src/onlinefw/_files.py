"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

__all__ = ["whole_file", "write_text"]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing; readers of the path see all of it, or the file before it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_behind(path)
    # In the same folder, so that the rename is atomic.
    temporary = path.with_name(f"{_beginning(path)}{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _beginning(path: Path) -> str:
    """Return how temporaries of this file begin: with the machine, as folders may be shared."""
    return f".{path.name}-{crc32(platform.node().encode()):08x}-"


def _remove_left_behind(path: Path) -> None:
    """Remove temporaries of the same file whose process was killed while it wrote them."""
    if os.name != "posix":  # on Windows signal 0 is Ctrl-C
        return
    pattern = re.compile(re.escape(_beginning(path)) + r"([1-9]\d{0,8})\.tmp", re.ASCII)
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            match = pattern.fullmatch(entry.name)
            if match and not _runs(int(match[1])):
                with suppress(OSError):
                    os.unlink(entry.path)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, as the process of another user
        return True
    return True


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
