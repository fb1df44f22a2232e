"""scikit-learn's own checks of estimators: the two estimators with no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import onlinefw as ofw


@parametrize_with_checks(
    [
        ofw.FrankWolfeRegressor(),
        ofw.FrankWolfeClassifier(loss="logistic", away_steps=True, inner_steps=5),
    ]
)
def test_estimators_follow_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        ofw.FrankWolfeClassifier(),
        ofw.FrankWolfeRegressor(loss="correntropy", radius=3.0),
        ofw.FrankWolfeRegressor(half_life="auto"),
        ofw.FrankWolfeClassifier(loss="logistic", half_life="auto"),
    ]
)
def test_others_follow_scikit_learn(estimator, check):
    check(estimator)


ACROSS_BATCHES = "a search plays at least ten rounds, and weights repeat rows only within a batch"


def expected_failures(_):
    return {
        "check_sample_weight_equivalence_on_dense_data": ACROSS_BATCHES,
        "check_sample_weight_equivalence_on_sparse_data": ACROSS_BATCHES,
    }


@pytest.mark.slow
@parametrize_with_checks(
    [
        ofw.RadiusSearch(ofw.FrankWolfeRegressor()),
        ofw.RadiusSearch(ofw.FrankWolfeClassifier(inner_steps=5), radii=[1.0, 10.0]),
    ],
    expected_failed_checks=expected_failures,
)
def test_a_search_follows_scikit_learn(estimator, check):
    check(estimator)
