"""A disk that is full: one line says so, nothing is half-written, and nothing learned is lost."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from onlinefw import load

from ..cli.running import ofw, ofw_says
from ..readers.writing import write


@pytest.fixture
def tiny(tmp_path):
    """A disk of 16 kB, of which 12 are taken."""
    disk = tmp_path / "tiny"
    disk.mkdir()
    call = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    try:
        done = subprocess.run(call, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no command mount")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        (disk / "taken").write_bytes(bytes(12 * 1024))
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=False)


@pytest.fixture
def data(tmp_path):
    """Rows of 40 features, whose model is larger than what is left."""
    X = np.random.default_rng(0).standard_normal((300, 40))
    columns = {f"f{j}": X[:, j].tolist() for j in range(40)}
    return write(tmp_path / "a.csv", {**columns, "y": X[:, 0].tolist()})


def test_the_model_goes_where_there_is_room(tmp_path, tiny, data):
    (tiny / "m.ofw").write_bytes(b"")
    result = ofw("fit", "regression", data, "-o", tiny / "m.ofw", "--radius", "1")
    assert result.exit_code == 2 and result.stdout == "" and result.stderr.count("\n") == 1
    assert f"{tiny / 'm.ofw'}: No space left on device; nothing was written" in result.stderr
    kept = Path(re.search(r"--resume (\S+) goes on", result.stderr)[1])
    assert {path.name for path in tiny.iterdir()} == {"m.ofw", "taken"}
    assert (tiny / "m.ofw").read_bytes() == b""  # as it was
    resume = ("--resume", kept, "--checkpoint", tmp_path / "new.ckpt")
    ofw_says("fit", "regression", data, "-o", tmp_path / "m.ofw", *resume)
    assert load(tmp_path / "m.ofw").n_features_in_ == 40


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl", "p.parquet"])
def test_predictions_are_whole_or_not_there(tmp_path, tiny, data, name):
    model = tmp_path / "m.ofw"
    ofw_says("fit", "regression", data, "-o", model, "--radius", "1")
    result = ofw("predict", model, *[data] * 20, "-o", tiny / name)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert f"{tiny / name}: No space left on device; nothing was written" in result.stderr
    assert [path.name for path in tiny.iterdir()] == ["taken"]
