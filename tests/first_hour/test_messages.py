"""What a newcomer types wrong is answered in one sentence, in their own words."""

import numpy as np
import pytest

import onlinefw as ofw

X = np.random.default_rng(0).standard_normal((60, 3))
LABELS = np.array(["a", "b", "c"] * 20)


@pytest.mark.parametrize(
    "estimator",
    [ofw.FrankWolfeRegressor, ofw.FrankWolfeClassifier, ofw.FrankWolfeMatrixCompletion],
)
def test_a_misspelt_parameter_names_the_class_and_the_nearest_one(estimator):
    with pytest.raises(TypeError) as caught:
        estimator(raduis=3)
    name = estimator.__name__
    assert str(caught.value) == f"{name} has no parameter 'raduis'; did you mean 'radius'?"


def test_a_parameter_like_none_is_answered_with_all_there_are():
    with pytest.raises(TypeError, match=r"RadiusSearch has no parameter 'xyz'; it has .*radii"):
        ofw.RadiusSearch(ofw.FrankWolfeRegressor(), xyz=1)


def test_probabilities_say_which_loss_has_them():
    model = ofw.FrankWolfeClassifier(radius=2.0, loss="sigmoid").fit(X, LABELS)
    with pytest.raises(AttributeError, match=r'predict_proba needs loss="logistic"'):
        model.predict_proba(X)
    assert not hasattr(model, "predict_proba")  # which is how scikit-learn asks


def test_labels_are_printed_as_they_are():
    model = ofw.FrankWolfeClassifier(radius=2.0)
    with pytest.raises(ValueError, match=r"the label 'c', .* the classes \['a', 'b'\]"):
        model.partial_fit(X, LABELS, classes=["a", "b"])
    with pytest.raises(ValueError, match="got one class, 'a'"):
        model.fit(X, np.full(60, "a"))
    model.partial_fit(X, LABELS, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"classes=\['x', 'y'\] differ from .*, \['a', 'b', 'c'\]"):
        model.partial_fit(X, LABELS, classes=["x", "y"])
