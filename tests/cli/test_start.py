"""The command line starts fast, and shells complete it."""

import os
import shutil
import subprocess
import sys

import pytest

from .running import ofw_process

COMMANDS = {"fit", "predict", "recommend", "inspect", "demo", "data", "reproduce"}


def test_help_imports_no_heavy_library():
    code = (
        "import atexit, sys\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'pyarrow', 'matplotlib'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        "from onlinefw.cli import main; main()"
    )
    for args in (["--help"], ["fit", "--help"]):
        result = ofw_process(*args, code=code, text=True)
        assert (result.returncode, result.stderr) == (0, "[]\n")
    for word in ("radius", "checkpoint", "resume", "on-bad-row", "test-fraction"):
        assert f"--{word}" in result.stdout


@pytest.fixture
def environment(tmp_path):
    """An environment in which ``ofw`` is a program, and its folder."""
    program = tmp_path / "ofw"
    program.write_text(f"#!{sys.executable}\nfrom onlinefw.cli import main\nmain()\n")
    program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        # The shell is named instead of looked for among the parent processes.
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }


def script_for(shell, environment):
    show = ["ofw", "--show-completion", shell]
    result = subprocess.run(show, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_and_kinds(environment):
    script = script_for("bash", environment)
    ask = (
        f"{script}\n"
        "COMP_WORDS=(ofw ''); COMP_CWORD=1; _ofw_completion ofw; echo \"${COMPREPLY[@]}\"\n"
        "COMP_WORDS=(ofw fit ''); COMP_CWORD=2; _ofw_completion ofw; echo \"${COMPREPLY[@]}\"\n"
    )
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    result = subprocess.run(["bash"], input=ask, env=environment, text=True, capture_output=True)
    commands, kinds = result.stdout.splitlines()
    assert set(commands.split()) >= COMMANDS, result.stderr
    assert set(kinds.split()) == {"matrix", "clicks", "regression", "classification"}


@pytest.mark.slow
def test_zsh_completes_commands(environment):
    script = script_for("zsh", environment)
    assert script.lstrip().startswith("#compdef ofw")
    if shutil.which("zsh"):
        checked = subprocess.run(["zsh", "-n"], input=script, text=True, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, "")
    asked = {**environment, "_OFW_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "ofw "}
    result = subprocess.run(["ofw"], env=asked, capture_output=True, text=True)
    for command in COMMANDS:
        assert f'"{command}":' in result.stdout
