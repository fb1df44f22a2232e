"""Killed at any moment, the last checkpoint is whole."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from onlinefw.files import ModelFileError
from onlinefw.fitting.loop import resume

from ..readers.writing import write
from .running import MAIN, assert_same_models, ofw_says, ratings

MOMENTS = 20


def fit(data, folder, *more):
    """Arguments of a run that writes a checkpoint after every round."""
    files = ["-o", folder / "m.ofw", "--checkpoint", folder / "run.ckpt"]
    return ["fit", "matrix", data, "--batch-size", "10", "--every", "1", "--quiet", *files, *more]


def run_and_copy(data, folder, moments=()):
    """Run; return how many moments it had. At each of ``moments`` its files are copied.

    A moment is a call or return of a Python or C function. Bytes that were written to a file
    survive the process and what is still in a buffer does not, so a copy made in mid-run is what
    SIGKILL would leave there.
    """
    passed = 0

    def count(frame, event, argument):
        nonlocal passed
        passed += 1
        if passed in moments:
            shutil.copytree(folder, folder.with_name(f"killed-{passed}"))

    folder.mkdir(exist_ok=True)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        ofw_says(*fit(data, folder))
    finally:
        sys.setprofile(before)
    return passed


def goes_on(data, folder):
    """Resume what a killed run left; return after how many rounds it had been killed."""
    left = {path.name for path in folder.iterdir()} - {"m.ofw", "run.ckpt"}
    # What was being written is hidden and named otherwise, so no pattern takes it for one.
    assert all(part.startswith(".") and part.endswith((".tmp", ".lock")) for part in left)
    checkpoint = folder / "run.ckpt"
    resumed, rounds = [], 0
    if checkpoint.exists():
        rounds = resume(checkpoint)[0].rounds
        resumed = ["--resume", checkpoint]
    ofw_says(*fit(data, folder, *resumed))
    # Nothing new is left behind, and what another process left is gone with the next save.
    now = {path.name for path in folder.iterdir()}
    assert now - left == {"m.ofw", "run.ckpt"}
    assert all(f"-{os.getpid()}-" in part for part in now & left)
    return rounds


@pytest.mark.slow
def test_killed_at_20_random_moments_it_goes_on_from_its_last_checkpoint(tmp_path):
    data = write(tmp_path / "ratings.csv", ratings(120))
    whole = tmp_path / "whole"
    run_and_copy(data, whole)  # here first, so that nothing has to be imported or compiled
    shutil.rmtree(whole)
    last = run_and_copy(data, whole)
    moments = set(np.random.default_rng(0).integers(1, last, size=MOMENTS).tolist())
    shutil.rmtree(whole)
    run_and_copy(data, whole, moments)

    killed = list(tmp_path.glob("killed-*"))
    assert len(killed) == len(moments)
    rounds = set()
    for folder in killed:
        rounds.add(goes_on(data, folder))
        assert_same_models(folder / "m.ofw", whole / "m.ofw")
    assert len(rounds) > 5  # the moments were spread over the run


@pytest.mark.slow
def test_a_process_that_is_killed_can_be_resumed(tmp_path):
    data = write(tmp_path / "ratings.csv", ratings(1200))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    ofw_says(*fit(data, whole))
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *map(str, fit(data, killed))],
        env={**os.environ, "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    while process.poll() is None and not (killed / "run.ckpt").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL  # it had not come to its end
    assert 0 < goes_on(data, killed) < 120
    assert_same_models(killed / "m.ofw", whole / "m.ofw")


def test_half_a_checkpoint_is_refused(tmp_path):
    data = write(tmp_path / "ratings.csv", ratings(40))
    path = tmp_path / "run.ckpt"
    ofw_says("fit", "matrix", data, "--radius", "5", "-o", tmp_path / "m", "--checkpoint", path)
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 25).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            resume(path)
