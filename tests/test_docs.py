"""What the README, the guides and the docstrings show is run as printed."""

import doctest
import importlib
import os
import pkgutil
import re
import runpy
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import onlinefw

mpl.use("Agg")

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = runpy.run_path(str(ROOT / "docs" / "make_images.py"))
GALLERY = sorted((ROOT / "docs" / "examples").glob("plot_*.py"))
LARGEST_PICTURE = 80_000  # bytes
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(onlinefw.__path__, "onlinefw.")
    if not m.name.startswith("onlinefw.native.loops")  # the libraries, which are not for Python
)
PUBLIC = ["losses", "sets", "steps", "objectives", "theory", "baselines", "algorithms", "datasets"]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run_as_printed(name):
    if name.startswith("onlinefw.past.cuda."):
        pytest.importorskip("cupy", reason="CuPy is not installed")
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


def readme_examples():
    """Every block of Python but the first, and what it is shown to print, if anything."""
    found = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", README, flags=re.DOTALL)
    return found[1:]


@pytest.mark.slow
@pytest.mark.parametrize(("block", "shown"), readme_examples())
def test_every_other_block_of_the_readme_prints_what_it_shows(block, shown, capsys):
    exec(compile(block, "README.md", "exec"), {})
    assert_shows(capsys.readouterr().out, shown)


@pytest.mark.slow
def test_the_commands_of_the_readme_run_on_a_file_of_ratings(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    users, items = rng.integers(190, 200, 3000), rng.integers(60, size=3000)
    lines = [f"{u},{i},{1 + (u * i) % 5}" for u, i in zip(users, items, strict=True)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    (tmp_path / "pairs.csv").write_text("user,item\n196,3\n190,7\n")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```sh\n(ofw .*?)```", README, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        GUIDES["run"]("sh", block, {})
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 3


def assert_shows(printed, shown, within=0.0):
    """The words are those shown; numbers may differ by one in the last digit, as on other CPUs.

    Or by a share: long runs in single precision.
    """
    number = r"(-?\d[\d,]*\.?\d*)"
    (words, numbers), (words_shown, numbers_shown) = (
        (re.sub(number, "#", text).split(), re.findall(number, text)) for text in (printed, shown)
    )
    assert words == words_shown, printed
    for one, expected in zip(numbers, numbers_shown, strict=True):
        one, expected = one.replace(",", ""), expected.replace(",", "")
        last_digit = 10.0 ** -len(expected.partition(".")[2])
        near = pytest.approx(float(expected), rel=within, abs=1.01 * last_digit)
        assert float(one) == near, printed


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES["PAGES"], ids=lambda page: page.name)
def test_a_guide_is_one_session_that_prints_and_draws_what_it_shows(
    page, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    session = {}
    if page.name == "scaling.md":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'onlinefw[ray]'")
    try:
        for language, code, shown in GUIDES["blocks"](page):
            GUIDES["run"](language, code, session)
            printed = capsys.readouterr().out
            if shown or language == "python":
                assert_shows(printed, shown, within=0.0 if language == "python" else 0.1)
    finally:
        for pid in tmp_path.glob("*.pid"):  # a page that has started a server, and failed
            with suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)
    drawn = {picture.name for picture in tmp_path.glob("*.png")}
    shown = set(re.findall(r"\]\(images/(.*?)\)", page.read_text(encoding="utf-8")))
    elsewhere = {f"{drawing.stem}.png" for drawing in GUIDES["DRAWINGS"]}
    elsewhere |= {name for name in shown if GUIDES["FROM_COMMANDS"].fullmatch(name)}
    assert drawn == shown - elsewhere
    for name in drawn:
        assert (page.parent / "images" / name).stat().st_size < LARGEST_PICTURE


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_the_unit_of_the_page_on_serving_is_one(tmp_path):
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    unit = re.findall(r"```ini\n(.*?)```", page, flags=re.DOTALL)[0]
    here = unit.replace("/opt/onlinefw/bin/ofw", sys.executable)  # it must be there
    (tmp_path / "ofw.service").write_text(here)
    verify = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "ofw.service")]
    done = subprocess.run(verify, capture_output=True, text=True)
    assert done.returncode == 0 and "ofw.service:" not in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("drawing", GUIDES["DRAWINGS"], ids=lambda path: path.stem)
def test_a_drawing_draws_the_picture_of_its_name(drawing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(drawing))
    plt.close("all")
    assert [picture.name for picture in tmp_path.iterdir()] == [f"{drawing.stem}.png"]
    committed = ROOT / "docs" / "images" / f"{drawing.stem}.png"
    assert committed.stat().st_size < LARGEST_PICTURE


@pytest.mark.slow
@pytest.mark.parametrize("example", GALLERY, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs_and_draws(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)  # Agg would warn that it shows nothing
    runpy.run_path(str(example))
    assert plt.get_fignums()
    plt.close("all")
    assert not list(tmp_path.iterdir())


def test_every_name_of_the_package_is_in_the_api_reference():
    index = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8").split()
    parts_of_others = {"__version__", "algorithms", "estimators"}  # their classes are listed
    listed = {name.split(".")[0] for name in index}  # of some modules, what is in them
    assert set(onlinefw.__all__) - parts_of_others <= listed
    for module in "algorithms", "estimators":
        names = importlib.import_module(f"onlinefw.{module}").__all__
        assert {name.rpartition(".")[2] for name in index} >= set(names)


def test_every_page_is_on_the_site():
    pages = {page.stem for page in GUIDES["PAGES"]} - {"index", "README"}
    listed = "\n".join(page.read_text(encoding="utf-8") for page in GUIDES["PAGES"])
    toctrees = "\n".join(re.findall(r"```\{toctree\}\n(.*?)```", listed, flags=re.DOTALL))
    assert pages <= set(re.findall(r"[\w/-]+", toctrees))


def test_the_two_commands_are_in_the_readme_and_ci_runs_the_second_as_printed():
    demo = "python3 -m venv .venv && .venv/bin/pip install '.[cli]' && .venv/bin/ofw demo"
    test = "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest"
    assert demo in README.splitlines()
    assert test in README.splitlines()
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert test in ci.splitlines()
    assert "sphinx-build -W" in ci


@pytest.mark.parametrize("page", [ROOT / "README.md", *GUIDES["PAGES"]], ids=lambda p: p.name)
def test_pictures_and_pages_that_a_page_points_to_exist(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
