"""States that the fuzzer has forged, and that were not refused at first."""

import numpy as np
import pytest
from scipy import sparse

import onlinefw as ofw
from onlinefw.estimators.history import History
from onlinefw.estimators.path import Path
from onlinefw.estimators.race import Race


def test_a_path_at_complex_times_is_refused():
    path = Path(10)
    path.append(1, 0.0, np.array([1.0, 0.0]))
    state = path.state_dict()
    state["t"] = state["t"].astype(complex)
    with pytest.raises(ValueError, match="numbers"):
        Path.from_state(state)


def test_a_classifier_of_one_class_is_refused():
    X = np.array([[0.0, 1.0], [1.0, 0.0]])
    model = ofw.FrankWolfeClassifier(radius=1.0).fit(X, [0, 1])
    state = model.state_dict(past=False)
    state["classes"] = state["classes"][:1]
    with pytest.raises(ValueError, match="2 classes"):
        ofw.FrankWolfeClassifier(radius=1.0).load_state(state)


def test_rows_that_are_times_are_refused():
    X = sparse.random_array((30, 4), density=0.5, rng=0, format="csr")
    model = ofw.FrankWolfeClassifier(radius=1.0).fit(X, np.arange(30) % 2)
    state = model.state_dict()
    rows = state["run"]["team"]["past"]["past"]["rows"]
    rows["tail_data"] = rows["tail_data"].astype("datetime64[s]")
    with pytest.raises(ValueError, match="not finite numbers"):
        ofw.FrankWolfeClassifier(radius=1.0).load_state(state)


@pytest.mark.parametrize("dtype", [complex, int, "datetime64[s]", object])
def test_vectors_to_begin_with_that_are_no_real_numbers_are_refused(dtype):
    X = np.array([[0, 0], [1, 1], [2, 0]])
    model = ofw.FrankWolfeMatrixCompletion(5.0, corrective=None).fit(X, [1.0, 2.0, 3.0])
    state = model.state_dict()
    objective = state["run"]["team"]["learners"][0]["objective"]
    objective["block"] = objective["block"].astype(int).astype(dtype)
    with pytest.raises(ValueError, match="block"):
        ofw.FrankWolfeMatrixCompletion(5.0, corrective=None).load_state(state)


def test_a_race_whose_middle_is_text_is_refused():
    state = Race(3, rounds=5).state_dict()
    state["middle"] = "1"
    with pytest.raises(ValueError, match="middle"):
        Race.from_state(state)


def test_a_race_without_numbers_is_refused():
    state = Race(3, rounds=5).state_dict()
    state["sums"][0] = np.nan
    with pytest.raises(ValueError, match="3 models"):
        Race.from_state(state)


def test_a_history_of_impossible_rounds_is_refused():
    history = History(10)
    history.append(ofw.Round(1, 0.5, 0.1, 0.1, 1.0, "fw", 1))
    state = history.state_dict()
    state["columns"]["t"] = np.array([2**63], np.uint64)
    with pytest.raises(ValueError, match="impossible"):
        History.from_state(state)
