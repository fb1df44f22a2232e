"""The folder of the data, and the parsed arrays that are kept there."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path

import numpy as np

from .._files import whole_file
from .._typing import Array
from .errors import DataFileError

__all__ = ["data_folder", "is_writable", "read_arrays", "write_arrays"]


def data_folder() -> Path:
    """Return the folder of the data: ``ONLINEFW_DATA``, or else the platform's cache folder.

    Examples
    --------
    >>> import os
    >>> from onlinefw.datasets import data_folder
    >>> before = os.environ.get("ONLINEFW_DATA")
    >>> os.environ["ONLINEFW_DATA"] = "my-data"
    >>> data_folder().name
    'my-data'
    >>> _ = os.environ.pop("ONLINEFW_DATA")
    >>> if before is not None:
    ...     os.environ["ONLINEFW_DATA"] = before
    """
    named = os.environ.get("ONLINEFW_DATA")
    if named:
        return Path(named).expanduser()
    try:
        import pooch
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "to find the cache folder takes pooch: pip install 'onlinefw[cli]', or name a folder "
            "in the environment variable ONLINEFW_DATA"
        ) from None
    return Path(pooch.os_cache("onlinefw"))


def read_arrays(path: Path, keys: tuple[str, ...]) -> dict[str, Array]:
    """Read every array of an npz file, and refuse one that is damaged or lacks a key."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataFileError(
            f"{path} is damaged ({error}); delete it, and it is made again from the publisher's "
            "file"
        ) from error
    missing = [key for key in keys if key not in arrays]
    if missing:
        raise DataFileError(
            f"{path} has no array {', '.join(missing)}; delete it, and it is made again from the "
            "publisher's file"
        )
    return arrays


def is_writable(folder: Path) -> bool:
    """Whether files may be put into a folder that exists, or that can be made."""
    while not folder.exists():
        folder = folder.parent
    # Also the mode: os.access lets an administrator write even a folder marked read-only.
    return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)


def write_arrays(path: Path, arrays: dict[str, Array]) -> bool:
    """Write an npz file whole or not at all; return whether it could be written."""
    if not is_writable(path.parent):
        return False
    try:
        with whole_file(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    except OSError:  # such as a full disk: the arrays can be used, they are only not kept
        return False
    return True
