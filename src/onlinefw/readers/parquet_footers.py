"""Partitioned Parquet: which files, and what their footers say."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "check_columns",
    "files_in",
    "largest",
    "n_rows",
    "numeric_types",
    "ranges",
    "shown",
    "version_of",
]

#: How many names of columns an error message shows at most.
MOST_SHOWN = 10


def files_in(source: Any) -> list[str]:
    """Return the files of a path, or of a list of files and folders."""
    paths = list(source) if isinstance(source, (list, tuple)) else [source]
    files: list[str] = []
    for path in map(Path, paths):
        found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not found or not found[0].exists():
            raise ValueError(f"{path} has no Parquet files; name a file, or a folder of *.parquet")
        files.extend(str(file.resolve()) for file in found)
    if not files:
        raise ValueError("there are no files; name at least one, or a folder of *.parquet")
    return files


def version_of(file: str) -> tuple[int, int]:
    """Return time and size of a file, by which a changed file is known."""
    status = os.stat(file)
    return status.st_mtime_ns, status.st_size


def _open(file: str) -> Any:
    return _open_version(file, version_of(file))


@lru_cache(maxsize=256)
def _open_version(file: str, version: tuple[int, int]) -> Any:
    from .parquet import open_parquet

    return open_parquet(file)


# What footers say ---------------------------------------------------------------------------------


def n_rows(file: str) -> int:
    """Return the number of rows of a file."""
    return _open(file).metadata.num_rows


def shown(names: Iterable[str]) -> str:
    """Return names of columns as text, only the first if there are many."""
    known = list(names)
    return ", ".join(known[:MOST_SHOWN]) + (", ..." if len(known) > MOST_SHOWN else "")


def check_columns(file: str, columns: Iterable[str]) -> None:
    """Refuse a file that has none, or two, of one of these columns."""
    has = Counter(_open(file).schema_arrow.names)
    for name in columns:
        if has[name] > 1:
            raise ValueError(f"{file} has {has[name]} columns {name!r}; rename all but one")
        if not has[name]:
            raise ValueError(f"{file} has no column {name!r}; it has {shown(has)}")


def numeric_types(file: str) -> dict[str, np.dtype]:
    """Return the columns of numbers (also true and false), in order, with their types."""
    return _numeric_types(file, version_of(file))


@lru_cache(maxsize=256)
def _numeric_types(file: str, version: tuple[int, int]) -> dict[str, np.dtype]:
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return {
        column.name: np.dtype(column.type.to_pandas_dtype())
        for column in _open_version(file, version).schema_arrow
        if any(is_kind(column.type) for is_kind in kinds)
    }


def largest(file: str, name: str) -> int:
    """Return the largest value of a column, -1 if it has none."""
    known = [bounds for _, _, bounds in ranges(file, name)]
    if None in known:
        raise ValueError(
            f"{file} does not say how large {name} is; pass the shape, or growing=True"
        )
    return max((int(high) for _, high in known), default=-1)


def ranges(file: str, name: str) -> list[tuple[int, int, Any]]:
    """Return first row, length, and (smallest, largest) or None if unknown, of all row groups."""
    metadata, found, first = _open(file).metadata, [], 0
    # Statistics are kept for leaf columns: one of structures or lists has several.
    paths = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
    index = paths.index(name)
    for group in range(metadata.num_row_groups):
        n = metadata.row_group(group).num_rows
        bounds = metadata.row_group(group).column(index).statistics
        known = bounds is not None and bounds.has_min_max
        found.append((first, n, (bounds.min, bounds.max) if known else None))
        first += n
    return found
