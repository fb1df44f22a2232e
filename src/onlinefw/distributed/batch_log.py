"""A durable log of the batches that every shard has received, for workers that are restarted."""

from __future__ import annotations

import io
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["BatchLog"]


class BatchLog:
    """One append-only file a shard; each record holds the arrays of one batch.

    A record is written whole before the shard is told. It starts with its length, so one that was
    cut off can be told from a whole one, and is not read.

    Parameters
    ----------
    shards : int
        How many.
    folder : path, optional
        Where to make a folder for it; by default where temporary files are. It is removed when the
        log is closed or gone.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.distributed.batch_log import BatchLog
    >>> log = BatchLog(2)
    >>> log.append(1, [np.arange(3), np.ones(2)])
    >>> [[array.tolist() for array in record] for record in log.records(1)]
    [[[0, 1, 2], [1.0, 1.0]]]
    >>> log.close()
    """

    def __init__(self, shards: int, folder: Any = None) -> None:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="onlinefw-", dir=folder))
        self._files = [open(self._path(k), "ab") for k in range(shards)]  # noqa: SIM115
        self.close = weakref.finalize(self, _remove, self._files, self.folder)

    def _path(self, k: int) -> Path:
        return self.folder / f"shard-{k:05d}.log"

    def append(self, k: int, arrays: Sequence[Array]) -> None:
        """Write the arrays of one batch for shard k."""
        self._files[k].write(_record(arrays))
        self._files[k].flush()

    def replace(self, k: int, arrays: Sequence[Array]) -> None:
        """Put one record in the place of all that shard k has."""
        new = self._path(k).with_suffix(".new")
        new.write_bytes(_record(arrays))
        self._files[k].close()
        new.replace(self._path(k))
        self._files[k] = open(self._path(k), "ab")  # noqa: SIM115

    def records(self, k: int) -> Iterator[list[Array]]:
        """Yield the arrays of all batches of shard k, in order."""
        with open(self._path(k), "rb") as file:
            end = file.seek(0, io.SEEK_END)
            start = file.seek(0)
            while start + 8 <= end:
                size = int.from_bytes(file.read(8), "little")
                if start + size > end:
                    return
                arrays = []
                while file.tell() < start + size:
                    arrays.append(np.lib.format.read_array(file, allow_pickle=False))
                yield arrays
                start = file.tell()


def _record(arrays: Sequence[Array]) -> memoryview:
    record = io.BytesIO()
    record.write(bytes(8))
    for array in arrays:
        np.lib.format.write_array(record, np.asarray(array), allow_pickle=False)
    size = record.tell()
    record.seek(0)
    record.write(size.to_bytes(8, "little"))
    return record.getbuffer()


def _remove(files: list[Any], folder: Path) -> None:
    for file in files:
        file.close()
    shutil.rmtree(folder, ignore_errors=True)
