"""What ``ofw fit`` has learned is kept, whatever fails after the first round."""

import errno
import os
import re
import tempfile
from functools import partial

import pytest

from onlinefw import FrankWolfeMatrixCompletion, load
from onlinefw._files import whole_file
from onlinefw.cli import fit
from onlinefw.readers import read_ratings, read_rows

from ..cli.running import assert_same_models, ofw, ofw_says, ratings, refusal, rows
from ..readers.writing import write

OPTIONS = ("--batch-size", "10", "--radius", "5")


@pytest.fixture(autouse=True)
def pieces(monkeypatch, tmp_path):
    """Files are read in small pieces, and temporary files have a folder of their own."""
    monkeypatch.setattr(fit, "read_ratings", partial(read_ratings, chunk_rows=30, block_bytes=400))
    monkeypatch.setattr(fit, "read_rows", partial(read_rows, chunk_rows=30, block_bytes=400))
    monkeypatch.setattr("onlinefw.fitting.rows.FIRST_ROWS", 50)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "ratings.csv", ratings())


def failure(*args, code=2):
    """Run a command that fails; return its one line, and the checkpoint that it names."""
    result = ofw(*args)
    assert result.exit_code == code, result.output
    assert result.stdout == "" and result.stderr.count("\n") == 1, result.output
    named = re.search(r"--resume (\S+) goes on\n", result.stderr)
    return result.stderr, named and named[1]


def fails_with(error):
    def fail(*_, **__):
        raise error

    return fail


def full(*folders, but=lambda path: True):
    """Writing to these folders fails, as on a full disk."""

    def opened(path):
        if any(folder in path.parents for folder in folders) and but(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return whole_file(path)

    return opened


# The data -----------------------------------------------------------------------------------------


def last_row_with(path, cell):
    """Replace the last cell of the file; return what puts it back."""
    before = path.read_text()
    path.write_text(f"{before[: before.rstrip().rindex(',')]},{cell}\n")
    return lambda: path.write_text(before)


@pytest.mark.parametrize(
    ("kind", "cell", "said"),
    [
        ("matrix", "much", "row 240 (line 241), column 'rating': 'much' is not a number"),
        ("classification", "maybe", "row 240: the label 'maybe' is not one of"),
    ],
)
def test_a_row_that_cannot_be_learned(kind, cell, said, tmp_path):
    columns = ratings() if kind == "matrix" else rows(target="label")
    data, out = write(tmp_path / "data.csv", columns), tmp_path / "m.ofw"
    command = ["fit", kind, data, "--batch-size", "10", "-o"]
    ofw_says(*command, tmp_path / "whole.ofw")
    mend = last_row_with(data, cell)
    line, checkpoint = failure(*command, out)
    assert said in line
    assert checkpoint == f"{out}.ckpt" and not out.exists()
    mend()
    ofw_says(*command, out, "--resume", checkpoint)
    assert_same_models(out, tmp_path / "whole.ofw")


def test_a_checkpoint_that_was_asked_for_has_the_last_round(tmp_path, data):
    mend = last_row_with(data, "much")
    command = ["fit", "matrix", data, *OPTIONS, "-o", tmp_path / "m.ofw"]
    _, checkpoint = failure(*command, "--checkpoint", tmp_path / "run.ckpt")
    assert checkpoint == str(tmp_path / "run.ckpt")
    mend()
    ofw_says(*command, "--resume", checkpoint)
    assert not (tmp_path / "m.ofw.ckpt").exists()


def test_nothing_is_kept_of_a_run_that_has_learned_nothing(tmp_path):
    data = tmp_path / "ratings.csv"
    data.write_text("user,item,rating\na,b,much\n")
    assert "--resume" not in refusal("fit", "matrix", data, "-o", tmp_path / "m.ofw")
    assert not list(tmp_path.glob("*.ckpt"))


def test_a_file_that_is_there_is_not_replaced(tmp_path, data):
    mine = tmp_path / "m.ofw.ckpt"
    mine.write_text("mine")
    last_row_with(data, "much")
    _, checkpoint = failure("fit", "matrix", data, *OPTIONS, "-o", tmp_path / "m.ofw")
    assert mine.read_text() == "mine" and checkpoint == str(tmp_path / "m.ofw-2.ckpt")


# The test file ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": [1.0], "target": [1.0]}, "'b'"),
        ({"a": [1.0], "b": [1.0], "c": ["x"], "target": [1.0]}, "'x' is not a number"),
        ({"a": [], "b": [], "c": [], "target": []}, "no rows"),
    ],
)
def test_a_test_file_that_cannot_be_used_is_refused_before_the_run(
    columns, said, tmp_path, monkeypatch
):
    monkeypatch.setattr(fit, "learn", fails_with(AssertionError("it has begun to learn")))
    data, test = write(tmp_path / "rows.csv", rows()), write(tmp_path / "test.csv", columns)
    line = refusal("fit", "regression", data, "-o", tmp_path / "m.ofw", "--test", test)
    assert str(test) in line and said in line


