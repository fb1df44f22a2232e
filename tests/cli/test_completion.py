"""Someone installs the completion, opens a shell and presses Tab."""

import os
import select
import shutil
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="there are no terminals of this kind")

SHELLS = {"bash": ["bash", "--rcfile", ".bashrc", "-i"], "zsh": ["zsh", "-i"]}
PROMPT = b"READY>"
TAB, TO_BEGINNING, TO_END, ENTER = "\t", "\x01", "\x05", "\r"
#: A shell that says nothing for so many seconds is stuck.
PATIENCE = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A home folder with a program called ofw."""
    home = tmp_path_factory.mktemp("home")
    program = home / "bin" / "ofw"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom onlinefw.cli import main\nmain()\n")
    program.chmod(0o755)
    (home / "mine.ofw").touch()
    return home


def environment(folder):
    return {
        **{name: value for name, value in os.environ.items() if name != "ZDOTDIR"},
        "HOME": str(folder),
        "TERM": "xterm",
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        # The shell is named instead of looked for among the parent processes.
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }


@pytest.fixture(scope="module", params=SHELLS)
def typed(request, folder):
    """Return what becomes of a line that is typed, with its tabs, in a shell of this kind."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    install = ["ofw", "--install-completion", shell]
    done = subprocess.run(install, env=environment(folder), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with (folder / f".{shell}rc").open("a") as settings:
        settings.write(f"\nPS1='{PROMPT.decode()} '\n")

    def typed(line):
        result = folder / "result"
        result.unlink(missing_ok=True)
        # The line is not run but written to a file, as the shell has it.
        keys = f"{line}{TO_BEGINNING}echo {TO_END} > ~/result{ENTER}exit{ENTER}"
        said = in_terminal(SHELLS[shell], keys, environment(folder), folder)
        assert result.exists(), said.decode("utf-8", "replace")
        return result.read_text().strip()

    return typed


def in_terminal(command, keys, env, folder):
    """Run an interactive program, type when it is ready, and return what it showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        cwd=folder,
        start_new_session=True,
    )
    os.close(theirs)
    said, typed = b"", False
    try:
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
            if PROMPT in said and not typed:
                os.write(ours, keys.encode())
                typed = True
    finally:
        os.close(ours)
        process.kill()
        process.wait()
    return said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        (f"ofw fi{TAB}", "ofw fit"),
        (f"ofw fit mat{TAB}", "ofw fit matrix"),
        (f"ofw fit --che{TAB}", "ofw fit --checkpoint"),
        (f"ofw data fe{TAB}", "ofw data fetch"),
        (f"ofw inspect mi{TAB}", "ofw inspect mine.ofw"),
    ],
)
def test_tab_completes(typed, line, becomes):
    assert typed(line) == becomes
