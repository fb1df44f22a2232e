"""Which device is used, and what is said where there is none."""

import subprocess
import sys

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.losses import Logistic, Square
from onlinefw.objectives import LinearObjective, RunningLeastSquares

X, Y = np.arange(12.0).reshape(4, 3), np.array([1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearObjective(Square(), device="cuda"),
        lambda: RunningLeastSquares(3, device="cuda"),
        lambda: ofw.FrankWolfeRegressor(device="cuda").fit(X, Y),
        lambda: ofw.FrankWolfeClassifier(device="cuda").partial_fit(X, Y, classes=[-1, 1]),
    ],
)
@pytest.mark.usefixtures("no_cupy")
def test_without_cupy_one_line_says_what_to_install(make):
    with pytest.raises(RuntimeError, match=r"onlinefw\[gpu\]") as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("no_cupy")
def test_auto_is_this_process_where_there_is_no_gpu():
    objective = LinearObjective(Square(), device="auto")
    objective.observe(X, Y)
    assert objective.device == "cpu"
    assert RunningLeastSquares(3, device="auto").device == "cpu"
    model = ofw.FrankWolfeRegressor(device="auto").fit(X, Y)
    np.testing.assert_array_equal(model.coef_, ofw.FrankWolfeRegressor().fit(X, Y).coef_)


@pytest.mark.parametrize("device", ["gpu", None, 0])
def test_other_names_are_refused(device):
    for make in (
        lambda: LinearObjective(Square(), device=device),
        lambda: RunningLeastSquares(3, device=device),
        lambda: ofw.FrankWolfeRegressor(device=device).fit(X, Y),
    ):
        with pytest.raises(ValueError, match='device must be one of "cpu", "cuda" or "auto"'):
            make()


def test_the_default_is_this_process():
    assert LinearObjective(Logistic()).device == RunningLeastSquares(3).device == "cpu"


def test_arrays_on_a_gpu_are_refused_without_device(cuda):
    there = cuda.asarray(X)
    for objective in (LinearObjective(Square()), RunningLeastSquares(3)):
        with pytest.raises(ValueError, match=r'X is on a GPU.*device="cuda".*X\.get\(\)'):
            objective.observe(there, Y)
        with pytest.raises(ValueError, match="y is on a GPU"):
            objective.observe(X, cuda.asarray(Y))
        assert objective.n_observations == 0
    with pytest.raises(ValueError, match="X is on a GPU"):
        ofw.FrankWolfeRegressor().fit(there, Y)


def test_importing_onlinefw_imports_no_cupy():
    names = "('cupy', 'onlinefw.past.cuda')"
    code = f"import sys, onlinefw; sys.exit(any(name in sys.modules for name in {names}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
