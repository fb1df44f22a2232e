"""Open files or pipes of ratings, or of rows of features."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..losses import Loss
from .chunks import RatingChunk, RowChunk
from .columns import ColumnSpec
from .files import Dialect
from .plans import RatingPlan, RowPlan
from .reader import OnBadRow, Reader
from .sorting import SortedReader
from .sources import find_sources
from .treatment import Missing, Text, Treatment

__all__ = ["read_ratings", "read_rows"]

Paths = str | os.PathLike[str] | Sequence[str]


def read_ratings(
    paths: Paths,
    *,
    user: ColumnSpec | None = None,
    item: ColumnSpec | None = None,
    rating: ColumnSpec | None = None,
    needs_rating: bool = True,
    sort_by: ColumnSpec | None = None,
    loss: Loss | None = None,
    chunk_rows: int = 65_536,
    on_bad_row: OnBadRow = "raise",
    position: dict[str, Any] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    pause: float = 0.2,
    block_bytes: int = 1 << 22,
    stop: Callable[[], bool] = lambda: False,
) -> Reader[RatingChunk]:
    r"""Read ratings in chunks.

    Parameters
    ----------
    paths : str, path, or sequence of them
        Files, patterns (``"part-*.csv"``, sorted), or ``"-"`` for standard input; ``.gz`` and
        ``.zst`` are read as they are.
    user, item, rating : str or int, optional
        Columns by name, or by number counted from 1 as cut and awk do. By default those whose
        names are obvious: user, user_id, userId; item, item_id, movieId; rating, stars, score,
        value.
    needs_rating : bool
        False to read pairs of user and item only.
    sort_by : str or int, optional
        Read all rows first, and hand them out in the order of this column: numbers, or dates such
        as 2024-12-31 10:00. For files, which must fit into memory.
    loss : Loss, optional
        A rating that this loss is not defined for makes a row a bad one.
    chunk_rows : int
        Rows of a chunk; fewer at the end of a file, and when a pipe pauses.
    on_bad_row : {"raise", "skip"}
        Whether a row that cannot be used is an error, or is left out and counted.
    position : dict, optional
        Go on from here: the ``position`` of a reader or chunk. Standard input goes on with
        what comes.
    format : {"csv", "tsv", "parquet", "libsvm", "jsonl"}, optional
        By default what the name's ending says (.csv .tsv .txt .data .dat .parquet .libsvm .svm
        .jsonl .ndjson), otherwise what the beginning looks like.
    delimiter : str, optional
        What separates the cells; by default what the format says, or the first line shows.
    header : bool, optional
        Whether the first line names the columns. By default it does if columns are given by
        name or not at all; if they are given by number, it does if it has no number where there
        should be one.
    pause : float
        Seconds without data after which the rows that came through a pipe are handed out.
    block_bytes : int
        Text is read in blocks of about this size.
    stop : callable
        Called while a pipe has no data; True ends the reading.

    Returns
    -------
    Reader
        An iterator of :class:`RatingChunk`.

    Raises
    ------
    DataError
        One line that names file, row, column, value and remedy.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from onlinefw.readers import read_ratings
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> path = folder / "u.data"
    >>> _ = path.write_text("196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    >>> chunk = next(read_ratings(path, user=1, item=2, rating=3))
    >>> chunk.users, chunk.items, chunk.values, chunk.first_row
    (array([196, 186]), array([242, 302]), array([3., 3.]), 1)
    """
    plan = RatingPlan(user, item, rating, needs_rating, loss, sort_by=sort_by)
    dialect = Dialect(delimiter, header, pause, block_bytes, stop)
    sources = find_sources(paths, format)
    reader = Reader if sort_by is None else SortedReader
    return reader(sources, plan, dialect, chunk_rows, on_bad_row, position)


def read_rows(
    paths: Paths,
    *,
    target: ColumnSpec | None = None,
    features: str | Sequence[ColumnSpec] | None = None,
    drop: str | Sequence[ColumnSpec] | None = None,
    missing: Missing = "refuse",
    text: Text | None = None,
    like: dict[str, Any] | None = None,
    sort_by: ColumnSpec | None = None,
    labels: bool = False,
    needs_target: bool = True,
    n_features: int | None = None,
    zero_based: bool = False,
    loss: Loss | None = None,
    dtype: Any = np.float64,
    chunk_rows: int = 65_536,
    on_bad_row: OnBadRow = "raise",
    position: dict[str, Any] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    pause: float = 0.2,
    block_bytes: int = 1 << 22,
    stop: Callable[[], bool] = lambda: False,
) -> Reader[RowChunk]:
    r"""Read rows of features in chunks.

    Parameters
    ----------
    paths : str, path, or sequence of them
        As for :func:`read_ratings`.
    target : str or int, optional
        The column to predict; by default the one called target, label, class or y.
    features : str or sequence, optional
        Columns: ``"age,height"``, ``"3-10"``, ``"f0-f39"``, or a list. By default all but the
        target and the column of ``sort_by``.
    drop : str or sequence, optional
        Columns that are no features, in the same form.
    missing : {"refuse", "mean", "drop"}
        What to do where a feature is missing (an empty cell, null, NaN, NA, N/A, None or ?): call
        the row a bad one, put in the mean of the column so far (0 if there is none), or leave the
        row out and count it.
    text : {"one-hot", "hash"}, optional
        What to do with columns in which the first 10,000 rows have text: a feature of 0 and 1 for
        each of the (at most 100) commonest categories of these rows and one for all others, or 64
        features to which texts go by their CRC-32. An empty cell is 0 in all of them where
        ``missing="mean"``. By default text is refused.
    like : dict, optional
        Treat missing values and text as another reader has done: its ``treatment``.
    sort_by : str or int, optional
        As for :func:`read_ratings`.
    labels : bool
        The target is a label (an integer or text) rather than a number. "1.0" is 1, "01" is text.
    needs_target : bool
        False to read rows to predict; a ``target`` that is there is left out of the features.
    n_features : int, optional
        How many there are; LIBSVM from a pipe needs it, and LIBSVM files are read twice
        without it.
    zero_based : bool
        LIBSVM indices count from 0 rather than from 1.
    loss : Loss, optional
        A target that this loss is not defined for makes a row a bad one.
    dtype : dtype
        Of the features.
    chunk_rows, on_bad_row, position, format, delimiter, header, pause, block_bytes, stop
        As for :func:`read_ratings`.

    Returns
    -------
    Reader
        An iterator of :class:`RowChunk`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from onlinefw.readers import read_rows
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = path.write_text("length,width,kind\n5.1,3.5,setosa\n7.0,3.2,versicolor\n")
    >>> chunk = next(read_rows(path, target="kind", labels=True))
    >>> chunk.X.tolist(), chunk.y.tolist()
    ([[5.1, 3.5], [7.0, 3.2]], ['setosa', 'versicolor'])
    """
    plan = RowPlan(target, features, labels, needs_target, dtype, n_features, zero_based, loss)
    plan.drop, plan.sort_by = drop, sort_by
    plan.treatment = Treatment(missing, text)
    if like is not None:
        plan.treatment = Treatment.from_state(like, fixed=True)
    dialect = Dialect(delimiter, header, pause, block_bytes, stop)
    sources = find_sources(paths, format)
    reader = Reader if sort_by is None else SortedReader
    return reader(sources, plan, dialect, chunk_rows, on_bad_row, position)
