"""Files that are whole or not there, and nothing of a killed process beside them."""

import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onlinefw._files import only_writer, same_file, whole_file, write_text

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
    beginning, process, token = left.removesuffix(".tmp").rsplit("-", 2)
    kept = [
        killed_while_writing(tmp_path / "other.ckpt"),
        f"{beginning}-{os.getppid()}-{token}.tmp",  # somebody is writing it
        f"{beginning}-{process}-{token}.tmp.gz",
        f"{beginning}-{process}-{token}x.tmp",
        f"{beginning}-{process}.tmp",
        f"{beginning}-0-{token}.tmp",
        f"{beginning}-{'9' * 30}-{token}.tmp",
        f".run.ckpt-ffffffff-{process}-{token}.tmp",  # of another machine
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


def test_the_mode_of_the_file_before_is_kept(tmp_path):
    path = tmp_path / "secret.ofw"
    write_text(path, "before")
    path.chmod(0o640)
    write_text(path, "after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and path.read_text() == "after"


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path):
    own, link = tmp_path / "own.csv", tmp_path / "link.csv"
    own.write_text("mine")
    link.symlink_to(own)
    write_text(link, "new")
    assert own.read_text() == "mine" and link.read_text() == "new" and not link.is_symlink()


def test_no_temporary_that_is_already_there_is_written_to(tmp_path, monkeypatch):
    path, own = tmp_path / "m.ofw", tmp_path / "own.csv"
    own.write_text("mine")
    monkeypatch.setattr("secrets.token_hex", lambda n: "00" * n)
    with whole_file(path):
        (temporary,) = set(names(tmp_path)) - {"own.csv"}
    (tmp_path / temporary).symlink_to(own)
    with pytest.raises(FileExistsError):
        write_text(path, "new")
    assert own.read_text() == "mine"


@posix
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_plain_file_is_not_replaced(kind, tmp_path):
    path = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    else:
        path.mkdir()
    with pytest.raises(OSError, match=r"is a pipe or a device|is a folder"):
        write_text(path, "new")
    assert names(tmp_path) == ["out"]


def test_threads_that_save_to_one_path_do_not_break_each_other(tmp_path):
    path = tmp_path / "run.ckpt"
    texts = [str(k) * 100_000 for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_text(path, text), texts * 10))
    assert names(tmp_path) == ["run.ckpt"] and path.read_text() in texts


HOLDER = """
import sys
from pathlib import Path
from onlinefw._files import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@posix
@pytest.mark.parametrize("end", ["at its end", "killed"])
def test_a_second_writer_is_refused_until_the_first_has_gone(end, tmp_path):
    path = tmp_path / "run.ckpt"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(BlockingIOError, match="another process is writing it"), only_writer(path):
        pass
    if end == "killed":
        holder.kill()
    holder.communicate()
    with only_writer(path):
        pass
    assert names(tmp_path) == []


def test_one_file_under_two_names(tmp_path):
    path = tmp_path / "a.csv"
    assert same_file(path, tmp_path / "x" / ".." / "a.csv")  # neither is there yet
    path.touch()
    (tmp_path / "link").symlink_to(path)
    os.link(path, tmp_path / "hard")
    for other in (tmp_path / "link", tmp_path / "hard", Path(os.path.relpath(path))):
        assert same_file(path, other)
    assert not same_file(path, tmp_path / "b.csv")
