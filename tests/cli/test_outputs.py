"""A user's files are never destroyed by surprise."""

import os
import subprocess
import sys

import pytest

from ..readers.writing import write
from .running import MAIN, ofw_says, ratings, refusal


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "own.csv", ratings(60))


@pytest.fixture
def model(tmp_path, data):
    ofw_says("fit", "matrix", data, "--radius", "5", "-o", tmp_path / "m.ofw")
    return tmp_path / "m.ofw"


def spellings(path):
    """Other names of the same file."""
    link, hard = path.with_name(f"link-{path.name}"), path.with_name(f"hard-{path.name}")
    link.symlink_to(path)
    os.link(path, hard)
    return [path, path.parent / "." / ".." / path.parent.name / path.name, link, hard]


def test_an_input_is_not_an_output(tmp_path, data, model):
    for name in spellings(data):
        before = data.read_bytes()
        for args in (
            ["fit", "matrix", data, "--force", "-o", name],
            ["fit", "matrix", tmp_path / "own*.csv", "--force", "-o", name],
            ["fit", "matrix", data, "-o", tmp_path / "new", "--force", "--checkpoint", name],
            ["predict", model, data, "--force", "-o", name],
        ):
            assert "is read by this command; name another file with" in refusal(*args)
        assert data.read_bytes() == before
    before = model.read_bytes()
    assert "is read by this command" in refusal("report", model, "-o", model, "--force")
    assert model.read_bytes() == before


def test_a_file_of_another_kind_is_replaced_by_force_only(tmp_path, data, model):
    notes = tmp_path / "notes.txt"
    checkpoint = tmp_path / "run.ckpt"
    fit = ["fit", "matrix", data, "--radius", "5"]
    ofw_says(*fit, "-o", model, "--checkpoint", checkpoint)  # a model over a model
    for args in (
        [*fit, "-o", notes],
        [*fit, "-o", checkpoint],
        [*fit, "-o", tmp_path / "new", "--checkpoint", notes],
        [*fit, "-o", tmp_path / "new", "--checkpoint", model],
        ["report", model, "-o", notes],
    ):
        notes.write_text("mine")
        assert "exists and is not a" in refusal(*args)
        assert notes.read_text() == "mine"
        ofw_says(*args, "--force")
        ofw_says("fit", "matrix", data, "--radius", "5", "-o", model, "--force")
        ofw_says(*fit, "-o", model, "--force", "--checkpoint", checkpoint)


def test_a_page_and_predictions_may_be_made_again(tmp_path, data, model):
    for _ in range(2):
        ofw_says("report", model, "-o", tmp_path / "page.html")
        ofw_says("predict", model, data, "-o", tmp_path / "predictions.csv")
        ofw_says("predict", model, data, "-o", tmp_path / "predictions.parquet")
    picture = tmp_path / "picture.csv"
    picture.write_bytes(b"\x89PNG\0\0")
    assert "exists and is not predictions" in refusal("predict", model, data, "-o", picture)


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
@pytest.mark.slow
def test_a_second_run_on_the_same_checkpoint_is_refused(tmp_path, data):
    checkpoint = tmp_path / "run.ckpt"
    options = ["--radius", "5", "--every", "1", "--batch-size", "5", "--quiet"]
    fit = ["fit", "matrix", "-", "-o", tmp_path / "a", "--checkpoint", checkpoint, *options]
    first = subprocess.Popen([sys.executable, "-c", MAIN, *fit], stdin=subprocess.PIPE)
    first.stdin.write(data.read_bytes())
    first.stdin.flush()
    while not (tmp_path / ".run.ckpt.lock").exists():
        assert first.poll() is None
    second = ["fit", "matrix", data, "--radius", "5", "-o", tmp_path / "b"]
    message = refusal(*second, "--checkpoint", checkpoint)
    assert "another process is writing it" in message
    first.communicate()
    assert first.returncode == 0
    ofw_says(*second, "--checkpoint", checkpoint)
    assert not (tmp_path / ".run.ckpt.lock").exists()


def test_ids_and_names_cannot_steer_the_terminal(tmp_path):
    columns = ratings(60)
    columns["item"] = [f"\x1b[31m{item}" for item in columns["item"]]
    data = write(tmp_path / "own.csv", columns)
    ofw_says("fit", "matrix", data, "--radius", "5", "-o", tmp_path / "m.ofw")
    said = ofw_says("recommend", tmp_path / "m.ofw", "--user", "u1", "--seen")
    assert "\x1b" not in said and "\\x1b[31m" in said
    assert "\x1b" not in refusal("recommend", tmp_path / "m.ofw", "--user", "\x1b[31mu")
    assert "\x1b" not in refusal("fit", "matrix", data, "--user", "\x1b]0;x", "-o", tmp_path / "n")


def test_a_folder_that_may_not_be_written_to_is_told_before_learning(tmp_path, data, monkeypatch):
    allowed = os.access
    locked = tmp_path / "locked"
    locked.mkdir()

    def access(path, mode):  # who runs the tests may be allowed everything
        return allowed(path, mode) and not (mode == os.W_OK and str(path) == str(locked))

    monkeypatch.setattr(os, "access", access)
    line = refusal("fit", "matrix", data, "-o", locked / "m.ofw")
    assert line == (f"ofw fit: the folder {locked} may not be written to; give another with -o")
    line = refusal("fit", "matrix", data, "-o", tmp_path / "m.ofw", "--checkpoint", locked / "c")
    assert line.endswith(f"{locked} may not be written to; give another with --checkpoint")
