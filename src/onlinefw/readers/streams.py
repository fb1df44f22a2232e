"""Bytes from a file, compressed or not, or from a pipe that may pause and may never end."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import Any

from .errors import DataError, shortened
from .sources import Source

__all__ = ["ByteStream", "Stopped"]

_LONGEST_LINE = 1 << 26

#: Seconds between two calls of ``stop``.
_LOOK = 0.1

#: The byte order mark that some programs put before UTF-8.
_MARK = b"\xef\xbb\xbf"

#: Control characters of which a line of text may have one, as a delimiter, but hardly two.
_CONTROL = frozenset([*range(1, 9), *range(14, 28)])


class Stopped(Exception):
    """Raised when ``stop()`` is True while a pipe has no data."""


class ByteStream:
    """The bytes of one source, from the beginning or from an offset.

    A pipe is said to pause after ``pause`` seconds without a byte. While it has no data ``stop`` is
    called; if it returns True, :class:`Stopped` is raised. All that came through the pipe has been
    handed out by then, so nothing is lost.
    """

    def __init__(
        self, source: Source, pause: float, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.source = source
        self.name = source.name
        self.is_pipe = source.is_pipe
        self.pause, self.stop = pause, stop
        self._file: Any
        if source.codec:
            import pyarrow as pa

            self._file = pa.CompressedInputStream(pa.OSFile(self.name), source.codec)
        elif self.name == "-":
            # Not through Python's buffer, which would wait until it is full.
            self._file = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
        else:
            self._file = open(self.name, "rb", buffering=0)  # noqa: SIM115
        self._head = b""
        self.lines_before = self.first_line_begins = self.first_line_ends = 0

    def close(self) -> None:
        """Close the file; standard input itself stays open."""
        self._file.close()

    def first_line(self) -> str:
        """The first line that is not blank, which stays to be read; empty if there is none.

        Where it begins and ends is in ``first_line_begins`` and ``first_line_ends``.
        """
        while True:
            lines = self._head.split(b"\n")
            whole = next((k for k, line in enumerate(lines[:-1]) if line.strip()), None)
            if whole is None:
                more = self._read(1 << 16)
                if more:
                    self._head += more
                    self._refuse_endless(len(self._head))
                    continue
                whole = len(lines) - 1
            self.lines_before = whole
            self.first_line_begins = sum(len(line) + 1 for line in lines[:whole])
            if self._head.startswith(_MARK):
                self.first_line_begins = max(self.first_line_begins, len(_MARK))
            end = sum(len(line) + 1 for line in lines[: whole + 1])
            self.first_line_ends = min(end, len(self._head))
            return self._text(lines[whole])

    def _text(self, line: bytes) -> str:
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError("the text is UTF-16", file=self.name, remedy="save it as UTF-8")
        if line.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
            kind, tool = ("gzip", "zcat") if line[0] == 0x1F else ("zstd", "zstdcat")
            raise DataError(
                f"this is {kind}-compressed",
                file=self.name,
                remedy=f"name it .{'gz' if kind == 'gzip' else 'zst'}, or pipe it through {tool}",
            )
        if line.startswith(b"PAR1"):
            raise DataError(
                "this is a Parquet file",
                file=self.name,
                remedy="name the file itself, ending in .parquet: a pipe of it cannot be read",
            )
        self._refuse_binary(line)
        return line.removeprefix(_MARK).rstrip(b"\r").decode("utf-8", "surrogateescape")

    def _refuse_binary(self, line: bytes) -> None:
        """Refuse what people give by mistake for the text in it: workbooks, archives, pictures."""
        problem, remedy = "", "give CSV, TSV, Parquet, LIBSVM or JSON lines, also as .gz or .zst"
        if line.startswith(b"PK\x03\x04"):
            workbook = self.name.lower().endswith((".xlsx", ".xlsm", ".ods"))
            problem = "this is a workbook" if workbook else "this is a zip archive"
            remedy = "save its sheet as CSV" if workbook else "unpack it, and name the file in it"
        elif b"\0" in line or len(_CONTROL.intersection(line)) > 1:
            problem = "this is not text"
        if problem:
            raise DataError(problem, file=self.name, remedy=remedy)

    def _refuse_endless(self, size: int) -> None:
        if size > _LONGEST_LINE:
            raise DataError(
                "no end of a line in 64 MB",
                file=self.name,
                remedy="check that this is text, with newlines at the ends of lines",
            )

    def read(self, size: int, *, wait: bool = True) -> bytes | None:
        """What there is, at most ``size`` bytes; empty at the end, None if a pipe pauses."""
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        if self.is_pipe and not wait and not self._ready(self.pause):
            return None
        return self._read(size)

    def skip_to(self, offset: int) -> None:
        """Go to this byte, counted from the beginning; nothing but the first line was read yet."""
        if offset <= len(self._head):
            self._head = self._head[offset:]
        elif self.source.codec:
            passed = len(self._head)
            self._head = b""
            while passed < offset:
                more = self._read(min(1 << 20, offset - passed))
                if not more:
                    raise shortened(self.name)
                passed += len(more)
        else:
            if os.path.getsize(self.name) < offset:
                raise shortened(self.name)
            self._head = b""
            self._file.seek(offset)

    def _wait(self) -> None:
        while not self._ready(_LOOK):
            if self.stop():
                raise Stopped

    def _ready(self, seconds: float) -> bool:
        try:
            return bool(select.select([self._file], [], [], seconds)[0])
        except (OSError, ValueError):
            # Not every platform can wait for a pipe; there, reading waits.
            return True

    def _read(self, size: int) -> bytes:
        if self.is_pipe:
            self._wait()
        try:
            return bytes(self._file.read(size))
        except OSError as error:
            if not self.source.codec:
                raise DataError(f"reading failed ({error})", file=self.name) from error
            raise DataError(
                f"the {self.source.codec} data are damaged or end too early",
                file=self.name,
                remedy="fetch or compress the file again",
            ) from error
