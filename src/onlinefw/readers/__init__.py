"""Read data in chunks: CSV, TSV, Parquet, LIBSVM and JSON lines, from files and pipes.

For example::

    import numpy as np
    from onlinefw.readers import IdMap, read_ratings

    users, items = IdMap(), IdMap()
    for chunk in read_ratings("ratings-*.csv.gz"):
        X = np.column_stack((users.add(chunk.users), items.add(chunk.items)))
        model.partial_fit(X, chunk.values)

Files are read block by block, so they may be larger than memory. Columns are given by name, or by
number counted from 1 as cut and awk do. An error about the data is one line that names file, row,
column and value; or bad rows are left out and counted.

Partitioned Parquet (``ParquetRatings``, ``ParquetRows``) is cut into batches that are not read yet:
their handles are opened by this process or by workers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import BadRows, DataError

if TYPE_CHECKING:
    from .chunks import RatingChunk, RowChunk
    from .id_map import IdMap
    from .partitioned_ratings import ParquetRatings
    from .partitioned_rows import ParquetRows
    from .reader import Reader
    from .reading import read_ratings, read_rows

__all__ = [
    "BadRows",
    "DataError",
    "IdMap",
    "ParquetRatings",
    "ParquetRows",
    "RatingChunk",
    "Reader",
    "RowChunk",
    "read_ratings",
    "read_rows",
]

#: Loaded when first used: the command line looks for files before anything heavy is imported.
_MODULE_OF = {
    "IdMap": "id_map",
    "ParquetRatings": "partitioned_ratings",
    "ParquetRows": "partitioned_rows",
    "RatingChunk": "chunks",
    "Reader": "reader",
    "RowChunk": "chunks",
    "read_ratings": "reading",
    "read_rows": "reading",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
