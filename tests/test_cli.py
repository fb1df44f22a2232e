"""The command line, as a newcomer meets it."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from onlinefw import __version__
from onlinefw.cli.app import app
from onlinefw.datasets.registry import ENTRIES

from .publisher import TINY, closed_port, serving, tiny_entry

runner = CliRunner()


def test_the_demo_prints_a_table_and_writes_the_picture_it_names(tmp_path):
    out = tmp_path / "demo.png"
    result = runner.invoke(app, ["demo", "--rounds", "300", "--out", str(out)])
    assert result.exit_code == 0, result.output
    for word in ("O-FW", "O-AW", "sPG", "certificate", "rate", "predicted", "time/round"):
        assert word in result.output
    assert str(out) in result.output.replace("\n", "")
    assert out.read_bytes()[:4] == b"\x89PNG"


def test_the_demo_works_on_the_boundary_too(tmp_path):
    out = tmp_path / "demo.png"
    args = ["demo", "--rounds", "200", "--radius", "0.15", "--seed", "3", "--out", str(out)]
    assert runner.invoke(app, args).exit_code == 0
    assert out.exists()


@pytest.mark.parametrize(
    "args",
    [
        ["demo", "--rounds", "3"],
        ["demo", "--radius", "0"],
        ["demo", "--radius", "inf"],
        ["demo", "--bogus"],
        ["sing"],
        ["data", "fetch"],
        ["data", "sing"],
    ],
)
def test_bad_usage_exits_with_two(args):
    assert runner.invoke(app, args).exit_code == 2


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("nowhere/demo.png", "nowhere does not exist; create it first"),
        ("demo.xyz", "ends in .png, .pdf, .svg"),
        ("demo", "ends in .png, .pdf, .svg"),
        (".", "ends in"),
        ("folder.png", "choose another place"),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_in_one_line_before_the_work(
    tmp_path, monkeypatch, out, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    result = runner.invoke(app, ["demo", "--out", out])
    assert result.exit_code == 2
    assert words in result.output
    assert result.output.count("\n") == 1
    assert "Traceback" not in result.output


def test_ctrl_c_says_that_it_stopped(tmp_path, monkeypatch):
    from onlinefw.cli import demo

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run_online_lasso", interrupted)
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "demo.png")])
    assert result.exit_code == 1
    assert "stopped; no picture was written" in result.output


def test_a_plain_ascii_terminal_is_enough(tmp_path):
    command = "from onlinefw.cli import main; main()"
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            command,
            "demo",
            "--rounds",
            "100",
            "--out",
            str(tmp_path / "d.png"),
        ],
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
    assert "ofw demo --rounds" in runner.invoke(app, ["demo", "--help"]).output
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