@pytest.mark.parametrize("ending", ["csv", "libsvm"])
def test_a_test_file_may_have_other_columns_as_well_or_fewer_nonzeros(ending, tmp_path):
    if ending == "csv":
        data = write(tmp_path / "rows.csv", rows())
        test = write(tmp_path / "test.csv", {"id": range(240), **rows()})
    else:
        data, test = tmp_path / "rows.svm", tmp_path / "test.svm"
        data.write_text("".join(f"{k % 2} 1:{k % 2} 2:1 3:2\n" for k in range(60)))
        test.write_text("1 1:1\n0 2:1\n")
    said = ofw_says("fit", "regression", data, "-o", tmp_path / "m.ofw", "--test", test)
    assert "test file: MSE" in said


def test_a_bad_row_far_down_in_the_test_file(tmp_path, data):
    test, out = write(tmp_path / "test.csv", ratings(seed=1)), tmp_path / "m.ofw"
    last_row_with(test, "much")
    command = ["fit", "matrix", data, *OPTIONS, "-o"]
    line = refusal(*command, out, "--test", test)
    assert f"{test}: row 240" in line and line.endswith(f"; the model is written: {out}")
    ofw_says(*command, tmp_path / "whole.ofw")
    assert_same_models(out, tmp_path / "whole.ofw")


# The disk -----------------------------------------------------------------------------------------


@pytest.fixture
def there(tmp_path):
    """A folder for output."""
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


@pytest.mark.parametrize("asked", [[], ["--checkpoint", "run.ckpt", "--every", "3"]])
def test_a_disk_that_is_full_when_output_is_written(asked, there, tmp_path, data, monkeypatch):
    asked = [there / arg if arg.endswith("ckpt") else arg for arg in asked]
    command = ["fit", "matrix", data, *OPTIONS, "-o"]
    with monkeypatch.context() as patch:
        patch.setattr("onlinefw.files.container.whole_file", full(there))
        line, checkpoint = failure(*command, there / "m.ofw", *asked)
    assert "No space left on device" in line and not list(there.iterdir())
    assert checkpoint.startswith(f"{tmp_path / 'temporary'}/")
    ofw_says(*command, tmp_path / "m.ofw", "--resume", checkpoint)
    ofw_says(*command, tmp_path / "whole.ofw")
    assert_same_models(tmp_path / "m.ofw", tmp_path / "whole.ofw")


def test_where_there_is_room_for_a_model_only(there, tmp_path, data, monkeypatch):
    temporary = tmp_path / "temporary"
    no_room = full(there, temporary, but=lambda path: there in path.parents or "ckpt" in path.name)
    monkeypatch.setattr("onlinefw.files.container.whole_file", no_room)
    line, _ = failure("fit", "matrix", data, *OPTIONS, "-o", there / "m.ofw")
    (model,) = temporary.glob("*/m.ofw")
    assert f"No space left on device; nothing was written; the model so far is in {model}" in line
    assert load(model).n_rounds_ == 24 and len(list(temporary.iterdir())) == 1


