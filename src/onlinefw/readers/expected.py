"""An estimate of how many rows files have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from .sources import Source

__all__ = ["expected_rows"]

#: Bytes at the beginning of a file by which the number of its lines is judged.
SAMPLE = 1 << 20


def expected_rows(sources: Sequence[Source]) -> int | None:
    """Return about how many rows files have together; None if one of them is a pipe."""
    total = 0
    for source in sources:
        if source.is_pipe:
            return None
        parquet = source.format == "parquet"
        total += _parquet_rows(source.name) if parquet else _lines(source.name, source.codec)
    return total


def _parquet_rows(name: str) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(name).num_rows)
    except (pa.ArrowException, OSError):
        return 0  # the reader says what is wrong with it


def _lines(name: str, codec: str | None) -> int:
    """Estimate the number of lines from the lines per byte at the beginning of the file."""
    with open(name, "rb") as file:
        beginning = file.read(SAMPLE)
    text = _decompressed(beginning, codec) if codec else beginning
    size, lines = os.path.getsize(name), text.count(b"\n")
    if size <= len(beginning):
        return lines + (not text.endswith(b"\n"))
    if not lines:
        return 1
    bytes_of_lines = len(beginning) * (text.rfind(b"\n") + 1) / len(text)
    return round(size * lines / bytes_of_lines)


def _decompressed(beginning: bytes, codec: str) -> bytes:
    """Return what the beginning of a compressed file holds, as far as it goes."""
    import pyarrow as pa

    stream = pa.CompressedInputStream(pa.BufferReader(beginning), codec)
    text = bytearray()
    with suppress(OSError):  # it ends in the middle
        while more := stream.read(1 << 12):
            text += more
    return bytes(text)
