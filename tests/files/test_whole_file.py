"""Files that are whole or not there, and nothing of a killed process beside them."""

import os
import signal
import subprocess
import sys

import pytest

from onlinefw._files import write_text

KILLED = """
import os, signal, sys
from pathlib import Path
from onlinefw._files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def killed_while_writing(path):
    """Return the name of the temporary file that a killed process has left behind."""
    before = set(names(path.parent))
    result = subprocess.run([sys.executable, "-c", KILLED, path])
    assert result.returncode == -signal.SIGKILL
    (left,) = set(names(path.parent)) - before
    return left


posix = pytest.mark.skipif(os.name != "posix", reason="processes are asked for by signal 0")


@posix
def test_what_a_killed_process_left_behind_goes_with_the_next_save(tmp_path):
    path = tmp_path / "run.ckpt"
    write_text(path, "whole")
    killed_while_writing(path)
    assert path.read_text() == "whole" and len(names(tmp_path)) == 2
    write_text(path, "the next")
    assert names(tmp_path) == ["run.ckpt"] and path.read_text() == "the next"


@posix
def test_nothing_else_is_removed(tmp_path):
    path = tmp_path / "run.ckpt"
    left = killed_while_writing(path)
    beginning, _, process = left.removesuffix(".tmp").rpartition("-")
    kept = [
        killed_while_writing(tmp_path / "other.ckpt"),
        f"{beginning}-{os.getppid()}.tmp",  # somebody is writing it
        f"{beginning}-{process}.tmp.gz",
        f"{beginning}-{process}x.tmp",
        f"{beginning}-0.tmp",
        f"{beginning}-{'9' * 30}.tmp",
        f".run.ckpt-ffffffff-{process}.tmp",  # of another machine
        f"{left.removeprefix('.')}",
    ]
    for name in kept:
        (tmp_path / name).touch()
    write_text(path, "whole")
    assert names(tmp_path) == sorted([*kept, "run.ckpt"])


def test_an_error_in_between_leaves_the_file_before(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "before")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert names(tmp_path) == ["a.txt"] and path.read_text() == "before"
