"""RCV1: news stories as sparse rows of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import Array
from .mnist import Rows
from .registry import Entry
from .store import expect, load_arrays, reading

__all__ = ["fetch_rcv1_binary", "fetch_rcv1v2_subset"]

# LIBSVM numbers the topics of RCV1-v2 from 0 in alphabetical order: C11, ..., CCAT, E11, ..., ECAT,
# G15, ..., GCAT, ..., GWELF, M11, ..., MCAT. Of each branch but the last: first topic, number after
# the last, and the root, which every story of the branch has as a label.
BRANCHES = ((0, 34, 33), (34, 60, 59), (60, 93, 70))
#: Below: CCAT and ECAT (positive); from here on: GCAT and MCAT (negative).
FIRST_NEGATIVE = 60


def fetch_rcv1_binary() -> Rows:
    """Load LIBSVM's rcv1.binary: 20,242 training and 677,399 test rows of 47,236 words.

    Labels are +1 for CCAT and ECAT, and -1 for GCAT and MCAT; every row has norm 1.

    Returns
    -------
    Rows
        ``X`` as scipy CSR matrices of float32.

    Examples
    --------
    >>> from onlinefw.datasets import fetch_rcv1_binary
    >>> news = fetch_rcv1_binary()  # doctest: +SKIP
    >>> news.X_train.shape  # doctest: +SKIP
    (20242, 47236)
    """
    return _rows(load_arrays("rcv1", _parse_binary))


def fetch_rcv1v2_subset() -> Rows:
    """Load stories of RCV1-v2 labelled by the rule of rcv1.binary, which has other stories.

    Made of the five subsets that LIBSVM publishes as "rcv1v2 (topics; subsets)", training halves
    and test halves: stories with topics on both sides (CCAT, ECAT: +1; GCAT, MCAT: -1) or on
    neither are left out, and so are repeats. What remains is split at random: the first 20,242 of
    ``numpy.random.default_rng(0).permutation(n)`` are the training rows.

    Returns
    -------
    Rows
        ``X`` as scipy CSR matrices of float32.

    Examples
    --------
    >>> from onlinefw.datasets import fetch_rcv1v2_subset
    >>> news = fetch_rcv1v2_subset()  # doctest: +SKIP
    >>> news.X_train.shape  # doctest: +SKIP
    (20242, 47236)
    """
    return _rows(load_arrays("rcv1v2-subset", _parse_subsets))


def _rows(arrays: dict[str, Array]) -> Rows:
    X = sp.csr_matrix(
        (arrays["data"], arrays["indices"].astype(np.int32), arrays["indptr"]),
        shape=tuple(int(n) for n in arrays["shape"]),
    )
    y, test = arrays["y"].astype(np.float64), arrays["split"] == 1
    return Rows(X[~test], y[~test], X[test], y[test])


def _arrays(X: Any, y: Array, split: Array) -> dict[str, Array]:
    return {
        "indptr": X.indptr.astype(np.int32),
        "indices": X.indices.astype(np.uint16),  # 47,236 words
        "data": X.data,
        "shape": np.array(X.shape),
        "y": y.astype(np.int8),
        "split": split.astype(np.uint8),
    }


def _read(path: Path, n_features: int, multilabel: bool = False) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(
        str(path),
        n_features=n_features,
        dtype=np.float32,
        multilabel=multilabel,
        zero_based=False,
    )


def _parse_binary(entry: Entry, paths: dict[str, Path]) -> dict[str, Array]:
    rows, labels = [], []
    for part, path in zip(("train", "test"), paths.values(), strict=True):
        with reading(path):
            X, y = _read(path, entry.counts["features"])
            if not np.isin(y, (-1.0, 1.0)).all():
                raise ValueError("it has labels other than -1 and +1")
        expect(path, "rows", y.size, entry.counts[part])
        rows.append(X)
        labels.append(y)
    split = np.repeat([0, 1], [y.size for y in labels])
    return _arrays(sp.vstack(rows, "csr"), np.concatenate(labels), split)


def _parse_subsets(entry: Entry, paths: dict[str, Path]) -> dict[str, Array]:
    seen: set[bytes] = set()
    kept, labels = [], []
    for path in paths.values():
        with reading(path):
            X, topics = _read(path, entry.counts["features"], multilabel=True)
            of_story = [np.unique(np.array(t, dtype=np.int64)) for t in topics]
            for story in of_story:
                _check_branches(story)
        expect(path, "rows", X.shape[0], entry.counts["rows_per_file"])
        for i, story in enumerate(of_story):
            row = slice(X.indptr[i], X.indptr[i + 1])
            key = X.indices[row].tobytes() + X.data[row].tobytes() + story.tobytes()
            positive, negative = (story < FIRST_NEGATIVE).any(), (story >= FIRST_NEGATIVE).any()
            if positive != negative and key not in seen:
                seen.add(key)
                kept.append(X[i])
                labels.append(1 if positive else -1)
    split = np.ones(len(kept))
    split[np.random.default_rng(0).permutation(len(kept))[: entry.counts["train"]]] = 0
    return _arrays(sp.vstack(kept, "csr"), np.array(labels), split)


def _check_branches(story: Array) -> None:
    """Refuse topics numbered in another order: they would give wrong labels silently."""
    for first, end, root in BRANCHES:
        if ((story >= first) & (story < end)).any() and root not in story:
            raise ValueError("its topics are not numbered from 0 in alphabetical order")
