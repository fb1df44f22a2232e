"""The command line, as a newcomer meets it."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from onlinefw import __version__
from onlinefw.cli.app import app
from onlinefw.cli.demo import as_called
from onlinefw.datasets.registry import ENTRIES

from ..datasets.publisher import TINY, closed_port, serving, tiny_entry

runner = CliRunner()


TINY_DEMO = ["demo", "--ratings", "500"]


@pytest.mark.slow
def test_the_demo_learns_from_a_file_writes_a_page_and_says_what_to_try_next(tmp_path):
    folder = tmp_path / "tour"
    result = runner.invoke(app, [*TINY_DEMO, "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert {path.name for path in folder.iterdir()} == {"ratings.csv", "ratings.ofw", "report.html"}
    assert (folder / "ratings.csv").read_text().startswith('"user","item","rating"\n"user-')
    for step in ("ofw fit matrix", "ofw recommend", "ofw report", "held out: MSE"):
        assert step in result.output
    assert result.output.splitlines()[-3:] == [
        "  ofw fit matrix YOUR.csv --user USER --item ITEM --rating RATING -o mine.ofw",
        "  ofw recommend mine.ofw --user SOMEONE",
        "  ofw report mine.ofw -o mine.html",
    ]


@pytest.mark.slow
def test_the_commands_that_the_demo_shows_do_what_it_did(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = runner.invoke(app, TINY_DEMO).output
    commands = re.findall(r"^(?:\d\.|  ).*$", shown, flags=re.MULTILINE)
    assert max(map(len, commands)) <= 80  # so that they can be copied as they are
    shown = shown.replace("\\\n", "")
    before = {path.name: undated(path) for path in (tmp_path / "ofw-demo").iterdir()}
    for command in re.findall(r"^\d\. ofw (.*)$", shown, flags=re.MULTILINE):
        result = runner.invoke(app, shlex.split(command))
        assert result.exit_code == 0, result.output
    for path in (tmp_path / "ofw-demo").iterdir():
        if path.suffix != ".ofw":  # a model tells the seconds of its rounds
            assert undated(path) == before[path.name]
    assert b"with <code>ofw fit matrix ofw-demo/ratings.csv" in before["report.html"]


def undated(path):
    """Return what a file holds, but for the time at which a model was made."""
    return re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC", b"", path.read_bytes())


@pytest.mark.parametrize(
    "args",
    [
        ["demo", "--ratings", "3"],
        ["demo", "--seed", "-1"],
        ["demo", "--bogus"],
        ["sing"],
        ["data", "fetch"],
        ["data", "sing"],
    ],
)
def test_bad_usage_exits_with_two(args):
    assert runner.invoke(app, args).exit_code == 2


def test_a_demo_that_cannot_write_is_refused_in_one_line_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "file")])
    assert result.exit_code == 2
    assert "is a file; choose a folder with --out" in result.output
    assert result.output.count("\n") == 1


@pytest.mark.slow
def test_a_plain_ascii_terminal_is_enough(tmp_path):
    command = "from onlinefw.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", command, *TINY_DEMO, "--out", str(tmp_path / "tour")],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert result.returncode == 0, result.stderr
    result.stdout.decode("ascii")


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ONLINEFW_DATA", str(tmp_path))
    nowhere = closed_port()
    for name in TINY:
        monkeypatch.setitem(ENTRIES, name, tiny_entry(name, nowhere))
    return tmp_path


def test_data_lists_every_data_set_with_its_terms_and_whether_it_is_there(data_folder):
    for name, content in TINY["mnist"][0].items():
        (data_folder / name).write_bytes(content)
    result = runner.invoke(app, ["data"])
    assert result.exit_code == 0, result.output
    listed = {words[0]: words for words in map(str.split, result.output.splitlines()) if words}
    assert "yes" in listed["mnist"]
    for name in set(ENTRIES) - {"mnist"}:
        assert "no" in listed[name][:4]
    assert "no redistribution" in " ".join(result.output.split())
    assert f"folder: {data_folder}" in result.output


def test_data_fetch_downloads_and_says_where_it_is(data_folder, monkeypatch):
    with serving() as publisher:
        publisher.files |= TINY["mnist"][0]
        monkeypatch.setitem(ENTRIES, "mnist", tiny_entry("mnist", publisher.address))
        result = runner.invoke(app, ["data", "fetch", "mnist"])
    assert (result.exit_code, result.output) == (0, f"mnist: ready in {data_folder}\n")
    assert (data_folder / "mnist.npz").exists()


def test_data_fetch_of_an_unknown_name_names_the_names_before_any_download(data_folder):
    result = runner.invoke(app, ["data", "fetch", "mnist", "cifar"])
    assert result.exit_code == 2
    assert "no data set 'cifar'; choose from movielens100k, " in result.output
    assert result.output.count("\n") == 1


def test_data_fetch_without_network_says_in_one_line_what_to_put_where(data_folder):
    result = runner.invoke(app, ["data", "fetch", "movielens20m"])
    assert result.exit_code == 1
    assert ENTRIES["movielens20m"].files[0].url in result.output
    assert f"into {data_folder} as ml-20m.zip by hand" in result.output
    assert result.output.count("\n") == 1


def test_data_fetch_of_a_damaged_file_says_in_one_line_which(data_folder):
    (data_folder / "mnist.npz").write_bytes(b"PK")
    result = runner.invoke(app, ["data", "fetch", "mnist"])
    assert result.exit_code == 1
    assert "mnist.npz is damaged" in result.output
    assert result.output.count("\n") == 1


def test_help_shows_an_example_and_version_the_version():
    assert "ofw data fetch" in runner.invoke(app, ["data", "--help"]).output
    assert "ofw data fetch" in runner.invoke(app, ["data", "fetch", "--help"]).output
    assert "ofw demo --out" in runner.invoke(app, ["demo", "--help"]).output
    assert "ofw report ratings.ofw" in runner.invoke(app, ["report", "--help"]).output
    assert __version__ in runner.invoke(app, ["--version"]).output


def test_without_the_extra_it_says_in_one_line_what_to_install():
    code = "import sys; sys.modules['typer'] = None\nfrom onlinefw.cli import main\nmain()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == "ofw needs typer: pip install 'onlinefw[cli]'\n"


def test_starting_the_command_line_imports_no_heavy_library():
    code = (
        "import sys\n"
        "import onlinefw.cli.app\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'matplotlib', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.parametrize(
    ("typed", "found", "called"),
    [
        (".venv/bin/ofw", None, ".venv/bin/ofw"),
        ("my tools/ofw", None, "'my tools/ofw'"),
        (".venv/bin/ofw", "/usr/bin/ofw", "ofw"),
        ("-c", None, "ofw"),
    ],
)
def test_the_demo_shows_commands_as_they_can_be_typed(monkeypatch, typed, found, called):
    monkeypatch.setattr("sys.argv", [typed])
    monkeypatch.setattr("shutil.which", lambda name: found)
    assert as_called() == called
