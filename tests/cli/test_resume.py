"""``ofw fit --checkpoint --resume``: stop and go on."""

import os
import signal

import pytest

from onlinefw.cli.fit_display import Display
from onlinefw.readers.streams import ByteStream

from ..readers.writing import write
from .running import (
    MAIN,
    assert_same_models,
    ofw,
    ofw_json,
    ofw_process,
    ofw_says,
    ratings,
    refusal,
    rows,
    standard_input,
)

#: Presses Ctrl-C after a round whose number is the first argument.
INTERRUPTED = f"""
import os, signal, sys
from onlinefw.cli.fit_display import Display
rounds, shown = int(sys.argv.pop(1)), Display.show
def show(self, session):
    shown(self, session)
    if session.rows_learned == 10 * rounds:
        os.kill(os.getpid(), signal.SIGINT)
Display.show = show
{MAIN}
"""


@pytest.fixture
def small_start(monkeypatch):
    """A few rows settle the scale and the classes, and chunks are small."""
    monkeypatch.setattr("onlinefw.fitting.rows.FIRST_ROWS", 50)


def interrupt_after(monkeypatch, rounds):
    """Press Ctrl-C after so many batches, once."""
    shown, seen = Display.show, []

    def show(self, session):
        shown(self, session)
        if session.rounds and session.rounds not in seen:
            seen.append(session.rounds)
            if len(seen) == rounds:
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Display, "show", show)


def data_of(kind, tmp_path, ending="csv"):
    columns = (
        ratings() if kind == "matrix" else rows(target="label" if kind[0] == "c" else "number")
    )
    return write(tmp_path / f"{kind}.{ending}", columns)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["matrix", "regression", "classification"])
@pytest.mark.parametrize(("rounds", "ending"), [(1, "csv"), (5, "parquet"), (9, "csv.gz")])
def test_ctrl_c_and_resume_give_the_model_of_one_run(
    kind, rounds, ending, tmp_path, monkeypatch, small_start
):
    data, checkpoint = data_of(kind, tmp_path, ending), tmp_path / "run.ckpt"
    options = ("--batch-size", "10", "--test-fraction", "0.2")
    ofw_says("fit", kind, data, "-o", tmp_path / "whole.ofw", *options)
    out = tmp_path / "m.ofw"
    command = ("fit", kind, data, "-o", out, *options, "--checkpoint", checkpoint)
    with monkeypatch.context() as patch:
        interrupt_after(patch, rounds)
        result = ofw(*command)
    assert result.exit_code == 1
    assert result.stderr.endswith(f"the same command with --resume {checkpoint} goes on\n")
    # Ratings are learned one after another: each is a round.
    assert ofw_json("inspect", out)["rounds"] == (10 * rounds if kind == "matrix" else rounds)
    told = ofw_json(*command, "--resume", checkpoint)
    assert told["ended"] is True
    assert_same_models(out, tmp_path / "whole.ofw")


@pytest.mark.slow
def test_a_real_signal_to_a_real_process(tmp_path):
    data, checkpoint, out = data_of("matrix", tmp_path), tmp_path / "run.ckpt", tmp_path / "m.ofw"
    command = ("fit", "matrix", data, "-o", out, "--batch-size", "10", "--checkpoint", checkpoint)
    result = ofw_process(3, *command, code=INTERRUPTED, text=True)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("ofw fit: stopped") and last.endswith(f"--resume {checkpoint} goes on")
    assert "learned 30 rows, one after another" in result.stdout and out.exists()
    ofw_says(*command, "--resume", checkpoint)
    ofw_says("fit", "matrix", data, "-o", tmp_path / "whole.ofw", "--batch-size", "10")
    assert_same_models(out, tmp_path / "whole.ofw")


def test_without_a_checkpoint_the_model_so_far_is_written(tmp_path, monkeypatch):
    data, out = data_of("matrix", tmp_path), tmp_path / "m.ofw"
    interrupt_after(monkeypatch, 2)
    result = ofw("fit", "matrix", data, "-o", out, "--batch-size", "10", "--radius", "5")
    assert result.exit_code == 1 and "without --checkpoint it cannot go on" in result.stderr
    assert ofw_json("inspect", out)["rounds"] == 2


def test_a_run_that_has_ended_goes_on_with_nothing(tmp_path):
    data, checkpoint, out = data_of("matrix", tmp_path), tmp_path / "run.ckpt", tmp_path / "m.ofw"
    command = ("fit", "matrix", data, "-o", out, "--batch-size", "10", "--checkpoint", checkpoint)
    ofw_says(*command)
    ofw_says(*command[:4], tmp_path / "again.ofw", "--resume", checkpoint)
    assert_same_models(tmp_path / "again.ofw", out)


