"""What a killed process has left among the temporary files is found and removed."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from onlinefw.past.ray.own_folder import MARK, OwnFolder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")

#: Makes a folder with something in it, says where it is, and waits.
WAITS = textwrap.dedent("""
    import sys
    from onlinefw.past.ray.own_folder import OwnFolder
    folder = OwnFolder("ofw-test-", sys.argv[1])
    (folder.path / "session").mkdir()
    (folder.path / "session" / "log").write_text("data")
    print(folder.path, flush=True)
    sys.stdin.read()
""")


@pytest.fixture
def other(tmp_path):
    """A process with a folder of its own."""
    command = [sys.executable, "-c", WAITS, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.folder = tmp_path / process.stdout.readline().strip()
        yield process
        process.kill()


def test_a_folder_is_for_its_user_only_and_goes_with_its_owner(tmp_path):
    folder = OwnFolder("ofw-test-", tmp_path)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    path = folder.path
    del folder
    assert not path.exists()


def test_that_of_a_killed_process_is_removed_by_the_next_one(tmp_path, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (other.folder / "session" / "log").exists()
    OwnFolder("ofw-another-", tmp_path)
    assert other.folder.exists(), "it is of another kind"
    OwnFolder("ofw-test-", tmp_path)
    assert not other.folder.exists()


def test_that_of_a_running_process_is_left_alone(tmp_path, other):
    OwnFolder("ofw-test-", tmp_path)
    assert (other.folder / "session" / "log").exists()
    other.communicate()
    assert not other.folder.exists(), "it ended in order, and took its folder with it"


def test_a_folder_that_we_have_not_made_is_left_alone(tmp_path, monkeypatch):
    unmarked, linked, far = (tmp_path / f"ofw-test-{name}" for name in ("plain", "link", "far"))
    unmarked.mkdir()
    (unmarked / "mine").write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / MARK).write_text("")
    linked.symlink_to(elsewhere)
    far.mkdir()
    (far / MARK).write_text("another machine")
    OwnFolder("ofw-test-", tmp_path)
    assert (unmarked / "mine").exists() and (elsewhere / MARK).exists() and far.exists()


def test_a_folder_of_another_user_is_left_alone(tmp_path, other, monkeypatch):
    other.send_signal(signal.SIGKILL)
    other.wait()
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    OwnFolder("ofw-test-", tmp_path)
    assert other.folder.exists()


def test_a_forked_process_leaves_the_folder_to_the_one_that_made_it(tmp_path):
    folder = OwnFolder("ofw-test-", tmp_path)
    child = os.fork()
    if not child:
        folder.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.exists()
    OwnFolder("ofw-test-", tmp_path)
    assert folder.path.exists(), "it is still locked"
