"""Arrays of a data set: parsed before, from a file in the folder, or downloaded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .._typing import Array
from .download import download
from .errors import DataFileError
from .folder import data_folder, read_arrays, write_arrays
from .registry import ENTRIES, Entry, RawFile

__all__ = ["available", "expect", "load_arrays", "reading"]

Parser = Callable[[Entry, dict[str, Path]], dict[str, Array]]


def load_arrays(name: str, parse: Parser) -> dict[str, Array]:
    """Return the arrays of a data set, parsed once and then kept as npz.

    ``parse(entry, paths)`` reads the publisher's files, ``paths`` by the publisher's names. A file
    that it cannot read is named in one error, and nothing is kept. Where the folder cannot be
    written, the files there are parsed every time.
    """
    entry, folder = ENTRIES[name], data_folder()
    kept = folder / f"{entry.cache}.npz"
    if kept.exists():
        return read_arrays(kept, entry.keys)
    # An optional file is used if it is there, and never downloaded.
    wanted = [raw for raw in entry.files if not raw.optional or _find(raw, folder)]
    paths = {raw.name: _raw(raw, entry, folder) for raw in wanted}
    arrays = parse(entry, paths)
    write_arrays(kept, arrays)
    return arrays


def available(name: str) -> bool:
    """Whether a data set can be had with no network: parsed before, or all its files there.

    Parameters
    ----------
    name : str
        As ``ofw data`` lists it.

    Examples
    --------
    >>> from onlinefw.datasets import available, fetch_mnist
    >>> digits = fetch_mnist() if available("mnist") else None
    """
    entry, folder = ENTRIES[name], data_folder()
    if (folder / f"{entry.cache}.npz").exists():
        return True
    return all(raw.optional or _find(raw, folder) for raw in entry.files)


def expect(path: Path, what: str, found: int, wanted: int) -> None:
    """Refuse a file in which a count is not the published one."""
    if found != wanted:
        raise DataFileError(
            f"{path} has {found:,} {what} where {wanted:,} were published; delete it and get it "
            "again"
        )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error of a reader into one that names the file."""
    try:
        yield
    except (DataFileError, ImportError, MemoryError):
        raise
    except Exception as error:  # each reader has exceptions of its own, some with no common base
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise DataFileError(f"cannot read {path} ({reason}); delete it and get it again") from error


def _find(raw: RawFile, folder: Path) -> Path | None:
    candidates = (folder / name for name in (raw.name, *raw.aliases))
    return next((path for path in candidates if path.exists()), None)


def _raw(raw: RawFile, entry: Entry, folder: Path) -> Path:
    path = _find(raw, folder)
    if path is None:
        return download(raw, folder, entry.page)
    _check_digest(raw, path, raw.url or entry.page)
    return path


def _check_digest(raw: RawFile, path: Path, source: str) -> None:
    """Refuse a file put there by hand that is not the published one."""
    if raw.digest is None:
        return
    kind, _, known = raw.digest.partition(":")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    if found != known:
        raise DataFileError(
            f"{path} has {kind} {found} where {known} is known; delete it and get it again from "
            f"{source}"
        )
