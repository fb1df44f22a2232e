"""JSON lines: one block of text to one batch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from .batches import Batch, Record, Wanted
from .errors import BadRow, shown

__all__ = ["JsonLinesParser"]


class JsonLinesParser:
    """Blocks of lines with one JSON object each to batches; the columns' names are the keys."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        # Arrow must be told the type of ids; the one that worked last is tried first.
        self._id_kind = pa.int64()

    def at_once(self, data: bytes, start: dict[str, int]) -> Batch | None:
        """The batch of one block, or None if anything is wrong in it."""
        for kind in dict.fromkeys((self._id_kind, pa.int64(), pa.string())):
            batch = self._with_ids(kind, data, start)
            if batch is not None:
                self._id_kind = kind
                return batch
        return None

    def one_by_one(self, data: bytes, start: dict[str, int]) -> Batch:
        """The batch of one block, each record checked by itself."""
        return self.wanted.one_by_one(self._records(data, start), start)

    def _with_ids(self, kind: Any, data: bytes, start: dict[str, int]) -> Batch | None:
        if data.lstrip()[:1] != b"{":  # Arrow crashes if the first line is null
            return None
        fields = [(c.name, kind) for c in self.wanted.ids]
        fields += [(c.name, pa.float64()) for c in self.wanted.numbers]
        fields += [(c.name, pa.string()) for c in self.wanted.texts]
        read = pajson.ReadOptions(use_threads=False, block_size=len(data) + 1)
        try:
            parse = pajson.ParseOptions(
                explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
            )
            table = pajson.read_json(pa.BufferReader(data), read, parse)
        except (pa.ArrowInvalid, UnicodeEncodeError):  # a name may be no UTF-8
            return None
        n = table.num_rows
        # Two objects on a line would be two rows for Arrow.
        if n != data.count(b"\n") + (not data.endswith(b"\n")):
            return None
        return self.wanted.at_once(lambda column: table[column.name].combine_chunks(), n, start)

    def _records(self, data: bytes, start: dict[str, int]) -> Iterator[Record]:
        row = start["row"]
        for line, text in enumerate(data.split(b"\n"), start["line"] + 1):
            if not text.strip():
                continue
            row += 1
            try:
                record = json.loads(text)
            except (ValueError, RecursionError) as error:
                yield row, line, self._bad("not JSON", f"not JSON ({_why(error)})", row, line)
                continue
            if isinstance(record, dict):
                yield row, line, [record.get(c.name) for c in self.wanted.columns]
            else:
                problem = f"{shown(text.decode('utf-8', 'replace'))} is not a JSON object"
                yield row, line, self._bad("no JSON object", problem, row, line)

    def _bad(self, reason: str, problem: str, row: int, line: int) -> BadRow:
        return BadRow(reason, problem, row, line, remedy="write one {...} per line")


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    if isinstance(error, RecursionError):
        return "nested too deep"
    return "not UTF-8" if isinstance(error, UnicodeError) else "a number of too many digits"
