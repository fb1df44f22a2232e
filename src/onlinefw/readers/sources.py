"""Which files, in which format: by their names, or by how they begin."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import DataError

__all__ = ["FORMATS", "Source", "find_sources", "sniff_delimiter", "sniff_format"]

FORMATS = ("csv", "tsv", "parquet", "libsvm", "jsonl")

_FORMAT_OF = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "csv",
    ".data": "tsv",
    ".dat": "csv",
    ".parquet": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_CODEC_OF = {".gz": "gzip", ".zst": "zstd"}
_DELIMITERS = ("\t", "::", ",", ";", "|", " ")


@dataclass(frozen=True)
class Source:
    """One file or pipe: its name as given, its format if the name tells, its compression."""

    name: str
    format: str | None
    codec: str | None = None

    @property
    def is_pipe(self) -> bool:
        """Whether it is standard input or not a regular file, which can be read only once."""
        return self.name == "-" or not stat.S_ISREG(os.stat(self.name).st_mode)


def find_sources(paths: str | os.PathLike[str] | Sequence[str], format: str | None) -> list[Source]:
    """Files in the order given; a pattern stands for the files that match it, sorted."""
    if format is not None and format not in FORMATS:
        raise DataError(f"no such format: {format!r}", remedy=f"choose one of {', '.join(FORMATS)}")
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise DataError("no data given", remedy="name a file, or - for standard input")
    sources = []
    for path in [os.fspath(path) for path in given]:
        if path == "-":
            sources.append(Source("-", format))
        elif os.path.exists(path):
            sources.append(_source(path, format))
        elif glob.has_magic(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                raise DataError("no file matches this pattern", file=path, remedy="check it")
            sources += [_source(match, format) for match in matches]
        else:
            raise DataError("there is no such file", file=path, remedy="check the path")
    return sources


def _source(path: str, format: str | None) -> Source:
    if os.path.isdir(path):
        raise DataError(
            "this is a folder", file=path, remedy=f"name its files, such as '{path.rstrip('/')}/*'"
        )
    if not os.access(path, os.R_OK):
        raise DataError("the file may not be read", file=path, remedy="check its permissions")
    stem, suffix = os.path.splitext(path)
    codec = _CODEC_OF.get(suffix.lower())
    if codec:
        suffix = os.path.splitext(stem)[1]
    return Source(path, format or _FORMAT_OF.get(suffix.lower()), codec)


def sniff_format(line: str) -> str:
    """The format of text that begins with this line."""
    if line.lstrip()[:1] in ("{", "["):
        return "jsonl"
    if re.fullmatch(r"[^\s,;|]+( qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?", line):
        return "libsvm"
    return "csv"


def sniff_delimiter(line: str, format: str) -> str:
    r"""What separates the cells of this line, if it is not what the format says.

    Examples
    --------
    >>> from onlinefw.readers.sources import sniff_delimiter
    >>> sniff_delimiter("1::1193::5::978300760", "csv"), sniff_delimiter("a;b;c", "csv")
    ('::', ';')
    """
    usual = "\t" if format == "tsv" else ","
    if usual in line:
        return usual
    return next((d for d in _DELIMITERS if d in line.strip()), usual)
