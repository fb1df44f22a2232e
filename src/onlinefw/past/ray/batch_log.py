"""A log in files of the messages to every shard, to rebuild the shards of restarted workers."""

from __future__ import annotations

import io
import pickle
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .own_folder import OwnFolder

__all__ = ["BatchLog"]


class BatchLog:
    """One append-only file for each shard; each record is one message with its arrays.

    A record is written before the message is sent. It starts with its length, so that one which was
    cut off is recognised and not read. Only this process reads and writes the log's folder. It is
    made in ``folder``, by default where temporary files are, and removed when the log is closed or
    garbage-collected; that of a killed process, when the next log is made there.
    """

    def __init__(self, shards: int, folder: Any = None) -> None:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        own = OwnFolder("ofw-log-", folder)
        self.folder = own.path
        self._files = [open(self._path(k), "ab") for k in range(shards)]  # noqa: SIM115
        self.close = weakref.finalize(self, _close, self._files, own)

    def _path(self, k: int) -> Path:
        return self.folder / f"shard-{k:05d}.log"

    def append(self, k: int, message: Any) -> None:
        """Write one message to shard k."""
        self._files[k].write(_record(message))
        self._files[k].flush()

    def replace(self, k: int, message: Any) -> None:
        """Replace all messages to shard k by one."""
        new = self._path(k).with_suffix(".new")
        new.write_bytes(_record(message))
        self._files[k].close()
        new.replace(self._path(k))
        self._files[k] = open(self._path(k), "ab")  # noqa: SIM115

    def sizes(self) -> list[int]:
        """Return how many bytes every shard's file has."""
        return [file.tell() for file in self._files]

    def cut_back(self, sizes: Sequence[int]) -> None:
        """Take back what was written since the files had these sizes."""
        for file, size in zip(self._files, sizes, strict=True):
            file.truncate(size)
            file.seek(size)

    def records(self, k: int) -> Iterator[Any]:
        """Yield all messages to shard k, in order."""
        with open(self._path(k), "rb") as file:
            end = file.seek(0, io.SEEK_END)
            start = file.seek(0)
            while start + 8 <= end:
                size = int.from_bytes(file.read(8), "little")
                if start + size > end:
                    return
                yield pickle.load(file)
                start = file.tell()


def _record(message: Any) -> memoryview:
    record = io.BytesIO()
    record.write(bytes(8))
    pickle.dump(message, record, protocol=5)
    size = record.tell()
    record.seek(0)
    record.write(size.to_bytes(8, "little"))
    return record.getbuffer()


def _close(files: list[Any], folder: OwnFolder) -> None:
    for file in files:
        file.close()
    folder.close()
