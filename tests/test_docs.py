"""What the README and the docstrings show is run as printed."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import onlinefw

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODULES = sorted(m.name for m in pkgutil.walk_packages(onlinefw.__path__, "onlinefw."))
PUBLIC = ["losses", "sets", "steps", "objectives", "theory", "baselines", "algorithms", "datasets"]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run_as_printed(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


@pytest.mark.parametrize("module", PUBLIC)
def test_everything_public_has_a_runnable_example(module):
    home = importlib.import_module(f"onlinefw.{module}")
    bases = {"Loss", "ConvexSet", "Objective", "Learner", "Round", "Rate"}
    records = {"Classification", "Entries", "LassoStream", "SinglePixel"}
    for name in set(home.__all__) - bases - records:
        assert ">>>" in (getattr(home, name).__doc__ or ""), f"{module}.{name} has no example"


def test_every_name_of_the_package_can_be_reached():
    for name in onlinefw.__all__:
        assert hasattr(onlinefw, name), name
    assert set(onlinefw.__all__) <= set(dir(onlinefw))
    with pytest.raises(AttributeError, match="nonsense"):
        onlinefw.nonsense  # noqa: B018


def python_blocks(text):
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_the_readme_example_runs_as_printed_and_is_short(capsys):
    blocks = python_blocks(README)
    assert blocks
    lines = [line for line in blocks[0].splitlines() if line.strip()]
    assert len(lines) <= 12
    exec(compile(blocks[0], "README.md", "exec"), {})
    printed = capsys.readouterr().out
    shown = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)[0]
    assert printed.split() == shown.split()


@pytest.mark.parametrize("block", python_blocks(README)[1:])
def test_every_other_block_of_the_readme_runs(block):
    exec(compile(block, "README.md", "exec"), {})


def test_the_two_commands_are_in_the_readme_and_ci_runs_the_second_as_printed():
    demo = "python3 -m venv .venv && .venv/bin/pip install '.[cli]' && .venv/bin/ofw demo"
    test = "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest"
    assert demo in README.splitlines()
    assert test in README.splitlines()
    assert test in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_pictures_and_pages_that_the_readme_points_to_exist():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
