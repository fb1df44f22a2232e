"""Losses: derivatives, curvature bounds, stability, allowed targets, known values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from onlinefw.losses import (
    Bernoulli,
    Correntropy,
    Exponential,
    Gaussian,
    Logistic,
    Loss,
    Poisson,
    Sigmoid,
    Square,
)

TARGETS = {
    Square(): [-3.0, 0.0, 2.5],
    Logistic(): [-1.0, 1.0],
    Sigmoid(): [-1.0, 1.0],
    Sigmoid(2.0): [-1.0, 1.0],
    Gaussian(): [-3.0, 0.0, 2.5],
    Bernoulli(): [0.0, 1.0],
    Poisson(): [0.0, 1.0, 7.0],
    Exponential(): [0.1, 1.0, 30.0],
    Exponential(0.2): [0.1, 1.0, 30.0],
    Correntropy(0.5): [-3.0, 0.0, 2.5],
}
every_loss = pytest.mark.parametrize("loss", list(TARGETS), ids=str)


@every_loss
def test_derivatives_are_those_of_the_value(loss):
    z = np.linspace(-3.0, 3.0, 61) + 0.003
    for y in TARGETS[loss]:
        h = 1e-6
        slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
        np.testing.assert_allclose(loss.derivative(z, y), slope, rtol=1e-5, atol=1e-6)
        bend = (loss.derivative(z + h, y) - loss.derivative(z - h, y)) / (2 * h)
        np.testing.assert_allclose(loss.second_derivative(z, y), bend, rtol=1e-4, atol=1e-5)


@every_loss
def test_curvature_is_bounded_by_smoothness_and_signed_by_convexity(loss):
    z = np.linspace(-30.0, 30.0, 20001)
    bends = np.array([loss.second_derivative(z, y) for y in TARGETS[loss]])
    assert np.abs(bends).max() <= loss.smoothness * (1 + 1e-9)
    if np.isfinite(loss.smoothness):  # the constant is the smallest one
        assert np.abs(bends).max() >= 0.99 * loss.smoothness
    assert loss.convex == bool((bends >= 0).all())
    assert loss.quadratic == bool((bends == 1.0).all())


@every_loss
def test_whether_values_may_be_below_zero(loss):
    z = np.linspace(-30.0, 30.0, 20001)
    values = np.array([loss.value(z, y) for y in TARGETS[loss]])
    assert loss.nonnegative == bool((values >= 0).all())


@every_loss
@given(z=st.floats(allow_nan=False, allow_infinity=False), data=st.data())
def test_finite_input_never_gives_nan(loss, z, data):
    y = data.draw(st.sampled_from([*TARGETS[loss], max(TARGETS[loss])]))
    for function in (loss.value, loss.derivative, loss.second_derivative):
        assert not np.isnan(function(z, y))
        assert not np.isnan(function(np.array([z, -z]), np.array([y, y]))).any()


@given(
    z=st.floats(allow_nan=False, allow_infinity=False),
    y=st.floats(allow_nan=False, allow_infinity=False),
)
def test_real_targets_of_any_size_never_give_nan(z, y):
    for loss in (Square(), Gaussian(), Correntropy(1.0), Correntropy(1e-3)):
        for function in (loss.value, loss.derivative, loss.second_derivative):
            assert not np.isnan(function(z, y))
    for loss in (Poisson(), Exponential()):
        for function in (loss.value, loss.derivative, loss.second_derivative):
            assert not np.isnan(function(z, abs(np.floor(y)) + 1.0))


@every_loss
@pytest.mark.parametrize("z", [np.inf, -np.inf])
def test_infinite_predictions_never_give_nan(loss, z):
    for y in TARGETS[loss]:
        for function in (loss.value, loss.derivative):
            assert not np.isnan(function(z, y))


@every_loss
def test_a_function_returns_the_broadcast_shape(loss):
    y = TARGETS[loss][0]
    for function in (loss.value, loss.derivative, loss.second_derivative):
        assert function(np.zeros(4), y).shape == (4,)
        assert function(0.0, np.full(3, y)).shape == (3,)


def test_known_values():
    assert Square().value(3.0, 1.0) == 2.0
    assert Logistic().value(0.0, 1.0) == pytest.approx(np.log(2.0))
    assert Sigmoid().value(0.1, 1.0) == pytest.approx(1 / (1 + np.e))
    assert Correntropy(2.0).value(2.0, 0.0) == pytest.approx(1 - np.exp(-1.0))
    # stable far out, where naive formulas give inf or 0
    assert Logistic().value(-1e300, 1.0) == 1e300
    assert Bernoulli().value(800.0, 1.0) == pytest.approx(np.exp(-800.0), abs=0)
    assert Bernoulli().derivative(50.0, 1.0) == pytest.approx(-np.exp(-50.0), rel=1e-12)


def test_exponential_families_are_log_likelihoods_of_scipy_distributions():
    z = np.array([-2.0, -0.5, -0.1])
    y = 3.0
    offset = Gaussian().value(z, y) + stats.norm.logpdf(y, loc=z)
    np.testing.assert_allclose(offset, offset[0])
    np.testing.assert_allclose(
        Bernoulli().value(z, 1.0), -stats.bernoulli.logpmf(1, 1 / (1 + np.exp(-z)))
    )
    offset = Poisson().value(z, y) + stats.poisson.logpmf(y, np.exp(z))
    np.testing.assert_allclose(offset, offset[0])
    np.testing.assert_allclose(
        Exponential().value(z, y), -stats.expon.logpdf(y, scale=-1 / z), rtol=1e-12
    )


def test_exponential_continues_smoothly_above_its_floor():
    loss = Exponential(0.1)
    for function in (loss.value, loss.derivative, loss.second_derivative):
        left, right = function(-0.1 - 1e-9, 1.0), function(-0.1 + 1e-9, 1.0)
        assert left == pytest.approx(right, rel=1e-6)
    assert np.isfinite(loss.value(0.0, 1.0))


@pytest.mark.parametrize(
    ("loss", "bad", "words"),
    [
        (Logistic(), 0.0, "{-1, +1}"),
        (Sigmoid(), 2.0, "{-1, +1}"),
        (Bernoulli(), -1.0, "{0, 1}"),
        (Poisson(), -1.0, "counts"),
        (Poisson(), 0.5, "counts"),
        (Exponential(), 0.0, "positive"),
    ],
)
def test_targets_outside_the_allowed_values_are_refused(loss, bad, words):
    good = TARGETS[loss][-1]
    loss.check_targets(np.array([good, good]))
    with pytest.raises(ValueError, match="row 1") as error:
        loss.check_targets(np.array([good, bad]))
    assert words in str(error.value)
    assert f"{bad:g}" in str(error.value)


@pytest.mark.parametrize(
    ("make", "value"),
    [(Sigmoid, 0.0), (Sigmoid, -1.0), (Exponential, 0.0), (Correntropy, -2.0)],
)
def test_parameters_must_be_positive(make, value):
    with pytest.raises(ValueError, match=f"{value}"):
        make(value)


def test_a_loss_of_ones_own_needs_three_functions():
    class Half(Loss):
        def value(self, z, y):
            return z

    with pytest.raises(TypeError, match="abstract"):
        Half()