def test_where_there_is_no_room_at_all(there, tmp_path, data, monkeypatch):
    everywhere = full(there, tmp_path / "temporary")
    monkeypatch.setattr("onlinefw.files.container.whole_file", everywhere)
    line, _ = failure("fit", "matrix", data, *OPTIONS, "-o", there / "m.ofw")
    assert "what was learned could not be kept" in line
    assert not list((tmp_path / "temporary").iterdir())


def test_a_summary_that_cannot_be_printed(tmp_path, data, monkeypatch):
    error = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(fit, "_say", fails_with(error))
    line, _ = failure("fit", "matrix", data, *OPTIONS, "-o", tmp_path / "m.ofw")
    assert line.endswith(f"No space left on device; the model is written: {tmp_path / 'm.ofw'}\n")
    assert load(tmp_path / "m.ofw").n_rounds_ == 24


# Anything else ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "ofw fit: there is not enough memory; what was learned is kept"),
        (KeyError("gap"), "ofw fit: KeyError: 'gap'; what was learned is kept"),
        (KeyboardInterrupt(), "ofw fit: stopped; what was learned is kept"),
    ],
)
def test_a_failure_after_the_last_round(error, said, tmp_path, data, monkeypatch):
    command = ["fit", "matrix", data, *OPTIONS, "-o"]
    with monkeypatch.context() as patch:
        patch.setattr(fit, "_summary", fails_with(error))
        line, checkpoint = failure(*command, tmp_path / "m.ofw", code=1)
    assert line.startswith(said)
    ofw_says(*command, tmp_path / "m.ofw", "--resume", checkpoint)
    ofw_says(*command, tmp_path / "whole.ofw")
    assert_same_models(tmp_path / "m.ofw", tmp_path / "whole.ofw")


def fail_in_round(monkeypatch, number, after):
    """Let a round fail: before the model has learned its rows, or after that."""
    learns, rounds = FrankWolfeMatrixCompletion.partial_fit, iter(range(1, 1000))

    def partial_fit(self, X, y):
        fails = next(rounds) == number
        if not fails or after:
            learns(self, X, y)
        if fails:
            raise MemoryError
        return self

    monkeypatch.setattr(FrankWolfeMatrixCompletion, "partial_fit", partial_fit)


def test_a_round_that_fails_before_anything_has_changed(tmp_path, data, monkeypatch):
    command = ["fit", "matrix", data, *OPTIONS, "-o"]
    ofw_says(*command, tmp_path / "whole.ofw")
    with monkeypatch.context() as patch:
        fail_in_round(patch, 5, after=False)
        _, checkpoint = failure(*command, tmp_path / "m.ofw", code=1)
    ofw_says(*command, tmp_path / "m.ofw", "--resume", checkpoint)
    assert_same_models(tmp_path / "m.ofw", tmp_path / "whole.ofw")


def test_a_round_that_fails_half_way_leaves_the_last_checkpoint(tmp_path, data, monkeypatch):
    command = ["fit", "matrix", data, *OPTIONS, "-o"]
    ofw_says(*command, tmp_path / "whole.ofw")
    with monkeypatch.context() as patch:
        fail_in_round(patch, 5, after=True)
        line, checkpoint = failure(
            *command, tmp_path / "m.ofw", "--checkpoint", tmp_path / "c", "--every", "2", code=1
        )
    assert "could not be kept (the last round failed half-way)" in line
    assert checkpoint == str(tmp_path / "c")
    ofw_says(*command, tmp_path / "m.ofw", "--resume", checkpoint)
    assert_same_models(tmp_path / "m.ofw", tmp_path / "whole.ofw")
