"""The paper's second experiment, made small: a bounded loss survives wrong labels."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.steps import Power

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def problem():
    return ofw.datasets.make_classifier(n_train=10_000, n_test=5_000, seed=0)


def error_of(problem, loss, radius, flipped):
    rng = np.random.default_rng(1)
    y = problem.y_train.copy()
    y[rng.choice(y.size, int(flipped * y.size), replace=False)] *= -1.0
    model = ofw.FrankWolfeClassifier(
        "trace",
        radius,
        loss=loss,
        inner_steps=1,
        step=Power(0.75),
        batch_size=25,
        fit_intercept=False,
        coef_shape=(30, 30),
    )
    model.fit(problem.X_train.reshape(y.size, -1), y)
    return 1.0 - model.score(problem.X_test.reshape(len(problem.y_test), -1), problem.y_test)


def test_with_a_quarter_of_the_labels_flipped_the_sigmoid_loss_is_clearly_better(problem):
    sigmoid = error_of(problem, "sigmoid", 1.0, 0.25)
    logistic = error_of(problem, "logistic", 10.0, 0.25)
    assert sigmoid < 0.9 * logistic
    assert sigmoid < 0.16


def test_with_right_labels_both_learn(problem):
    assert error_of(problem, "sigmoid", 1.0, 0.0) < 0.1
    assert error_of(problem, "logistic", 10.0, 0.0) < 0.1
