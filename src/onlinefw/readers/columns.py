"""Which column is which: by name, or by number counted from 1 as cut and awk do."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from .batches import Column
from .errors import DataError, shown

__all__ = [
    "ColumnSpec",
    "Table",
    "check_names",
    "find_column",
    "find_features",
    "guess_columns",
    "is_number",
    "names_columns",
    "typed_column",
]

#: A name, or a number from 1; text of digits is a number unless a column has that name.
ColumnSpec = str | int

_DIGITS = re.compile(r"\d{1,9}", re.ASCII)
#: From one number to another, or from a name to another of the same stem: 3-10, f0-f39.
_RANGE = re.compile(r"(\D.*?|)(\d{1,9})-\1(\d{1,9})", re.ASCII)

#: Names that say what a column is, the surest first; "_id" and the like are left out.
_OBVIOUS = {
    "user": (
        "user", "uid", "username", "customer", "reviewer", "reader", "member", "visitor", "client",
        "account", "person", "listener", "viewer",
    ),
    "item": (
        "item", "iid", "movie", "film", "product", "asin", "isbn", "book", "song", "track",
        "artist", "article", "business", "restaurant", "recipe", "game", "sku", "page", "url",
        "title",
    ),
    "rating": ("rating", "stars", "star", "score", "value", "overall", "bookrating", "userrating"),
    "target": ("target", "label", "class", "y"),
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """What is known of a file's columns: their names if it has any, and how many there are."""

    file: str
    names: list[str] | None
    n_columns: int
    #: Whether the names are a first line that was only taken for a header.
    guessed: bool = False

    @property
    def looks_like_data(self) -> bool:
        """Whether every name is a number, so that the header seems to be a row of data."""
        return bool(self.names) and all(is_number(name) for name in self.names or [])

    def column(self, index: int) -> Column:
        """The column at an index counted from 0."""
        return Column(index, self.names[index] if self.names else str(index + 1))


def check_names(table: Table) -> None:
    """Refuse two columns with one name: which of them is meant could not be said.

    Examples
    --------
    >>> from onlinefw.readers.columns import Table, check_names
    >>> check_names(Table("a.csv", ["user", "item", "item"], 3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    onlinefw.readers.errors.DataError: a.csv: columns 2 and 3 are both called 'item'; rename...
    """
    first: dict[str, int] = {}
    for number, name in enumerate(table.names or [], 1):
        if name in first:
            raise DataError(
                f"columns {first[name]} and {number} are both called {shown(name)}",
                file=table.file,
                remedy="rename one of them",
            )
        first[name] = number


def is_number(text: str) -> bool:
    """Whether a cell is a number."""
    from .cells import number_cell

    return not number_cell(text)[1]


def names_columns(spec: ColumnSpec) -> bool:
    """Whether a spec has a name in it, rather than the number of a column, or a range of numbers.

    Examples
    --------
    >>> from onlinefw.readers.columns import names_columns
    >>> names_columns("3-10"), names_columns(" 7"), names_columns("f0-f39")
    (False, False, True)
    """
    text = str(spec).strip()
    limits = _RANGE.fullmatch(text)
    return bool(limits.group(1)) if limits else not text.isdecimal()


def find_column(spec: ColumnSpec, table: Table, option: str) -> Column:
    """Return the column that is meant.

    Examples
    --------
    >>> from onlinefw.readers.columns import Table, find_column
    >>> table = Table("ratings.csv", ["who", "what", "stars"], 3)
    >>> find_column("stars", table, "rating")
    Column(index=2, name='stars')
    >>> find_column(1, table, "user")
    Column(index=0, name='who')
    >>> find_column("star", table, "rating")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    onlinefw.readers.errors.DataError: ratings.csv: there is no column 'star'; did you mean...
    """
    if table.names and str(spec) in table.names and isinstance(spec, str):
        return table.column(table.names.index(spec))
    if isinstance(spec, int) or re.fullmatch(r"\d+", spec):
        number = int(spec)
        if not 1 <= number <= table.n_columns:
            raise DataError(
                f"there is no column {number}",
                file=table.file,
                remedy=f"columns count from 1 to {table.n_columns}",
            )
        return table.column(number - 1)
    if table.names is None:
        raise DataError(
            f"there is no header in which to look for {spec!r}",
            file=table.file,
            remedy=f"give the column's number, counted from 1 (--{option} 1)",
        )
    raise _missing(f"there is no column {spec!r}", spec, table, option)


