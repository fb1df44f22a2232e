"""Blocks of whole records, cut out of a stream of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .errors import DataError
from .streams import ByteStream

__all__ = [
    "LONGEST_RECORD",
    "Block",
    "after_last_line",
    "after_last_record",
    "split",
    "whole_records",
]

#: Bytes of a record at most: a quote that is never closed must not fill the memory.
LONGEST_RECORD = 1 << 26

#: Bytes after which the last whole record ends; 0 if there is none.
Cut = Callable[[bytes], int]


@dataclass(frozen=True)
class Block:
    """Whole records, and whether the stream pauses after them (then there may be none)."""

    data: bytes
    offset: int
    pause: bool = False


def whole_records(
    stream: ByteStream, cut: Cut, *, offset: int, block_bytes: int, enough_lines: int
) -> Iterator[Block]:
    """Yield blocks of about ``block_bytes``; of a pipe, also as soon as there are enough lines."""
    held = b""
    lines = 0
    handed_out = False
    while True:
        more = stream.read(block_bytes, wait=not (held or handed_out))
        if more == b"":
            if held:
                yield Block(held, offset)
            return
        pauses = more is None
        if more:
            held += more
            lines += more.count(b"\n")
        enough = len(held) >= block_bytes or (stream.is_pipe and lines >= enough_lines)
        if not (enough or pauses):
            continue
        end = cut(held)
        if end or pauses:
            yield Block(held[:end], offset, pauses)
            handed_out = not pauses
            held, offset = held[end:], offset + end
            lines = held.count(b"\n")
        if pauses and held:
            # Half a record is left: wait for the other half.
            held += stream.read(block_bytes) or b""
            lines = held.count(b"\n")
        if len(held) > max(LONGEST_RECORD, 2 * block_bytes):
            raise DataError(
                f"a record longer than 64 MB begins {offset:,} bytes into it",
                file=stream.name,
                remedy="check for a quote that is not closed",
            )


def split(block: Block, cut: Cut) -> list[Block]:
    """Return the block in about eight pieces of whole records."""
    pieces = []
    data, at = block.data, 0
    step = len(data) // 8 + 1
    while at < len(data):
        end = cut(data[at : at + step]) if at + step < len(data) else len(data) - at
        if not end:
            step *= 2
            continue
        last = at + end == len(data)
        pieces.append(Block(data[at : at + end], block.offset + at, block.pause and last))
        at += end
    return pieces


def after_last_line(data: bytes) -> int:
    """The cut where every line is a record."""
    return data.rfind(b"\n") + 1


def after_last_record(delimiter: bytes) -> Cut:
    r"""The cut where line ends may stand between quotes.

    Examples
    --------
    >>> from onlinefw.readers.blocks import after_last_record
    >>> cut = after_last_record(b",")
    >>> cut(b'1,2\n3,"four\nfive'), cut(b'1,5" long\n3,4')
    (4, 10)
    """
    other = rb"[^" + re.escape(delimiter) + rb"\n]"
    # A quote opens only at the beginning of a cell; inside one it is an ordinary character.
    # Possessive repeats never backtrack, so the time is linear.
    cell = rb'(?:"(?:[^"]++|"")*+"' + other + rb'*+|(?!")' + other + rb"*+)"
    records = re.compile(rb"(?:" + cell + rb"(?:" + re.escape(delimiter) + cell + rb")*+\n)*+")

    def cut(data: bytes) -> int:
        if b'"' not in data:
            return after_last_line(data)
        found = records.match(data)
        return found.end() if found else 0

    return cut
