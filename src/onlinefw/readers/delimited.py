"""CSV and other delimited text: one block to one batch."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from .._words import counted
from .batches import Batch, Record, Wanted
from .blocks import LONGEST_RECORD
from .errors import BadRow
from .missing import MISSING_WORDS

__all__ = ["DelimitedParser", "split_line"]


#: The limit on cells is one for the whole process.
_one_at_a_time = threading.Lock()


@contextmanager
def long_cells() -> Iterator[None]:
    """Let Python's csv read cells as long as Arrow does: as records may be."""
    with _one_at_a_time:
        before = csv.field_size_limit(LONGEST_RECORD)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def split_line(line: str, delimiter: str) -> list[str]:
    """The cells of one line, without the space around them."""
    if len(delimiter) > 1:
        cells = line.split(delimiter)
    else:
        with long_cells():
            cells = next(csv.reader([line], delimiter=delimiter), [])
    return [cell.strip() for cell in cells]


def _null_words(wanted: Wanted) -> list[str]:
    """Words for which Arrow is to put a gap; none where a text may be one of them."""
    if wanted.texts or not any(column.may_miss for column in wanted.numbers):
        return []
    forms = {form for word in MISSING_WORDS for form in (word, word.upper(), word.capitalize())}
    return sorted(forms | {"NaN"})


class DelimitedParser:
    """Blocks of delimited text to batches.

    Arrow reads a block at once; if anything is wrong in it, Python's csv finds the bad rows. The
    delimiter is one character, or ``"::"`` as in MovieLens 1M (then quotes are not special).
    """

    def __init__(self, wanted: Wanted, n_columns: int, delimiter: str) -> None:
        self.wanted = wanted
        self.n_columns = n_columns
        # Arrow takes one character only. A tab cannot be part of a cell of such files.
        self._replaced = delimiter.encode() if len(delimiter) > 1 else b""
        self.delimiter = "\t" if self._replaced else delimiter
        self.quotes = not self._replaced
        self._names = [str(index) for index in range(n_columns)]
        kinds = {str(c.index): pa.string() for c in wanted.ids + wanted.texts}
        kinds |= {str(c.index): pa.float64() for c in wanted.numbers}
        self._parse = pacsv.ParseOptions(
            delimiter=self.delimiter,
            quote_char='"' if self.quotes else False,
            newlines_in_values=self.quotes,
        )
        self._convert = pacsv.ConvertOptions(
            column_types=kinds,
            include_columns=list(dict.fromkeys(kinds)),
            null_values=["", *_null_words(wanted)],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        )

    def one_by_one(self, data: bytes, start: dict[str, int]) -> Batch:
        """The batch of one block, each record checked by itself."""
        return self.wanted.one_by_one(self._records(self._separated(data), start), start)

    def at_once(self, data: bytes, start: dict[str, int]) -> Batch | None:
        """The batch of one block, or None if anything is wrong in it."""
        data = self._separated(data)
        read = pacsv.ReadOptions(
            column_names=self._names, block_size=len(data) + 1, use_threads=False
        )
        try:
            table = pacsv.read_csv(pa.py_buffer(data), read, self._parse, self._convert)
        except pa.ArrowInvalid:
            return None
        return self.wanted.at_once(
            lambda column: table[str(column.index)].combine_chunks(), table.num_rows, start
        )

    def _separated(self, data: bytes) -> bytes:
        return data.replace(self._replaced, b"\t") if self._replaced else data

    def _records(self, data: bytes, start: dict[str, int]) -> Iterator[Record]:
        """Yield every record with its row and line; blank lines are no records."""
        text = io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")
        dialect: Any = {"delimiter": self.delimiter}
        if not self.quotes:
            dialect["quoting"] = csv.QUOTE_NONE
        reader = csv.reader(text, **dialect)
        row = start["row"]
        while True:
            line = start["line"] + reader.line_num + 1
            try:
                with long_cells():
                    cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                row += 1
                problem = f"the record is malformed ({error})"
                yield row, line, BadRow("malformed", problem, row, line)
                continue
            if not cells:
                continue
            row += 1
            if len(cells) == self.n_columns:
                yield row, line, [cells[c.index] for c in self.wanted.columns]
            else:
                yield row, line, self._ragged(cells, row, line)

    def _ragged(self, cells: list[str], row: int, line: int) -> BadRow:
        n, m = len(cells), self.n_columns
        # A cell with a line end in it is, more often than not, a quote that was never closed.
        swallowed = any("\n" in cell for cell in cells)
        return BadRow(
            "of another length",
            f"{counted(n, 'cell')} where there {'is' if m == 1 else 'are'} {counted(m, 'column')}",
            row,
            line,
            remedy="check the quotes" if swallowed else "check the separators and quotes",
        )
