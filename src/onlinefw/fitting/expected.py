"""About how many rows there are to come."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["expected_rows"]

#: Bytes at the beginning of a text file by which the length of its lines is judged.
SAMPLE = 1 << 16


def expected_rows(files: Sequence[tuple[str, str | None, str | None]]) -> int | None:
    r"""Return about how many rows files have together; None if one of them does not tell.

    Parameters
    ----------
    files : sequence of (name, format, codec)
        A pipe and a compressed file do not tell.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from onlinefw.fitting.expected import expected_rows
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("1,2,3\n" * 50)
    >>> expected_rows([(str(path), "csv", None)]), expected_rows([("-", None, None)])
    (50, None)
    """
    total = 0
    for name, format_, codec in files:
        if name == "-" or codec or not os.path.isfile(name):
            return None
        total += _parquet_rows(name) if format_ == "parquet" else _lines(name)
    return total


def _parquet_rows(name: str) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(name).num_rows)
    except (pa.ArrowException, OSError):
        return 0  # the reader says what is wrong with it


def _lines(name: str) -> int:
    with open(name, "rb") as file:
        sample = file.read(SAMPLE)
    size, lines = os.path.getsize(name), sample.count(b"\n")
    if size <= len(sample):
        return lines + (not sample.endswith(b"\n"))
    return round(size * lines / (sample.rfind(b"\n") + 1)) if lines else 1
