"""The page about the architecture names every verb of a past and every package."""

import re
from pathlib import Path

import pytest

import onlinefw
from onlinefw.past import protocols

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")


def table_after(title):
    """The first cells of the table that follows a title, without their quotes."""
    table = TEXT[TEXT.index(title) :].split("| --- |", 1)[1].split("\n\n", 1)[0]
    return [row.split("|")[1].strip(" `") for row in table.splitlines()[1:]]


@pytest.mark.parametrize("name", ["RowsPast", "GramPast", "EntriesPast", "ListedPast"])
def test_the_table_of_a_past_has_its_verbs(name):
    protocol = getattr(protocols, name)
    verbs = {verb for verb in vars(protocol) if callable(vars(protocol)[verb])}
    named = table_after(f"**`{name}`**")
    assert len(named) == len(set(named))
    assert set(named) == {verb for verb in verbs if not verb.startswith("_")}


def test_the_table_of_packages_has_all_of_them():
    rows = TEXT[TEXT.index("## The packages") :]
    named = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| \d+ \|(.*?)\|", rows, re.M))))
    here = Path(onlinefw.__file__).parent
    packages = {path.parent.name for path in here.glob("*/__init__.py")}
    modules = {path.stem for path in here.glob("*.py")} - {"__init__"}
    assert named == packages | modules