def guess_columns(specs: dict[str, ColumnSpec | None], table: Table) -> list[Column]:
    """The columns that are given, and those whose names say what they are, by option.

    Where several are open, one error names them all, and options to copy.

    Examples
    --------
    >>> from onlinefw.readers.columns import Table, guess_columns
    >>> table = Table("books.csv", ["Reviewer-ID", "ISBN", "Stars"], 3)
    >>> options = {"user": None, "item": None, "rating": None}
    >>> [column.index for column in guess_columns(options, table)]
    [0, 1, 2]
    >>> table = Table("books.csv", ["who", "what", "stars"], 3)
    >>> guess_columns(options, table)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    onlinefw.readers.errors.DataError: books.csv: no column is obviously the user or the item; ...
    """
    found: dict[str, Column | None] = {
        option: _obvious(option, table) if spec is None else find_column(spec, table, option)
        for option, spec in specs.items()
    }
    if None in found.values():
        raise _open_questions(found, table)
    return [column for column in found.values() if column is not None]


def _obvious(option: str, table: Table) -> Column | None:
    names = [_plain(name) for name in table.names or []]
    for obvious in _OBVIOUS[option]:
        for index, name in enumerate(names):
            if name in (obvious, f"{obvious}id"):
                return table.column(index)
    return None


def _open_questions(found: dict[str, Column | None], table: Table) -> DataError:
    """Return one error with everything that the names do not tell, and an answer to copy."""
    *first, last = (f"the {option}" for option, column in found.items() if column is None)
    asked = f"{', '.join(first)} or {last}" if first else last
    problem = f"no column is obviously {asked}"
    without_names = table.names is None or table.looks_like_data
    taken = {column.index for column in found.values() if column is not None}
    free = [k for k in range(table.n_columns) if k not in taken]
    example = []
    for option, column in found.items():
        if column is None and not free:
            return _missing(problem, None, table, option)
        where = -1 if option == "target" else 0  # which is often the last column
        index = free.pop(where) if column is None else column.index
        example.append(f"--{option} {typed_column(index, table)}")
    if without_names:
        return DataError(
            f"{problem}: the file seems to have no header",
            file=table.file,
            remedy=f"give columns by number, counted from 1, such as {' '.join(example)}",
        )
    remedy = f"say which, such as {' '.join(example)}; the columns are {_known(table)}"
    if table.guessed:
        remedy += " (if line 1 is no header, say --no-header)"
    return DataError(problem, file=table.file, remedy=remedy)


def is_obvious(cell: str) -> bool:
    """Whether a cell is one of the names that are looked for."""
    plain = _plain(cell)
    return any(plain in (name, f"{name}id") for names in _OBVIOUS.values() for name in names)


def _plain(name: str) -> str:
    return re.sub(r"[\s_.-]", "", name).lower()


def _missing(problem: str, spec: str | None, table: Table, option: str) -> DataError:
    if table.names is None or table.looks_like_data:
        return DataError(
            f"{problem}: the file seems to have no header",
            file=table.file,
            remedy=f"give the column's number, counted from 1 (--{option} 1)",
        )
    close = difflib.get_close_matches(spec or "", table.names, 1) or [
        name for name in table.names if spec and name.lower() == spec.lower()
    ]
    remedy = f"did you mean {shown(close[0])}? The" if close else f"say which with --{option}; the"
    return DataError(problem, file=table.file, remedy=f"{remedy} columns are {_known(table)}")


