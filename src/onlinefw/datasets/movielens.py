"""MovieLens: ratings of films."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array, Shape
from .folder import data_folder, read_arrays
from .registry import Entry
from .store import expect, load_arrays, reading

__all__ = ["Ratings", "fetch_movielens"]

VERSIONS = ("100k", "1m", "20m")


@dataclass(frozen=True)
class Ratings:
    """Ratings in the order of the file, with rows and columns numbered from 0 without gaps.

    Attributes
    ----------
    rows, cols : ndarray of int32
        User and film.
    values : ndarray of float32
        The stars.
    shape : (int, int)
        How many users and films occur.
    row_ids, col_ids : ndarray of int32
        The publisher's number of each row and column.
    timestamps : ndarray of int32 or None
        Seconds since 1970, where they are known.
    fold : ndarray of uint8 or None
        Which of the five official test folds a rating belongs to, from 1 (100k only).

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.datasets import Ratings
    >>> ratings = Ratings.from_ids(np.array([7, 9, 7]), np.array([30, 10, 10]), np.ones(3))
    >>> ratings.shape, ratings.rows, ratings.cols
    ((2, 2), array([0, 1, 0], dtype=int32), array([1, 0, 0], dtype=int32))
    >>> ratings.row_ids
    array([7, 9], dtype=int32)
    >>> ratings.take(ratings.rows == 0).values
    array([1., 1.], dtype=float32)
    """

    rows: Array
    cols: Array
    values: Array
    shape: Shape
    row_ids: Array
    col_ids: Array
    timestamps: Array | None = None
    fold: Array | None = None

    @classmethod
    def from_ids(
        cls,
        users: Array,
        items: Array,
        values: Array,
        timestamps: Array | None = None,
        fold: Array | None = None,
    ) -> Ratings:
        """Number the users and items that occur from 0, in the order of their ids."""
        rows, row_ids = _renumber(users)
        cols, col_ids = _renumber(items)
        shape = (row_ids.size, col_ids.size)
        values = values.astype(np.float32, copy=False)
        return cls(rows, cols, values, shape, row_ids, col_ids, timestamps, fold)

    def take(self, index: Array) -> Ratings:
        """Return some of the ratings (a mask, or numbers in any order) of the same matrix."""
        per_rating = ("rows", "cols", "values", "timestamps", "fold")
        known = {name: getattr(self, name) for name in per_rating}
        taken = {name: all_[index] for name, all_ in known.items() if all_ is not None}
        return replace(self, **taken)

    def shuffled(self, seed: int = 0) -> Ratings:
        """Return the ratings in a random order, for a file that is sorted by user."""
        return self.take(np.random.default_rng(seed).permutation(self.values.size))

    def train_test(self, fold: int) -> tuple[Ratings, Ratings]:
        """Return the ratings outside and inside an official test fold."""
        if self.fold is None:
            raise ValueError("these ratings have no official folds; only movielens100k has them")
        inside = self.fold == fold
        if not inside.any():
            raise ValueError(f"there is no fold {fold}; choose 1 to {self.fold.max()}")
        return self.take(~inside), self.take(inside)


def _renumber(ids: Array) -> tuple[Array, Array]:
    # Ids are small numbers, so a table of them is faster than sorting 20 million.
    present = np.bincount(ids) > 0
    place = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return place[ids], np.flatnonzero(present).astype(np.int32)


def fetch_movielens(name: str = "100k") -> Ratings:
    """Load MovieLens 100K, 1M or 20M: once from GroupLens, then from the data folder.

    The terms of MovieLens allow research, and no redistribution.

    Parameters
    ----------
    name : {"100k", "1m", "20m"}
        100k: 943 users, 1682 films, 100,000 ratings, with the official folds. 1m: 6040 users, 3706
        films, 1,000,209 ratings. 20m: 138,493 users, 26,744 films, 20,000,263 ratings.

    Returns
    -------
    Ratings

    Examples
    --------
    >>> from onlinefw.datasets import fetch_movielens
    >>> ratings = fetch_movielens("100k")  # doctest: +SKIP
    >>> ratings.shape  # doctest: +SKIP
    (943, 1682)
    >>> train, test = ratings.train_test(fold=1)  # doctest: +SKIP
    """
    if name not in VERSIONS:
        raise ValueError(f"name must be one of {', '.join(VERSIONS)}, got {name!r}")
    arrays = load_arrays(f"movielens{name}", _parse)
    fold = arrays.get("fold")
    apart = data_folder() / f"ml-{name}_folds.npz"
    if fold is None and apart.exists():
        fold = read_arrays(apart, ("fold",))["fold"]
    return Ratings.from_ids(
        arrays["user"], arrays["item"], arrays["rating"], arrays.get("timestamp"), fold
    )


def _parse(entry: Entry, paths: dict[str, Path]) -> dict[str, Array]:
    (path,) = paths.values()
    with reading(path), zipfile.ZipFile(path) as archive:
        arrays = FORMATS[entry.cache](archive)
    expect(path, "ratings", arrays["user"].size, entry.counts["ratings"])
    for key, what in (("user", "users"), ("item", "items")):
        expect(path, what, np.unique(arrays[key]).size, entry.counts[what])
    return arrays


def _read_100k(archive: zipfile.ZipFile) -> dict[str, Array]:
    arrays = _table(archive, "ml-100k/u.data", "\t", np.uint8)
    # A user rates a film once, so user and film identify a rating.
    keys = _pairs(arrays)
    order = np.argsort(keys)
    fold = np.zeros(keys.size, dtype=np.uint8)
    for n in range(1, 6):
        test = _pairs(_table(archive, f"ml-100k/u{n}.test", "\t", np.uint8))
        at = order[np.searchsorted(keys, test, sorter=order).clip(max=keys.size - 1)]
        if not np.array_equal(keys[at], test):
            raise ValueError(f"u{n}.test has ratings that u.data has not")
        fold[at] = n
    return {**arrays, "fold": fold}


def _read_1m(archive: zipfile.ZipFile) -> dict[str, Array]:
    return _table(archive, "ml-1m/ratings.dat", "::", np.uint8)


def _read_20m(archive: zipfile.ZipFile) -> dict[str, Array]:
    return _table(archive, "ml-20m/ratings.csv", ",", np.float32, header=True)


FORMATS = {"ml-100k": _read_100k, "ml-1m": _read_1m, "ml-20m": _read_20m}


def _pairs(arrays: dict[str, Array]) -> Array:
    return arrays["user"].astype(np.int64) << 32 | arrays["item"]


def _table(
    archive: zipfile.ZipFile, member: str, separator: str, rating: Any, header: bool = False
) -> dict[str, Array]:
    """Read user, item, rating, timestamp straight from the archive."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "reading MovieLens takes pyarrow: pip install 'onlinefw[cli]'"
        ) from None
    names = ("user", "item", "rating", "timestamp")
    types = (np.int32, np.int32, rating, np.int32)
    with archive.open(member) as stream:
        source: Any = stream
        if len(separator) > 1:
            source = pa.BufferReader(stream.read().replace(separator.encode(), b","))
            separator = ","
        table = csv.read_csv(
            source,
            csv.ReadOptions(column_names=list(names), skip_rows=int(header), block_size=1 << 24),
            csv.ParseOptions(delimiter=separator),
            csv.ConvertOptions(
                column_types={
                    name: pa.from_numpy_dtype(t) for name, t in zip(names, types, strict=True)
                },
                null_values=[],  # a gap is an error, not a missing value
            ),
        )
        if stream.read(1):  # the checksum of the archive is compared at its end
            raise ValueError(f"{member} has more than its table")
    return {name: table[name].to_numpy() for name in names}
