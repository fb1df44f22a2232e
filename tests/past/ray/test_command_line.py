"""``ofw fit --workers``."""

import sys

import pytest

from onlinefw.cli.fit_display import Display

from ...cli.running import MAIN, ofw, ofw_json, ofw_process, ratings, refusal, rows
from ...readers.writing import write

#: Ends Ray after a round whose number is the first argument.
WITHOUT_RAY = f"""
import sys
from onlinefw.cli.fit_display import Display
rounds, shown = int(sys.argv.pop(1)), Display.show
def show(self, session):
    shown(self, session)
    if session.rounds == rounds:
        import ray
        ray.shutdown()
Display.show = show
{MAIN}
"""


def data_of(kind, tmp_path):
    target = "label" if kind == "classification" else "number"
    return write(tmp_path / "data.csv", ratings() if kind == "matrix" else rows(target=target))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("kind", ["matrix", "regression", "classification"])
def test_the_same_model_with_workers(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("onlinefw.fitting.rows.FIRST_ROWS", 50)
    steps = ["--radius", 20] if kind == "matrix" else []  # single observations have no workers
    command = ["fit", kind, data_of(kind, tmp_path), "--batch-size", 40, *steps, "-o"]
    alone = ofw_json(*command, tmp_path / "alone.ofw")
    with_workers = ofw_json(*command, tmp_path / "workers.ofw", "--workers", 2)
    assert with_workers["rounds"] == alone["rounds"]
    assert with_workers["gap"] == pytest.approx(alone["gap"], rel=1e-2, abs=1e-4)
    score = next(name for name in alone["progressive"] if name in ("mse", "error"))
    assert with_workers["progressive"][score] == pytest.approx(
        alone["progressive"][score], rel=1e-3
    )


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("workers", [[], ["--workers", 3]])
def test_a_checkpoint_goes_on_with_any_number_of_workers(workers, tmp_path, monkeypatch):
    command = ["fit", "matrix", data_of("matrix", tmp_path), "--batch-size", 40, "--radius", 20]
    alone = ofw_json(*command, "-o", tmp_path / "alone.ofw")
    stop_after(monkeypatch, 5)
    kept = ["--checkpoint", tmp_path / "run.ckpt", "-o", tmp_path / "model.ofw"]
    assert ofw(*command, *kept, "--workers", 2).exit_code == 1
    monkeypatch.undo()
    resumed = ofw_json(
        *command, "-o", tmp_path / "model.ofw", "--resume", tmp_path / "run.ckpt", *workers
    )
    assert resumed["rounds"] == alone["rounds"]
    assert resumed["progressive"]["mse"] == pytest.approx(alone["progressive"]["mse"], rel=1e-3)


def stop_after(monkeypatch, rounds):
    """Press Ctrl-C after this round."""
    import signal

    shown = Display.show

    def show(self, session):
        shown(self, session)
        if session.rounds == rounds:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Display, "show", show)


@pytest.mark.parametrize("asked", [True, False])
def test_a_lost_cluster_leaves_a_checkpoint(asked, tmp_path):
    pytest.importorskip("ray")
    command = ["fit", "matrix", data_of("matrix", tmp_path), "--batch-size", 40, "--radius", 20]
    model = tmp_path / "model.ofw"
    checkpoint = tmp_path / ("run.ckpt" if asked else "model.ofw.ckpt")
    options = ["--checkpoint", checkpoint, "--every", 4] if asked else []
    lost = ofw_process(5, *command, *options, "-o", model, "--workers", 2, code=WITHOUT_RAY)
    said = lost.stderr.decode().strip().splitlines()
    assert lost.returncode == 1
    assert "the Ray cluster is lost" in said[-1] and f"--resume {checkpoint} goes on" in said[-1]
    resumed = ofw_json(*command, "-o", model, "--resume", checkpoint)
    assert resumed["ended"] and resumed["rows learned"] == 240


def test_wrong_use_is_refused_in_one_line(tmp_path, monkeypatch):
    command = ["fit", "matrix", data_of("matrix", tmp_path), "-o", tmp_path / "model.ofw"]
    assert "--workers" in refusal(*command, "--ray-address", "auto")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'onlinefw[ray]'" in refusal(*command, "--workers", 2)
