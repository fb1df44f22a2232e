"""The real data sets: where each comes from, under which terms, and what must be in it.

A checksum is given where the publisher (or, for MNIST, every library that has a loader) states one;
otherwise it is None, and the parsers check the counts instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

__all__ = ["ENTRIES", "Entry", "RawFile"]

GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
# The original host, yann.lecun.com, often refuses; this mirror serves the same bytes.
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
# The page and the names of its files are published, but no lasting address of a file.
RICE = "http://dsp.rice.edu/cscamera"

MOVIELENS_TERMS = "research only; no redistribution; cite Harper and Konstan (2015)"
RCV1_TERMS = "see the page; cite Lewis et al. (2004)"


@dataclass(frozen=True)
class RawFile:
    """One file, kept under the name that its publisher gives it."""

    name: str
    #: None where only a page, and no lasting address, is published.
    url: str | None = None
    #: The published checksum.
    md5: str | None = None
    #: Other names under which a file put there by hand is accepted.
    aliases: tuple[str, ...] = ()
    #: Used if it is in the folder, never downloaded.
    optional: bool = False


@dataclass(frozen=True)
class Entry:
    """One data set, with what the list of ``ofw data`` says of it."""

    name: str
    what: str
    terms: str
    #: Of the download.
    size: str
    #: The publisher's.
    page: str
    #: The parsed arrays are kept as ``<cache>.npz``.
    cache: str
    #: The arrays that must be in that file.
    keys: tuple[str, ...]
    files: tuple[RawFile, ...]
    #: What the parser must find.
    counts: Mapping[str, int] = field(default_factory=dict)


def _movielens(number: str, size: str, md5: str, what: str, **counts: int) -> Entry:
    name = f"ml-{number}"
    return Entry(
        name=f"movielens{number}",
        what=what,
        terms=MOVIELENS_TERMS,
        size=size,
        page=f"https://grouplens.org/datasets/movielens/{number}/",
        cache=name,
        keys=("user", "item", "rating"),
        files=(RawFile(f"{name}.zip", f"{GROUPLENS}{name}.zip", md5),),
        counts=counts,
    )


_MASKS = RawFile("Phi_64.mat", aliases=("rice-phi-64.mat",))


def _camera(name: str, what: str, *files: RawFile) -> Entry:
    return Entry(
        name=name,
        what=what,
        terms="see the page; cite Duarte et al. (2008)",
        size="3 MB",
        page=RICE,
        cache=name,
        keys=("y", "Phi"),
        files=files,
        counts={"pixels": 4096},
    )


_SPARSE_ROWS = ("indptr", "indices", "data", "shape", "y", "split")

_ALL = (
    _movielens(
        "100k",
        "5 MB",
        "0e33842e24a9c977be4e0107933c0723",
        "100,000 ratings of 1,682 films, with the official folds",
        ratings=100_000,
        users=943,
        items=1682,
    ),
    _movielens(
        "1m",
        "6 MB",
        "c4d9eecfca2ab87c1945afe126590906",
        "1,000,209 ratings of 3,706 films",
        ratings=1_000_209,
        users=6040,
        items=3706,
    ),
    _movielens(
        "20m",
        "199 MB",
        "cd245b17a1ae2cc31bb14903e1204af3",
        "20,000,263 ratings of 26,744 films, half stars",
        ratings=20_000_263,
        users=138_493,
        items=26_744,
    ),
    Entry(
        name="mnist",
        what="70,000 handwritten digits, 28 x 28",
        terms="CC BY-SA 3.0; cite LeCun et al. (1998)",
        size="12 MB",
        page="http://yann.lecun.com/exdb/mnist/",
        cache="mnist",
        keys=("x_train", "y_train", "x_test", "y_test"),
        files=tuple(
            RawFile(name, MNIST + name, md5)
            for name, md5 in (
                ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
                ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
                ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
                ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
            )
        ),
        counts={"train": 60_000, "test": 10_000, "side": 28},
    ),
    Entry(
        name="rcv1",
        what="LIBSVM's rcv1.binary: 697,641 news stories, 47,236 words",
        terms=RCV1_TERMS,
        size="450 MB",
        page=f"{LIBSVM}binary.html#rcv1.binary",
        cache="rcv1-binary",
        keys=_SPARSE_ROWS,
        files=tuple(
            RawFile(name, f"{LIBSVM}binary/{name}")
            for name in ("rcv1_train.binary.bz2", "rcv1_test.binary.bz2")
        ),
        counts={"train": 20_242, "test": 677_399, "features": 47_236},
    ),
    Entry(
        name="rcv1v2-subset",
        what="other RCV1-v2 stories, labelled by the rule of rcv1.binary; 47,236 words",
        terms=RCV1_TERMS,
        size="20 MB",
        page=f"{LIBSVM}multilabel.html",
        cache="rcv1v2-subset",
        keys=_SPARSE_ROWS,
        files=tuple(
            RawFile(name, f"{LIBSVM}multilabel/{name}")
            for subset in range(1, 6)
            for name in (
                f"rcv1subset_topics_train_{subset}.svm.bz2",
                f"rcv1subset_topics_test_{subset}.svm.bz2",
            )
        ),
        counts={"rows_per_file": 3000, "features": 47_236, "train": 20_242},
    ),
    _camera(
        "R64",
        "the paper's letter R through a single-pixel camera, 64 x 64",
        RawFile("R64.mat", aliases=("R_64.mat",)),
        # The masks may be in the file of the readings, or apart.
        replace(_MASKS, optional=True),
    ),
    _camera(
        "mug64",
        "a mug through the same camera, 64 x 64",
        RawFile("Mug_64.mat", aliases=("rice-mug-64.mat",)),
        _MASKS,
    ),
)

#: By the names that ``ofw data fetch`` takes.
ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ALL}
