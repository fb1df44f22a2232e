"""Workers with a GPU each, on a Ray that says it has some."""

from pathlib import Path

import pytest

from onlinefw.losses import Square
from onlinefw.objectives import LinearObjective, ObservedEntries, RunningLeastSquares

from .own_process import run

ROOT = Path(__file__).parents[3]
#: What workers import as cupy.
STAND_IN = """
import sys
from types import SimpleNamespace
from tests.past.cuda.fake_cupy import make

sys.modules["cupy"] = module = make()
module.cuda = SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=lambda: 1))
"""


@pytest.mark.usefixtures("cluster")
def test_auto_is_memory_where_there_are_no_gpus_for_all_workers():
    import ray

    if ray.cluster_resources().get("GPU", 0) >= 3:
        pytest.skip("there are GPUs for all workers")
    where = {"device": "auto", "workers": 3}
    for objective in (
        ObservedEntries((3, 4), **where),
        LinearObjective(Square(), **where),
        RunningLeastSquares(4, **where),
    ):
        assert (objective.device, objective.workers) == ("cpu", 3)


def test_each_worker_has_a_gpu_of_its_own(tmp_path):
    pytest.importorskip("ray")
    for folder, code in (("without", "raise ImportError"), ("with", STAND_IN)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cupy.py").write_text(code)
    run(
        """
        import os, signal, sys, numpy as np, ray
        from onlinefw.objectives import RunningLeastSquares
        from tests.past.ray.problems import follow, past_of
        from tests.past.ray.rows import assert_same_rows, make_row_learner, row_batches

        def start(folder, gpus):
            paths = [f"{os.environ['FOLDER']}/{folder}", os.environ["ROOT"]]
            os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, before)])
            ray.init(num_cpus=3, num_gpus=gpus, include_dashboard=False, log_to_driver=False)

        before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        start("without", 1)
        try:
            RunningLeastSquares(4, device="cuda", workers=1)
        except RuntimeError as error:
            said = str(error)
        assert "needs CuPy; install it with: pip install 'onlinefw[gpu]'" in said, said
        assert "\\n" not in said
        ray.shutdown()

        start("with", 2)
        try:
            RunningLeastSquares(4, device="cuda", workers=3)
        except ValueError as error:
            said = str(error)
        assert "3 workers need 3 GPUs, but the Ray cluster has 2" in said, said

        name = "logistic, intercept, weights"
        batches = list(row_batches(name))
        expected, learner = make_row_learner(name), make_row_learner(name, 2, device="auto")
        follow(expected, batches)
        follow(learner, batches[:9])
        shards = past_of(learner).shards
        calls = [w.call.remote(os.getenv, "CUDA_VISIBLE_DEVICES") for w in shards._workers]
        assert sorted(ray.get(calls)) == ["0", "1"]
        os.kill(shards.pids[1], signal.SIGKILL)
        follow(learner, batches[9:])
        assert shards.restarts >= 1
        assert_same_rows(expected, learner)
        assert learner.objective.device == "cuda"
        assert "cupy" not in sys.modules, "the driver needs none"
        """,
        FOLDER=str(tmp_path),
        ROOT=str(ROOT),
    )
