"""Text that a spreadsheet would run as a formula, made harmless."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["safe_columns", "safe_text"]

#: A cell that begins like this is a formula in a spreadsheet (also in full-width characters) ...
FORMULA = r"\A[=+\-@\t\r\n＝＋－＠]"  # noqa: RUF001
#: ... unless it is a number.
NUMBER = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"


def safe_text(text: str) -> str:
    """Return text with ' before it if a spreadsheet would run it.

    Examples
    --------
    >>> from onlinefw.cli.spreadsheet import safe_text
    >>> safe_text("=1+1"), safe_text("-7"), safe_text("film-7")
    ("'=1+1", '-7', 'film-7')
    """
    runs = re.match(FORMULA, text) and not re.match(NUMBER.replace(r"\z", r"\Z"), text)
    return f"'{text}" if runs else text


def safe_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Do that with the names of Arrow columns and with those that hold text."""
    return {safe_text(name): _safe(column) for name, column in columns.items()}


def _safe(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    number = pc.match_substring_regex(column, NUMBER)
    runs = pc.and_not(pc.match_substring_regex(column, FORMULA), number)
    quote = pa.scalar("'", column.type)
    marked = pc.binary_join_element_wise(quote, column, pa.scalar("", column.type))
    return pc.if_else(runs, marked, column)
