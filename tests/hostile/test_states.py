"""States that the fuzzer has forged, and that were not refused at first."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.estimators.path import Path


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
