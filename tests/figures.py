"""Figures in the pages, and the tables that they cite.

A paragraph or an item of a list that links to tables under ``benchmarks/`` (or to docs/results.md)
takes its figures from there: each from the table linked next before it or next after it. A row of a
Markdown table takes them from all that it links to; one without a link has those of the paragraph
before, if that ends with a colon, and its figures come from lines there that share a word with its
first cell (a line has the words of its heading, too), if there are such lines.

Rounding is free: ``0.822`` may be
0.8217 there, ``37,000`` may be 36,841, ``12%`` may be 0.118, ``16 million`` 16,004,113.

Looked up are numbers with a decimal point, in bold or before a unit, and in a Markdown table all
that are not in its first column. Code (in backticks) is not: parameters belong there.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
UNITS = (
    *("s", "ms", "us", "µs", "ns", "seconds", "milliseconds", "microseconds", "minutes", "times"),
    *("GB/s", "MB", "GB", "GiB", "million", "coefficients", "nonzeros", "a second", "claims"),
    "(?:rows|ratings|documents|users|clicks|events) a second",
)
UNIT = rf"%|(?:{'|'.join(UNITS)})\b"
#: Numbers that share the unit of the one before: "9 to 10 seconds", "100 of 107 claims".
MORE = rf"\**%?(?:,? (?:to|and|or|of|/) \**{NUMBER}%?)*"
FIGURE = re.compile(
    rf"(?<![\w.,/^]){NUMBER}(?![\w^]|\.\d)(?=(?P<more>{MORE})\**[ \n-]?(?P<unit>{UNIT})?)"
)
LINK = re.compile(r"\[[^\]]*\]\(([^)]+)\)")
TABLE = re.compile(r"(?:benchmarks/.+|results)\.md$")


@dataclass(frozen=True)
class Figure:
    """A number of a page, where it stands, and the lines that it may come from."""

    page: Path
    start: int
    text: str
    unit: str
    lines: tuple[str, ...]

    @property
    def is_there(self):
        """Whether some line has a number that this one is the rounded form of."""
        value, step = float(self.text.replace(",", "")), last_digit(self.text)
        there = [number for line in self.lines for number in numbers(line)]
        if self.unit == "%":
            there += [100 * number for number in there if number < 1]  # shares
        if self.unit == "million":
            there += [number / 1e6 for number in there]
        return any(abs(number - value) <= 0.5001 * step for number in there)


def figures(page, text=None):
    """Return the figures of a page that cites tables."""
    text = page.read_text(encoding="utf-8") if text is None else text
    found, before = [], []
    for start, block in _blocks(text):
        cited = _cited(page, block)
        if block.startswith("|"):
            found += _of_table(page, start, block, before)
        elif cited:
            found += _of_words(page, start, block, cited)
        before = [path for _, path in cited] if block.rstrip().endswith(":") else []
    return found


def numbers(line):
    """All numbers of a line, whatever stands around them."""
    return [float(word.replace(",", "")) for word in re.findall(NUMBER, line)]


def last_digit(text):
    """What the last digit of a number counts; zeros at the end may be rounded, but two digits."""
    whole, _, decimals = text.replace(",", "").partition(".")
    zeros = len(whole) - len(whole.rstrip("0"))
    return 10.0 ** (-len(decimals) if decimals else max(0, min(zeros, len(whole) - 2)))


def _blocks(text):
    """Where each paragraph, item and Markdown table starts, and its text; code is blanked."""
    blank = re.compile(r"^```.*?^```|^\$\$.*?^\$\$|<!--.*?-->", flags=re.DOTALL | re.MULTILINE)
    text = blank.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    text = re.sub(r"`[^`]*`", lambda code: re.sub(r"[\d.%]", "_", code[0]), text)
    for block in re.finditer(r"^ *\S(?:.+\n?)+?(?=^ *[-*] |^\s*$|\Z)", text, flags=re.MULTILINE):
        yield block.start(), block[0]


def _cited(page, block):
    """Where a block cites which tables."""
    links = [(link.start(), link[1].partition("#")[0]) for link in LINK.finditer(block)]
    return [(at, page.parent / target) for at, target in links if TABLE.search(target)]


def _lines(paths):
    """The lines of tables, each with its heading, without those that say when they were made."""
    for path in dict.fromkeys(paths):
        heading = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            heading = line if line.startswith("#") else heading
            if not line.startswith("`python"):
                yield heading, line


def _of_words(page, start, block, cited):
    """The figures of running text, or of the row of a Markdown table that cites by itself."""
    block = LINK.sub(lambda link: "_" * len(link[0]), block)
    for number in FIGURE.finditer(block):
        at = number.start()
        if _is_measured(block, number):
            near = [path for place, path in cited if place < at][-1:]
            near += [path for place, path in cited if place > at][:1]
            if block.startswith("|"):
                near = [path for _, path in cited]
            lines = tuple(line for _, line in _lines(near))
            yield Figure(page, start + at, number[0], _unit(number), lines)


def _is_measured(text, number):
    """Whether a number of running text is a figure: it has decimals, a unit, or is in bold."""
    bold = text[: number.start()].endswith("**")
    return bool(_unit(number)) or "." in number[0] or bold


def _of_table(page, start, block, before):
    """The figures of a Markdown table: of all columns but the first."""
    for row in list(re.finditer(r".+", block))[2:]:
        if cited := _cited(page, row[0]):
            yield from _of_words(page, start + row.start(), row[0], cited)
            continue
        first = row[0].index("|", 1)
        lines = tuple(line for path in before for line in _alike(row[0][:first], path))
        for number in FIGURE.finditer(row[0]) if lines else ():
            at, unit = number.start(), _unit(number)
            if at > first or _is_measured(row[0], number):
                yield Figure(page, start + row.start() + at, number[0], unit, lines)


def _alike(cell, path):
    """The lines of a table that share a word with a cell; without such lines, all."""
    lines = list(_lines([path]))
    alike = [line for heading, line in lines if _words(cell) & _words(f"{heading} {line}")]
    return alike or [line for _, line in lines]


def _unit(number):
    """The unit of a figure, or "%" right after it."""
    return "%" if number["more"].lstrip("*").startswith("%") else number["unit"] or ""


def _words(text):
    return set(re.findall(r"[a-z-]{3,}", text.lower()))
