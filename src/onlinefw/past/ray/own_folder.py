"""Folders that belong to this process while it lives; those of killed processes are removed."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

__all__ = ["OwnFolder"]

#: A file in the folder, locked by the process that made it; the lock ends with the process.
MARK = "in-use"


class OwnFolder:
    """A new folder, which no other user can look into; ``close()`` removes it with its contents.

    It is also removed at garbage collection and at the end of the process. If the process is
    killed, the next one that makes a folder of the same kind at the same place removes it: one of
    another user, of another machine or without the mark is never touched. (Ray's workers end with
    their driver; its agents, which only write logs, a minute later.)

    Parameters
    ----------
    kind : str
        How the name begins.
    parent : str or Path, optional
        Where to make it, by default where temporary files are.

    Examples
    --------
    >>> from onlinefw.past.ray.own_folder import OwnFolder
    >>> folder = OwnFolder("ofw-example-")
    >>> folder.path.is_dir()
    True
    >>> folder.close()
    >>> folder.path.exists()
    False
    """

    def __init__(self, kind: str, parent: Any = None) -> None:
        parent = Path(tempfile.gettempdir() if parent is None else parent)
        remove_left_behind(kind, parent)
        self.path = Path(tempfile.mkdtemp(prefix=kind, dir=parent))
        lock = _mark(self.path)
        self.close = weakref.finalize(self, _close, self.path, lock, os.getpid())


def remove_left_behind(kind: str, parent: Path) -> None:
    """Remove the folders of this kind whose processes were killed."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.startswith(kind) and entry.is_dir(follow_symlinks=False):
                    _remove_if_left(Path(entry.path))


def _remove_if_left(folder: Path) -> None:
    if folder.lstat().st_uid != os.getuid():
        return
    mark = os.open(folder / MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.read(mark, 1024) == _machine():  # a lock may be known to its machine only
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
    finally:
        os.close(mark)


def _mark(folder: Path) -> int | None:
    if fcntl is None:
        return None
    # Locked before it has its name: there is no moment at which the folder looks left behind.
    new = folder / f"{MARK}.new"
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.write(lock, _machine())
    fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(folder / MARK)
    return lock


def _machine() -> bytes:
    return platform.node().encode()


def _close(folder: Path, lock: int | None, maker: int) -> None:
    if os.getpid() == maker:  # a forked process leaves it to the one that made it
        _remove(folder)
    if lock is not None:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, the mark last: what cannot be removed now may be the next time."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != MARK:
            path.unlink(missing_ok=True)
    if [path.name for path in folder.iterdir()] in ([], [MARK]):
        shutil.rmtree(folder, ignore_errors=True)
