"""One prediction for every row read: rows that could not be used leave a gap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._typing import Array
from ..readers import Reader

__all__ = ["with_gaps"]


def with_gaps(reader: Reader[Any]) -> Iterator[tuple[Any, Array]]:
    r"""Yield chunks, each with an index for every row of the file: into the chunk, or -1 for a gap.

    If the data end with bad rows, the last chunk is None and its indices are all -1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from onlinefw.cli.gaps import with_gaps
    >>> from onlinefw.readers import read_rows
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("a,b\n1,2\nx,2\n3,4\n")
    >>> with read_rows(path, needs_target=False, on_bad_row="skip") as reader:
    ...     [indices.tolist() for _, indices in with_gaps(reader)]
    [[0, -1, 1]]
    """
    gaps, file, passed_before = 0, None, 0
    for chunk in reader:
        at = chunk.position
        if at["file"] != file:
            file, passed_before = at["file"], 0
        passed = at["row"] + at["passed"]
        n_here = passed - passed_before
        # All other rows left out so far were at the end of the files before this one.
        ended = reader.bad_rows.total - gaps - (n_here - len(chunk))
        indices = np.full(ended + n_here, -1)
        indices[ended + chunk.rows - passed_before - 1] = np.arange(len(chunk))
        gaps += len(indices) - len(chunk)
        passed_before = passed
        yield chunk, indices
    if reader.bad_rows.total > gaps:
        yield None, np.full(reader.bad_rows.total - gaps, -1)
