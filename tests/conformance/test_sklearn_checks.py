"""scikit-learn's own checks of estimators, with no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import onlinefw as ofw


@parametrize_with_checks([ofw.FrankWolfeRegressor(), ofw.FrankWolfeClassifier()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
