"""Files that are written whole or not at all, by one process at a time."""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

__all__ = ["check_is_plain", "only_writer", "same_file", "whole_file", "write_text"]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing; readers of the path see all of it, or the file before it.

    The new file has the old one's mode. A link is replaced; what it points to stays as it is.
    """
    check_is_plain(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_behind(path)
    # In the same folder, so that the rename is atomic; by a name that nobody can have put there.
    temporary = path.with_name(f"{_beginning(path)}{os.getpid()}-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(temporary, flags | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            with suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def check_is_plain(path: Path) -> None:
    """Refuse to write where a folder, a pipe or a device is."""
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file", str(path))
        if not stat.S_ISREG(mode):
            reason = "it is a pipe or a device, and only a plain file can be replaced"
            raise OSError(errno.EINVAL, reason, str(path))


def same_file(one: Path, other: Path) -> bool:
    """Tell whether two paths are one file: by another spelling, by a link, or not there yet."""
    with suppress(OSError):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Be the only process that holds this path; a second one gets a BlockingIOError.

    A file beside it is locked, and removed at the end. A process that is killed holds nothing.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    beside = path.with_name(f".{path.name}.lock")
    while True:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The one before may have removed the file after it was opened here.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(beside)):
                    break
        except BlockingIOError:
            os.close(descriptor)
            reason = "another process is writing it; wait for its end or name another file"
            raise BlockingIOError(errno.EWOULDBLOCK, reason, str(path)) from None
        os.close(descriptor)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(beside)
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Let the rename survive a power cut, where folders can be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _beginning(path: Path) -> str:
    """Return how temporaries of this file begin: with the machine, as folders may be shared."""
    return f".{path.name}-{crc32(platform.node().encode()):08x}-"


def _remove_left_behind(path: Path) -> None:
    """Remove temporaries of the same file whose process was killed while it wrote them."""
    if os.name != "posix":  # on Windows signal 0 is Ctrl-C
        return
    begin = re.escape(_beginning(path))
    pattern = re.compile(begin + r"([1-9]\d{0,8})-[0-9a-f]{16}\.tmp", re.ASCII)
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
