"""The real data sets: where each comes from, under which terms, and what must be in it.

Where the digests come from:

- MovieLens: SHA-256 as TensorFlow Datasets states it (``url_checksums/movielens.txt``), MD5 as
  GroupLens publishes it;
- MNIST: SHA-256 as TensorFlow Datasets states it (``url_checksums/mnist.txt``), MD5 as every
  library with a loader has it;
- ``Mug_64.mat``, ``Phi_64.mat``: SHA-256 of copies from 2006, their publisher states none;
- rcv1 and rcv1v2-subset (LIBSVM), ``R64.mat``: nobody states a digest and no copy was at hand, so
  there is none. The parsers check the counts and labels of all data sets, of these nothing else.
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
    sha256: str | None = None
    #: Compared only where no SHA-256 is known.
    md5: str | None = None
    #: Other names under which a file put there by hand is accepted.
    aliases: tuple[str, ...] = ()
    #: Used if it is in the folder, never downloaded.
    optional: bool = False

    @property
    def digest(self) -> str | None:
        """What the file must have: ``sha256:...`` or ``md5:...``, or None if nobody states one."""
        known = {"sha256": self.sha256, "md5": self.md5}
        return next((f"{kind}:{value}" for kind, value in known.items() if value), None)


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


def _movielens(number: str, size: str, sha256: str, md5: str, what: str, **counts: int) -> Entry:
    name = f"ml-{number}"
    return Entry(
        name=f"movielens{number}",
        what=what,
        terms=MOVIELENS_TERMS,
        size=size,
        page=f"https://grouplens.org/datasets/movielens/{number}/",
        cache=name,
        keys=("user", "item", "rating"),
        files=(RawFile(f"{name}.zip", f"{GROUPLENS}{name}.zip", sha256, md5),),
        counts=counts,
    )


def _digit_file(name: str, sha256: str, md5: str) -> RawFile:
    return RawFile(f"{name}-ubyte.gz", f"{MNIST}{name}-ubyte.gz", sha256, md5)


_MASKS = RawFile(
    "Phi_64.mat",
    sha256="cd4fbc1529c5907a6130296f87616616309b16c93048d5e0c714fcbabcaee8ca",
    aliases=("rice-phi-64.mat",),
)


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
        "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        "0e33842e24a9c977be4e0107933c0723",
        "100,000 ratings of 1,682 films, with the official folds",
        ratings=100_000,
        users=943,
        items=1682,
    ),
    _movielens(
        "1m",
        "6 MB",
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        "c4d9eecfca2ab87c1945afe126590906",
        "1,000,209 ratings of 3,706 films",
        ratings=1_000_209,
        users=6040,
        items=3706,
    ),
    _movielens(
        "20m",
        "199 MB",
        "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
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
        files=(
            _digit_file(
                "train-images-idx3",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            ),
            _digit_file(
                "train-labels-idx1",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "d53e105ee54ea40749a09fcbcd1e9432",
            ),
            _digit_file(
                "t10k-images-idx3",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "9fb629c4189551a2d022fa330f9573f3",
            ),
            _digit_file(
                "t10k-labels-idx1",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                "ec29112dd5afa0611ce80d1b7f02629c",
            ),
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
        RawFile(
            "Mug_64.mat",
            sha256="c500b088706b52fb95c076191ca988bb1b0df8826b3f8821abf85ae7c5806902",
            aliases=("rice-mug-64.mat",),
        ),
        _MASKS,
    ),
)

#: By the names that ``ofw data fetch`` takes.
ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ALL}
