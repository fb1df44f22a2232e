"""Killed at any moment, the last checkpoint is whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onlinefw.files import ModelFileError
from onlinefw.fitting.loop import resume

from ..readers.writing import write
from .running import assert_same_models, ofw_says, ratings

MOMENTS = 20


#: One thread, and a way to have more that survives a fork.
ENVIRONMENT = {
    "NUMBA_NUM_THREADS": "1",
    "NUMBA_THREADING_LAYER": "workqueue",
    "OPENBLAS_NUM_THREADS": "1",
}


def run(whole, killed):
    result = subprocess.run(
        [sys.executable, Path(__file__).with_name("killed.py")],
        input=json.dumps({"whole": whole, "killed": killed}, default=str),
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
def test_killed_at_20_random_moments_it_goes_on_from_its_last_checkpoint(tmp_path):
    data = write(tmp_path / "ratings.csv", ratings(120))
    fit = ["fit", "matrix", data, "--batch-size", "10", "--every", "1", "--quiet", "-o"]

    def command(name):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        return [*fit, folder / "m.ofw", "--checkpoint", folder / "run.ckpt"]

    shares = np.random.default_rng(0).random(MOMENTS).tolist()
    names = [f"killed-{k}" for k in range(MOMENTS)]
    jobs = [(command(name), share) for name, share in zip(names, shares, strict=True)]
    assert run(command("whole"), jobs) == [0] + [-9] * MOMENTS

    rounds = set()
    for name in names:
        folder = tmp_path / name
        checkpoint = folder / "run.ckpt"
        left = {path.name for path in folder.iterdir()} - {"m.ofw", "run.ckpt"}
        # What was being written is hidden and named otherwise, so no pattern takes it for one.
        assert all(part.startswith(".") and part.endswith(".tmp") for part in left)
        resumed = []
        if checkpoint.exists():
            rounds.add(resume(checkpoint)[0].rounds)
            resumed = ["--resume", checkpoint]
        ofw_says(*command(name), *resumed)
        # What was left behind is gone with the next save.
        assert {path.name for path in folder.iterdir()} == {"m.ofw", "run.ckpt"}
        assert_same_models(folder / "m.ofw", tmp_path / "whole" / "m.ofw")
    assert len(rounds) > 5  # the moments were spread over the run


def test_half_a_checkpoint_is_refused(tmp_path):
    data = write(tmp_path / "ratings.csv", ratings(40))
    path = tmp_path / "run.ckpt"
    ofw_says("fit", "matrix", data, "--radius", "5", "-o", tmp_path / "m", "--checkpoint", path)
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 25).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            resume(path)
