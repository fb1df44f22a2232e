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


def run(first, jobs):
    result = subprocess.run(
        [sys.executable, Path(__file__).with_name("killed.py")],
        input=json.dumps({"first": first, "then": jobs}, default=str),
        capture_output=True,
        text=True,
        env={**os.environ, **ENVIRONMENT},
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_killed_at_20_random_moments_it_goes_on_from_its_last_checkpoint(tmp_path):
    data = write(tmp_path / "ratings.csv", ratings(160))
    fit = ["fit", "matrix", data, "--batch-size", "10", "--every", "1", "--quiet", "-o"]

    def command(k):
        folder = tmp_path / str(k)
        folder.mkdir(exist_ok=True)
        return [*fit, folder / "m.ofw", "--checkpoint", folder / "run.ckpt"]

    first = command("first")
    (whole,) = run(first, [{"args": command("whole")}])
    assert whole["status"] == 0
    moments = np.random.default_rng(0).integers(1, whole["moments"], MOMENTS)
    killed = run(first, [{"args": command(k), "moment": int(m)} for k, m in enumerate(moments)])
    assert {one["status"] for one in killed} == {-9}

    jobs, rounds = [], []
    for k in range(MOMENTS):
        folder = tmp_path / str(k)
        checkpoint = folder / "run.ckpt"
        assert not (folder / "m.ofw").exists() or (folder / "m.ofw").read_bytes()
        left = {path.name for path in folder.iterdir()} - {"m.ofw", "run.ckpt"}
        # What was being written is hidden and named otherwise, so no pattern takes it for one.
        assert all(name.startswith(".") and name.endswith(".tmp") for name in left)
        if checkpoint.exists():
            rounds.append(resume(checkpoint)[0].rounds)
            jobs.append({"args": [*command(k), "--resume", checkpoint]})
        else:
            jobs.append({"args": command(k)})
    assert len(set(rounds)) > 5  # the moments were spread over the run
    assert {one["status"] for one in run(first, jobs)} == {0}
    for k in range(MOMENTS):
        assert_same_models(tmp_path / str(k) / "m.ofw", tmp_path / "whole" / "m.ofw")


def test_half_a_checkpoint_is_refused(tmp_path):
    data = write(tmp_path / "ratings.csv", ratings(40))
    path = tmp_path / "run.ckpt"
    ofw_says("fit", "matrix", data, "--radius", "5", "-o", tmp_path / "m", "--checkpoint", path)
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 25).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            resume(path)
