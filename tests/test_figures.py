"""A figure in the README or on a page is in the table that it cites."""

from dataclasses import replace

import pytest

from .figures import ROOT, figures, last_digit

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_in_the_tables_that_a_page_cites(page):
    text = page.read_text(encoding="utf-8")
    missing = [
        f"{page.name}:{text.count(chr(10), 0, figure.start) + 1}: {figure.text} {figure.unit}"
        for figure in figures(page)
        if not figure.is_there
    ]
    assert not missing, "not in the table that is cited there:\n" + "\n".join(missing)


def test_there_are_figures_to_look_up():
    assert len([figure for page in PAGES for figure in figures(page)]) > 30


def by_one_in_the_last_digit(figure):
    return last_digit(figure.text)


def by_a_fifth(figure):
    return max(last_digit(figure.text), 0.2 * float(figure.text.replace(",", "")))


@pytest.mark.parametrize(("change", "share"), [(by_one_in_the_last_digit, 0.7), (by_a_fifth, 0.75)])
def test_of_figures_that_are_altered_most_are_caught(change, share):
    # The others are some other number of the lines that they may come from.
    caught = []
    for figure in (figure for page in PAGES for figure in figures(page)):
        decimals = len(figure.text.partition(".")[2])
        more = f"{float(figure.text.replace(',', '')) + change(figure):.{decimals}f}"
        caught.append(not replace(figure, text=more).is_there)
    assert sum(caught) >= share * len(caught)


PAGE = """
Errors fall to 0.824 in 7.1 s ([table](benchmarks/matrix/some.md)), with `ridge=0.3` and rank 12.

- 37,000 users a second, **12** of them twice ([table](benchmarks/matrix/some.md));
- this cites nothing, so 0.777 is not looked up.

Per system ([table](benchmarks/matrix/some.md)):

| system | error | passes |
| --- | --- | --- |
| river 5 | 0.9 | 3 |
"""
SOME = """# Some

`python benchmarks/matrix/some.py --write` 0.777

river is at 0.904 after 3 passes.
Ours is at 0.8241 after 7.12 s. 36,841 users, 12 twice, and 0.55.
"""


@pytest.fixture
def page(tmp_path):
    table = tmp_path / "benchmarks" / "matrix" / "some.md"
    table.parent.mkdir(parents=True)
    table.write_text(SOME, encoding="utf-8")
    return tmp_path / "page.md"


def test_what_is_looked_up_on_a_page(page):
    found = figures(page, PAGE)
    assert [one.text for one in found] == ["0.824", "7.1", "37,000", "12", "0.9", "3"]
    assert all(one.is_there for one in found)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("0.824", "0.825"),
        ("7.1 s", "7.2 s"),
        ("37,000", "38,000"),
        ("**12**", "**14**"),
        ("0.9 |", "0.8 |"),
    ],
)
def test_an_altered_figure_is_not_in_the_table(page, right, wrong):
    missing = [one.text for one in figures(page, PAGE.replace(right, wrong)) if not one.is_there]
    assert missing == [wrong.split()[0].strip("*")]


@pytest.mark.parametrize(
    ("figure", "in_the_table"),
    [("12%", "0.118"), ("16 million ratings", "16,004,113"), ("250,000 rows a second", "247,812")],
)
def test_a_figure_may_be_rounded(page, figure, in_the_table):
    table = page.parent / "benchmarks" / "matrix" / "some.md"
    table.write_text(in_the_table, encoding="utf-8")
    (one,) = figures(page, f"About {figure} ([table](benchmarks/matrix/some.md)).")
    assert one.is_there
