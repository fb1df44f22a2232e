"""The page about the architecture names every verb and every package; nothing is too large."""

import ast
import re
from functools import cache
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


@pytest.mark.parametrize("name", ["RowsPast", "GramPast", "EntriesPast"])
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


SOURCE = Path(onlinefw.__file__).parent
#: Kernels are long where speed asks for it.
MODULES = sorted(path for path in SOURCE.rglob("*.py") if "kernels" not in path.parts)


@cache
def definitions():
    """All functions and classes of the modules, with their names."""
    return [
        (f"{path.relative_to(SOURCE)}: {node.name}", node)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]


def lines_of_code(function):
    """How many lines the statements of a function take, without docstrings, comments, blanks."""
    lines = set()
    for node in ast.walk(ast.Module(function.body, [])):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.stmt, ast.excepthandler)) and not docstring:
            first = node.body[0].lineno - 1 if hasattr(node, "body") else node.end_lineno
            lines.update(range(node.lineno, max(first, node.lineno) + 1))
    return len(lines)


def test_a_module_is_one_idea_told_in_order_and_can_be_read_in_one_sitting():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: n for path, n in lengths.items() if n > 900} == {}


def test_no_class_has_more_than_45_methods():
    counts = {
        name: sum(isinstance(part, ast.FunctionDef) for part in node.body)
        for name, node in definitions()
        if isinstance(node, ast.ClassDef)
    }
    assert {name: n for name, n in counts.items() if n > 45} == {}


def test_no_function_has_more_than_60_lines_of_code():
    lengths = {
        name: lines_of_code(node)
        for name, node in definitions()
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: n for name, n in lengths.items() if n > 60} == {}
