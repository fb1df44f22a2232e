"""What is told of a certificate: the gap, the mean loss it speaks of, and what it proves."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.fitting.certificate import gap_facts, gap_said


@pytest.fixture
def X(rng):
    return rng.standard_normal((120, 3))


def test_a_gap_that_is_not_known_is_no_certificate():
    X = np.random.default_rng(0).standard_normal((50, 3))
    model = ofw.FrankWolfeRegressor(radius=1.0, past="summary").fit(X, X[:, 0])
    facts = gap_facts(model)
    assert not facts["gap is a certificate"]
    assert gap_said(facts).startswith("no certificate")


def test_the_loss_is_that_of_the_class_with_the_largest_certificate(X, rng, tmp_path):
    model = ofw.FrankWolfeClassifier(radius=2.0, loss="logistic").fit(X, rng.integers(3, size=120))
    gaps = [one.certificate(model._run.learners[0].constraint) for one in model.objective_]
    facts = gap_facts(model)
    assert facts["gap"] == pytest.approx(max(gaps))
    assert facts["mean loss"] == model.objective_[int(np.argmax(gaps))].value() == model.mean_loss_
    ofw.save(model, tmp_path / "m.ofw")
    assert gap_facts(ofw.load(tmp_path / "m.ofw")) == facts


@pytest.mark.parametrize("loss", ["poisson", "gaussian"])
def test_a_loss_that_may_be_below_zero_has_no_percentage(X, rng, loss):
    model = ofw.FrankWolfeRegressor(radius=1.0, loss=loss).fit(X, rng.poisson(2.0, 120))
    facts = gap_facts(model)
    assert facts["gap is a certificate"] and facts["certificate is informative"] is None
    assert gap_said(facts).endswith("above the smallest of its radius")


def test_a_loss_that_is_not_convex_has_no_certificate(X):
    facts = gap_facts(ofw.FrankWolfeClassifier(radius=1.0).fit(X, X[:, 0] > 0))
    assert not facts["gap is a certificate"] and facts["certificate is informative"] is None
    assert "stationarity" in gap_said(facts)


def test_a_mean_loss_that_is_no_number_is_refused(X):
    model = ofw.FrankWolfeRegressor(radius=1.0).fit(X, X[:, 0])
    state = model.state_dict(past=False)
    for wrong in (float("nan"), float("inf"), "0.1", None, [0.1]):
        state["run"]["mean_loss"] = wrong
        with pytest.raises(ValueError, match="mean loss"):
            ofw.FrankWolfeRegressor(radius=1.0).load_state(state)
    del state["run"]["mean_loss"]  # as in older files
    assert np.isnan(ofw.FrankWolfeRegressor(radius=1.0).load_state(state).mean_loss_)


def test_two_ratings_a_row_leave_the_certificate_below_the_loss(rng):
    """Generated ratings of rank 2 with noise, one after another and then corrected."""
    rows, columns, n = 1000, 400, 2000
    truth = rng.standard_normal((rows, 2)) @ rng.standard_normal((2, columns))
    X = np.column_stack((rng.integers(rows, size=n), rng.integers(columns, size=n)))
    model = ofw.FrankWolfeMatrixCompletion(shape=(rows, columns))
    model.learn(X, truth[tuple(X.T)] + 0.5 * rng.standard_normal(n))
    for _ in range(2):
        assert gap_facts(model)["certificate is informative"] is True
        model.correct()
