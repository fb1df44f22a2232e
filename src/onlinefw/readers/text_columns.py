"""Columns of text as columns of numbers: one for each category, or a few by a hash of the text."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from .._typing import Array
from .cells import number_cell
from .missing import is_missing

__all__ = ["BUCKETS", "LOOK", "MOST_CATEGORIES", "OTHERS", "TextColumn", "find_text_columns"]

#: Rows at the beginning of the data in which text columns and categories are looked for.
LOOK = 10_000
#: Categories of a column at most: the commonest of those rows. All others share a column.
MOST_CATEGORIES = 100
#: What that column is called.
OTHERS = "(others)"
#: Columns into which the texts of one column are hashed.
BUCKETS = 64


class TextColumn:
    """A column of text, which becomes a few columns of 0 and 1; an empty cell is 0 in all of them.

    ``categories`` have a column each, and all other texts share one. Without categories, texts go
    to one of ``BUCKETS`` columns by their CRC-32, which is the same everywhere.

    Examples
    --------
    >>> from onlinefw.readers.text_columns import TextColumn
    >>> city = TextColumn("city", ["Oslo", "Rome"])
    >>> city.names
    ['city=Oslo', 'city=Rome', 'city=(others)']
    >>> city.numbers(["Rome", "Lima", ""]).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    >>> int(TextColumn("city", None).numbers(["Rome"]).argmax())
    21
    """

    def __init__(self, name: str, categories: Sequence[str] | None) -> None:
        self.categories = None if categories is None else list(categories)
        places = range(BUCKETS) if self.categories is None else [*self.categories, OTHERS]
        self.names = [f"{name}#{k}" if categories is None else f"{name}={k}" for k in places]
        self._index = {text: j for j, text in enumerate(self.categories or [])}

    def numbers(self, texts: Sequence[str]) -> Array:
        """Return a row of zeros and at most a one for each text."""
        X = np.zeros((len(texts), len(self.names)))
        where = [(i, self._place(text)) for i, text in enumerate(texts) if text]
        if where:
            X[tuple(zip(*where, strict=True))] = 1.0
        return X

    def _place(self, text: str) -> int:
        if self.categories is None:
            return zlib.crc32(text.encode("utf-8", "surrogateescape")) % BUCKETS
        return self._index.get(text, len(self.categories))


def find_text_columns(columns: dict[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the columns that have a text where the others have numbers, and their categories.

    Examples
    --------
    >>> from onlinefw.readers.text_columns import find_text_columns
    >>> find_text_columns({"age": ["31", "NA", "7"], "city": ["Rome", "", "Oslo"]})
    {'city': ['Oslo', 'Rome']}
    """
    found = {}
    for name, texts in columns.items():
        counts = Counter(text for text in texts if text)
        if _has_text(list(counts)):
            # The commonest, in the order of the alphabet; of equally common ones the first there.
            ranked = sorted(counts, key=lambda text: (-counts[text], text))
            found[name] = sorted(ranked[:MOST_CATEGORIES])
    return found


def _has_text(cells: list[str]) -> bool:
    try:
        np.array(cells, dtype=object).astype(np.float64)  # most columns, and all at once
    except ValueError:
        return any(
            number_cell(cell)[1] == "not a number" and not is_missing(cell) for cell in cells
        )
    return False
