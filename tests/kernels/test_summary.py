"""The parabola that stands for a row's loss."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw import losses
from onlinefw.kernels.rows import row_slope
from onlinefw.kernels.summary import bend
from onlinefw.past.host.row_loss import compiled

Z = st.floats(-50, 50)
#: Losses with a target, and where the loss of that target has its minimum.
WITH_A_MINIMUM = [
    (losses.Square(), 1.7, 1.7),
    (losses.Correntropy(2.0), -0.3, -0.3),
    (losses.Poisson(), 5.0, np.log(5.0)),
    (losses.Exponential(), 2.0, -0.5),
    (losses.Exponential(0.1), 40.0, 0.2),  # above the floor, where it is continued by a parabola
]


@pytest.mark.parametrize(("loss", "y", "best"), WITH_A_MINIMUM, ids=lambda x: str(x))
@given(z=Z)
def test_a_row_alone_is_never_overshot(loss, y, best, z):
    assert abs(loss.derivative(best, y)) < 1e-9
    kind = compiled(loss)
    slope = row_slope(*kind, z, y, 1.0)
    curvature = bend(*kind, z, y, slope)
    assert curvature >= 0.0
    if curvature > 1e-200:
        assert z - slope / curvature == pytest.approx(best, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Sigmoid(3.0), losses.Bernoulli()])
@given(z=Z, up=st.booleans())
def test_losses_of_labels_have_their_model_curvature(loss, z, up):
    y = 1.0 if up else (0.0 if isinstance(loss, losses.Bernoulli) else -1.0)
    kind = compiled(loss)
    slope = row_slope(*kind, z, y, 1.0)
    assert bend(*kind, z, y, slope) == pytest.approx(float(loss.model_curvature(z, y)), rel=1e-9)


def test_a_count_of_nothing_has_its_minimum_at_infinity():
    assert bend(*compiled(losses.Poisson()), 1.5, 0.0, np.exp(1.5)) == pytest.approx(np.exp(1.5))