def typed_column(index: int, table: Table) -> str:
    """A column as it can be typed on a command line: its name, or its number."""
    name = (table.names or [])[index] if table.names and not table.looks_like_data else ""
    return shlex.quote(name) if name.isprintable() and 0 < len(name) <= 40 else str(index + 1)


def _known(table: Table) -> str:
    names = table.names or []
    return ", ".join(map(shown, names[:20])) + (", ..." if len(names) > 20 else "")


def find_features(
    spec: str | Sequence[ColumnSpec] | None,
    table: Table,
    without: Column | None,
    drop: str | Sequence[ColumnSpec] | None = None,
    unless_named: Column | None = None,
) -> tuple[Column, ...]:
    """The feature columns: names, numbers and ranges; by default all but the target.

    Those of ``drop`` are left out; ``unless_named`` is left out where no features are given.

    Examples
    --------
    >>> from onlinefw.readers.columns import Table, find_features
    >>> table = Table("rows.csv", ["age", "f0", "f1", "f2", "city"], 5)
    >>> [column.name for column in find_features("f1-f2,1", table, None)]
    ['f1', 'f2', 'age']
    >>> [column.name for column in find_features(None, table, None, drop="city,2-3")]
    ['age', 'f2']
    """
    left_out = {column.index for column in _listed(drop or [], table, "drop")}
    if spec is None:
        left_out |= {column.index for column in (without, unless_named) if column is not None}
        found = [table.column(index) for index in range(table.n_columns)]
    else:
        found = _listed(spec, table, "features")
    found = [column for column in found if column.index not in left_out]
    if without is not None and any(c.index == without.index for c in found):
        raise DataError(
            "the target is among the features",
            file=table.file,
            column=without.name,
            remedy="leave it out of --features",
        )
    if not found:
        options = "--features and --drop" if drop else "--features"
        raise DataError("there are no features", file=table.file, remedy=f"check {options}")
    if len({c.index for c in found}) < len(found):
        raise DataError("a feature is named twice", file=table.file, remedy="check --features")
    return tuple(found)


def _listed(spec: str | Sequence[ColumnSpec], table: Table, option: str) -> list[Column]:
    """The columns of a list such as ``"age,3-10,f0-f39"``."""
    parts = [p.strip() for p in spec.split(",")] if isinstance(spec, str) else list(spec)
    found = []
    for part in parts:
        is_name = isinstance(part, int) or part in (table.names or [])
        limits = None if is_name else _RANGE.fullmatch(str(part))
        if limits:
            found += _range(limits[1], limits[2], limits[3], table, option)
        else:
            found.append(find_column(part, table, option))
    return found


def _range(stem: str, first: str, last: str, table: Table, option: str) -> list[Column]:
    """The columns from one number to another, or those of a stem and such a number."""
    numbers = range(int(first), int(last) + 1)
    if not numbers:
        text = f"{stem}{first}-{stem}{last}"
        raise DataError(
            f"--{option}: the range {text} runs backwards",
            file=table.file,
            remedy=f"write it as {stem}{last}-{stem}{first}",
        )
    if not stem:
        ends = [find_column(number, table, option) for number in (numbers[0], numbers[-1])]
        return [table.column(index) for index in range(ends[0].index, ends[1].index + 1)]
    if table.names is None:
        return [find_column(f"{stem}{first}", table, option)]  # says that there is no header
    # By number, not by name: x01 and x1 are both number 1 of x.
    named = {
        int(name.removeprefix(stem)): index
        for index, name in enumerate(table.names)
        if name.startswith(stem) and _DIGITS.fullmatch(name.removeprefix(stem))
    }
    for number in numbers:
        if number not in named:
            name = f"{stem}{number}"
            raise _missing(f"there is no column {name!r}", name, table, option)
    return [table.column(named[number]) for number in numbers]
