"""Summaries against the recursions written plainly, with every feature touched in every round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from onlinefw import losses
from onlinefw.kernels import published, summary
from onlinefw.past.host.row_loss import compiled
from onlinefw.past.host.summary import HostSummary

N = 12
LOSSES = {
    "square": (losses.Square(), "numbers"),
    "gaussian": (losses.Gaussian(), "numbers"),
    "correntropy": (losses.Correntropy(1.0), "numbers"),
    "logistic": (losses.Logistic(), "signs"),
    "sigmoid": (losses.Sigmoid(2.0), "signs"),
    "bernoulli": (losses.Bernoulli(), "labels"),
    "poisson": (losses.Poisson(), "counts"),
    "exponential": (losses.Exponential(0.1), "waits"),
}


def rows(seed, targets="numbers", n=150, width=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, width)) * (rng.random((n, width)) < 0.4)
    z = X[:, 0] - 0.5 * X[:, 1] + 0.2
    noisy = z + 0.3 * rng.standard_normal(n)
    y = {
        "numbers": noisy,
        "signs": np.where(noisy > 0, 1.0, -1.0),
        "labels": (noisy > 0).astype(float),
        "counts": rng.poisson(np.exp(z)).astype(float),
        "waits": rng.exponential(1.0, n) + 0.1,
    }[targets]
    return X, y, rng.integers(0, 4, n).astype(float)


def equal(keys):
    """Where keys are the largest, up to rounding."""
    return keys >= keys.max() - 1e-9 * np.abs(keys).max() if keys.size else keys > 0


class Plainly:
    """The diagonal estimator on dense vectors, as the equations have it, along given thetas."""

    def __init__(self, loss, n, intercept):
        self.loss, self.intercept = loss, intercept
        self.theta, self.d, self.D = np.zeros(n), np.zeros(n), np.zeros(n)
        self.b = self.d_b = self.D_b = self.W = 0.0

    def learn(self, x, y, w):
        """Learn a row at the current theta."""
        self.W += w
        rho = 1.0 - (1.0 - w / self.W) ** summary.FORGET
        z = x @ self.theta + self.b
        slope = float(self.loss.derivative(z, y))
        c = summary.bend(*compiled(self.loss), z, y, slope)
        self.d = (1.0 - rho) * self.d + rho * slope * x
        self.D = (1.0 - rho) * self.D + rho * c * x**2
        if self.intercept:
            guarded = summary.guarded.py_func(compiled(self.loss)[0], z, slope, c)
            self.D_b = (1.0 - rho) * self.D_b + rho * guarded
            self.d_b = (1.0 - rho) * self.d_b + rho * slope
            self.b, self.d_b = self.b - self.d_b / self.D_b, 0.0

    def gain(self, change):
        """Return what a change of theta lowers the parabolas by."""
        return -self.d @ change - 0.5 * self.D @ change**2

    def best_gains(self, radius):
        """Try all three kinds of step, each as far as it is best.

        A step makes two coordinates equal: there is a best gain for each of the equal ones.
        """
        active = np.flatnonzero(self.theta)
        worst = list(active[equal(np.sign(self.theta[active]) * self.d[active])]) or [None]
        for j in np.flatnonzero(equal(np.abs(self.d))):
            ahead = -np.sign(self.d[j]) * np.eye(N)[j]
            for k in worst:
                tried = [(ahead, radius - np.abs(self.theta).sum())]
                if k is not None:
                    back, most = -np.sign(self.theta[k]) * np.eye(N)[k], abs(self.theta[k])
                    tried += [(back, most)] + ([(ahead + back, most)] if j != k else [])
                yield max(self._along(*one) for one in tried)

    def _along(self, direction, longest):
        descent, bend = -self.d @ direction, self.D @ direction**2
        return self.gain(min(descent / bend, max(longest, 0.0)) * direction) if descent > 0 else 0.0

    def move(self, theta):
        """Go to another theta: d + D (theta_t - theta_{t-1})."""
        self.d, self.theta = self.d + self.D * (theta - self.theta), theta


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("radius", [0.4, 50.0])
def test_lazy_scales_give_what_dense_vectors_give(name, intercept, radius):
    loss, targets = LOSSES[name]
    X, y, w = rows(3, targets)
    w += 0.5
    kept, plain = HostSummary(loss, N, intercept, "diagonal"), Plainly(loss, N, intercept)
    for i in range(y.size):
        one = slice(i, i + 1)
        kept.play(X[one], y[one], w[one], radius)
        plain.learn(X[i], y[i], w[i])
        change = kept.theta - plain.theta
        assert np.count_nonzero(change) <= 2
        gains = np.array(list(plain.best_gains(radius)))
        assert np.isclose(plain.gain(change), gains, 1e-6, 1e-12).any()
        plain.move(kept.theta)
        assert np.abs(kept.theta).sum() <= radius * (1 + 1e-12)
    np.testing.assert_allclose(kept.gradient, plain.d, 1e-6, 1e-9)
    np.testing.assert_allclose(kept.curvature, plain.D, 1e-7, 1e-12)
    assert kept.intercept == pytest.approx(plain.b, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("estimator", ["recursive", "momentum"])
@pytest.mark.parametrize("name", ["square", "logistic", "sigmoid"])
def test_the_published_recursions_are_what_was_published(estimator, name):
    loss, targets = LOSSES[name]
    X, y, _ = rows(5, targets)
    radius = 1.5
    kept = HostSummary(loss, N, False, estimator)
    kept.play(X, y, np.ones(y.size), radius)
    theta, before, d = np.zeros(N), np.zeros(N), np.zeros(N)
    for t, (x, target) in enumerate(zip(X, y, strict=True), 1):
        rho, gamma = t**-published.RHO, (t + 1.0) ** -published.GAMMA
        new = float(loss.derivative(x @ theta, target)) * x
        old = float(loss.derivative(x @ before, target)) * x
        change = new - old if estimator == "recursive" else 0.0
        d = (1.0 - rho) * (d + change) + rho * new
        j = int(np.argmax(np.abs(d)))
        atom = -np.sign(d[j] or -1.0) * radius * np.eye(N)[j]
        before, theta = theta, theta + gamma * (atom - theta)
    np.testing.assert_allclose(kept.gradient, d, 1e-8, 1e-10)
    np.testing.assert_allclose(kept.theta, theta, 1e-8, 1e-10)


def test_without_steps_the_estimate_is_the_mean_gradient_where_nothing_is_forgotten():
    # At a theta that stays, momentum with rho_t = 1 / t is the mean of all gradients.
    X, y, _ = rows(6)
    kept = HostSummary(losses.Square(), N, False, "momentum")
    kept.play(X, y, np.ones(y.size), 0.0)
    np.testing.assert_allclose(kept.gradient, X.T @ -y / y.size, 1e-10, 1e-14)


@pytest.mark.parametrize("estimator", ["diagonal", "recursive", "momentum"])
def test_results_do_not_depend_on_how_rows_are_cut_or_stored(estimator):
    X, y, w = rows(7)
    whole, parts, stored = (HostSummary(losses.Square(), N, True, estimator) for _ in range(3))
    _, z = whole.play(X, y, w, 1.0)
    pieces = [
        parts.play(X[k : k + 7], y[k : k + 7], w[k : k + 7], 1.0)[1] for k in range(0, 150, 7)
    ]
    _, same = stored.play(sparse.csr_array(X), y, w, 1.0)
    for other in (parts, stored):
        np.testing.assert_array_equal(other.theta, whole.theta)
        np.testing.assert_array_equal(other.gradient, whole.gradient)
    np.testing.assert_array_equal(np.concatenate(pieces), z)
    np.testing.assert_array_equal(same, z)


def test_long_dense_batches_are_cut_into_pieces(monkeypatch):
    X, y, w = rows(7)
    whole, parts = (HostSummary(losses.Square(), N, True, "diagonal") for _ in range(2))
    whole.play(X, y, w, 1.0)
    monkeypatch.setattr("onlinefw.past.host.summary.PIECE", 5 * N)
    parts.play(X, y, w, 1.0)
    np.testing.assert_array_equal(parts.theta, whole.theta)


def test_predictions_are_made_before_rows_are_learned():
    X, y, _ = rows(8)
    kept = HostSummary(losses.Square(), N, True, "diagonal")
    for i in range(30):
        theta, b = kept.theta, kept.intercept
        _, z = kept.play(X[i : i + 1], y[i : i + 1], np.ones(1), 2.0)
        assert z[0] == pytest.approx(X[i] @ theta + b, rel=1e-12, abs=1e-15)


@given(
    st.integers(0, 10**6),
    st.sampled_from(sorted(LOSSES)),
    st.floats(1e-6, 1e6),
    st.floats(-5, 5),
    st.sampled_from(["diagonal", "recursive", "momentum"]),
)
def test_theta_stays_in_the_ball_and_finite(seed, name, radius, scale, estimator):
    loss, targets = LOSSES[name]
    X, y, w = rows(seed, targets, n=40)
    kept = HostSummary(loss, N, True, estimator)
    kept.play(X * 10.0**scale, y, w, radius)
    assert np.abs(kept.theta).sum() <= radius * (1 + 1e-9)
    for known in (kept.theta, kept.gradient, kept.curvature, kept.intercept):
        assert np.isfinite(known).all()


def test_weights_that_grow_beyond_all_bounds_leave_what_is_newest():
    X, y, _ = rows(9)
    w = 10.0 ** np.arange(0, 300, 2.0)
    kept = HostSummary(losses.Square(), N, True, "diagonal")
    kept.play(X, y, w, 1.0)
    assert np.isfinite(kept.gradient).all()
    assert np.abs(kept.theta).sum() <= 1.0 + 1e-12


def test_rounding_drift_is_taken_out_now_and_then():
    kept = HostSummary(losses.Square(), N, False, "diagonal")
    X, y, _ = rows(10)
    kept.play(X, y, np.ones(y.size), 0.5)
    kept._table[:, 0] *= 1.001  # as if it had drifted
    kept._numbers[summary.ROWS] = summary.REFRESH_EVERY - 1.0
    kept._theta = None
    kept.play(X[:1], y[:1], np.ones(1), 0.5)
    assert np.abs(kept.theta).sum() <= 0.5 * (1 + 1e-12)


def test_a_summary_goes_on_from_its_state_bit_for_bit():
    X, y, w = rows(11)
    for estimator in ("diagonal", "recursive"):
        one = HostSummary(losses.Logistic(), N, True, estimator)
        y = np.sign(y)
        one.play(X[:70], y[:70], w[:70], 1.0)
        two = HostSummary(losses.Logistic(), N, True, estimator)
        two.load_state(one.state_dict())
        for kept in (one, two):
            kept.play(X[70:], y[70:], w[70:], 1.0)
        for name, value in one.state_dict().items():
            np.testing.assert_equal(two.state_dict()[name], value)


def forge(state, name, value):
    return {**state, name: value}


FORGED = {
    "other features": ("theta", np.zeros(3)),
    "whole numbers": ("theta", np.zeros(N, int)),
    "nan": ("slope", np.full(N, np.nan)),
    "negative curvature": ("bend", np.full(N, -1.0)),
    "text": ("radius", "1"),
    "a small ball": ("radius", 1e-3),
    "not a ball": ("radius", float("inf")),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_columns_are_refused(name):
    X, y, w = rows(12)
    kept = HostSummary(losses.Square(), N, True, "diagonal")
    kept.play(X, y, w, 1.0)
    with pytest.raises(ValueError, match=r"summary|theta"):
        kept.load_state(forge(kept.state_dict(), *FORGED[name]))


FORGED_NUMBERS = [
    ("scale", 0.0),
    ("scale", 1e-200),
    ("weight", -1.0),
    ("slack", -1.0),
    ("slack", 9.0),
    ("shrink", 2.0),
    ("kept", 0.0),
    ("intercept", np.inf),
    ("rows", "7"),
    ("rows", True),
]


@pytest.mark.parametrize(("name", "value"), FORGED_NUMBERS)
def test_forged_numbers_are_refused(name, value):
    X, y, w = rows(12)
    kept = HostSummary(losses.Square(), N, True, "diagonal")
    kept.play(X, y, w, 1.0)
    state = kept.state_dict()
    with pytest.raises(ValueError, match=r"summary|theta"):
        kept.load_state(forge(state, "numbers", {**state["numbers"], name: value}))
    np.testing.assert_equal(kept.state_dict(), state)


def test_an_intercept_does_not_run_away_where_the_loss_has_no_curvature():
    # All the weight comes with the last row, which is far on the wrong side.
    kept = HostSummary(losses.Logistic(), 1, True, "diagonal")
    X, y = np.array([[1.0], [1.0], [900.0]]), np.array([1.0, 1.0, -1.0])
    kept.play(X, y, np.array([1.0, 1.0, 1e300]), 5.0)
    assert abs(kept.intercept) < 1e5
