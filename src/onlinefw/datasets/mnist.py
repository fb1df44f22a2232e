"""MNIST: handwritten digits."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array
from .registry import Entry
from .store import expect, load_arrays, reading

__all__ = ["Rows", "fetch_mnist"]


@dataclass(frozen=True)
class Rows:
    """Rows of features with labels, in a training and a test part.

    Attributes
    ----------
    X_train, X_test : ndarray or scipy.sparse.csr_matrix
        One example per row.
    y_train, y_test : ndarray
        One label per row.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.datasets import Rows
    >>> rows = Rows(np.eye(3), np.array([1, -1, 1]), np.eye(3)[:1], np.array([1]))
    >>> rows.X_train.shape, rows.X_test.shape
    ((3, 3), (1, 3))
    """

    X_train: Any
    y_train: Array
    X_test: Any
    y_test: Array


def fetch_mnist() -> Rows:
    """Load MNIST, once from a mirror of the original files, then from the data folder.

    Returns
    -------
    Rows
        60,000 and 10,000 images of shape (28, 28), bytes as they are; labels 0 to 9.

    Examples
    --------
    >>> from onlinefw.datasets import fetch_mnist
    >>> digits = fetch_mnist()  # doctest: +SKIP
    >>> digits.X_train.shape, digits.X_train.dtype  # doctest: +SKIP
    ((60000, 28, 28), dtype('uint8'))
    """
    arrays = load_arrays("mnist", _parse)
    return Rows(arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"])


def _parse(entry: Entry, paths: dict[str, Path]) -> dict[str, Array]:
    arrays = {}
    side = entry.counts["side"]
    for (kind, part), path in zip(
        (("x", "train"), ("y", "train"), ("x", "test"), ("y", "test")), paths.values(), strict=True
    ):
        with reading(path):
            array = _read_idx(path)
            shape = (len(array), side, side) if kind == "x" else (len(array),)
            if array.shape != shape:
                raise ValueError(f"its shape is {array.shape}, not {shape}")
        expect(path, "images" if kind == "x" else "labels", len(array), entry.counts[part])
        arrays[f"{kind}_{part}"] = array
    return arrays


def _read_idx(path: Path) -> Array:
    """Read the idx format: two zeros, the type, the number of axes, the big-endian shape, data."""
    with gzip.open(path) as file:
        content = file.read()
    zeros, kind, n_axes = content[:2], content[2], content[3]
    if zeros != b"\0\0" or kind != 8:
        raise ValueError("not an idx file of unsigned bytes")
    shape = np.frombuffer(content, dtype=">i4", count=n_axes, offset=4)
    data = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_axes)
    return data.reshape(tuple(int(n) for n in shape)).copy()