def test_a_pipe_goes_on_with_the_next_rows(tmp_path):
    columns = ratings()
    parts = [{k: v[:100] for k, v in columns.items()}, {k: v[100:] for k, v in columns.items()}]
    first, second = (write(tmp_path / f"{k}.csv", part) for k, part in enumerate(parts))
    out, checkpoint = tmp_path / "m.ofw", tmp_path / "run.ckpt"
    command = ("fit", "matrix", "-", "-o", out, "--batch-size", "10", "--checkpoint", checkpoint)
    with first.open() as file, standard_input(file.fileno()):
        ofw_says(*command)
    with second.open() as file, standard_input(file.fileno()):
        ofw_says(*command, "--resume", checkpoint)
    ofw_says("fit", "matrix", first, second, "-o", tmp_path / "files.ofw", "--batch-size", "10")
    assert_same_models(out, tmp_path / "files.ofw")


@pytest.fixture
def pipe():
    """The writing end of standard input."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as file, standard_input(reading):
        yield file
    os.close(reading)


@pytest.mark.parametrize("n", [4, 35])
def test_ctrl_c_while_a_pipe_has_nothing_to_say(pipe, tmp_path, monkeypatch, n, small_start):
    """Before and after the first round: no row that came through the pipe is lost."""
    lines = data_of("matrix", tmp_path).read_text().splitlines(keepends=True)
    out, checkpoint = tmp_path / "m.ofw", tmp_path / "run.ckpt"
    command = ("fit", "matrix", "-", "-o", out, "--batch-size", "10", "--radius", "5",
               "--checkpoint", checkpoint)  # fmt: skip
    pipe.write("".join(lines[: n + 1]).encode())
    ready = ByteStream._ready

    def waiting(self, seconds):
        there = ready(self, 0.0)
        if not there and seconds != self.pause:
            signal.raise_signal(signal.SIGINT)
        return there

    with monkeypatch.context() as patch:
        patch.setattr(ByteStream, "_ready", waiting)
        result = ofw(*command)
    assert result.exit_code == 1
    assert "goes on" in result.stderr.splitlines()[-1]
    assert out.exists() == (n > 10)
    pipe.write("".join(lines[:1] + lines[n + 1 :]).encode())
    pipe.close()
    assert ofw_json(*command, "--resume", checkpoint)["rows learned"] == 240


def test_bad_rows_before_and_after_the_stop_are_counted_once(tmp_path, monkeypatch):
    data = data_of("matrix", tmp_path)
    lines = data.read_text().splitlines(keepends=True)
    data.write_text("".join([*lines[:20], "u1,2,x\n", *lines[20:], "u1,2,y\n"]))
    out, checkpoint = tmp_path / "m.ofw", tmp_path / "run.ckpt"
    command = ("fit", "matrix", data, "-o", out, "--batch-size", "10", "--radius", "5",
               "--on-bad-row", "skip", "--checkpoint", checkpoint)  # fmt: skip
    with monkeypatch.context() as patch:
        interrupt_after(patch, 5)
        assert ofw(*command).exit_code == 1
    told = ofw_json(*command, "--resume", checkpoint)
    assert told["rows learned"] == 240 and told["rows left out"] == {"not a number": 2}


# Errors -------------------------------------------------------------------------------------------


def test_what_cannot_be_resumed(tmp_path):
    data, checkpoint = data_of("regression", tmp_path), tmp_path / "run.ckpt"
    model = tmp_path / "m.ofw"
    ofw_says("fit", "regression", data, "-o", model, "--radius", "2", "--checkpoint", checkpoint)
    ratings_file, out = data_of("matrix", tmp_path), tmp_path / "other.ofw"

    def line(kind, file, path):
        return refusal("fit", kind, file, "-o", out, "--resume", path)

    assert f"{checkpoint} is a checkpoint of ofw fit regression" in line(
        "matrix", ratings_file, checkpoint
    )
    assert f"{model} is a model file, which only predicts" in line("regression", data, model)
    assert "is not an onlinefw file" in line("regression", data, data)
    assert "there is no such file" in line("regression", data, tmp_path / "no.ckpt")
    assert f"{data}: reading stopped in this file, which is not among those given" in line(
        "regression", write(tmp_path / "b.csv", rows()), checkpoint
    )
    data.write_text("a,b,c,target\n1,2,3,4\n")
    assert "shorter than when it was read last" in line("regression", data, checkpoint)
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: len(whole) // 2])
    assert "cut short or was altered" in line("regression", data, checkpoint)
    assert not out.exists()


def test_a_disk_that_is_full_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    data, checkpoint = data_of("matrix", tmp_path), tmp_path / "run.ckpt"
    out = tmp_path / "m.ofw"
    fit = ("fit", "matrix", data, "-o", out, "--batch-size", "10", "--radius", "5")
    command = (*fit, "--checkpoint", checkpoint, "--every", "1")
    written, fsync = [], os.fsync

    def full(descriptor):
        written.append(descriptor)
        if len(written) > 4:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        line = refusal(*command)
    assert line.startswith(f"ofw fit: {checkpoint}: No space left on device; nothing was written")
    assert "its last checkpoint is whole" in line and line.endswith(f"{checkpoint} goes on")
    assert not out.exists() and not list(tmp_path.glob(".*"))
    ofw_says(*command, "--resume", checkpoint)
    ofw_says(*fit[:4], tmp_path / "whole.ofw", *fit[5:])
    assert_same_models(out, tmp_path / "whole.ofw")
