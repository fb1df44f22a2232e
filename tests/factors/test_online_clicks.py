"""OnlineFactors learns clicks: F_t of all entries, its ball and certificate, fading, forgetting."""

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.factors import held_loss
from onlinefw.objectives import ObservedEntries

from ..objectives import test_unobserved
from ..objectives.test_unobserved import ALPHAS, Dense
from .states import same_state

SHAPE = (9, 13)


def learner(alpha=0.1, shape=SHAPE, rank=3, dtype=float, **more):
    return ofw.OnlineFactors(shape, rank=rank, unobserved=alpha, dtype=dtype, **more)


def events(rng, n, shape):
    """Events with many repeats, of other values and weights; repeats have the same value."""
    X, y, w = test_unobserved.events(rng, n, shape)
    return X, y[(7 * X[:, 0] + X[:, 1]) % n], w


# F_t ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("half_life", [None, 40.0])
@pytest.mark.parametrize("ridge", ["auto", (0.3, 0.02)])
def test_value_and_certificate_are_those_of_dense_matrices(rng, alpha, half_life, ridge):
    one, dense = learner(alpha, half_life=half_life, ridge=ridge), Dense(alpha, SHAPE, half_life)
    for _ in range(3):
        X, _, w = events(rng, 40, SHAPE)
        y = (X.sum(axis=1) % 3).astype(float)
        one.learn(X, y, w)
        dense.observe(X, y, w)
    one.observe(X, y, w)
    dense.observe(X, y, w)
    theta, ball = one.theta.dense(), one.held_loss().ball(one.theta)
    assert one.value() == pytest.approx(dense.value(theta), rel=1e-9)
    a, b = ball.scales
    gradient = dense.gradient(theta)
    norm = np.linalg.norm(theta / a[:, None] / b, "nuc")
    assert ball.radius == pytest.approx(norm, rel=1e-9)
    gap = np.sum(gradient * theta) + norm * np.linalg.norm(a[:, None] * gradient * b, 2)
    assert gap * (1.0 - 1e-9) <= one.certificate() <= gap * (1.0 + 1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_large_matrices_have_a_certificate_from_products(rng, monkeypatch, alpha):
    one = learner(alpha, (200, 150))
    one.learn(*events(rng, 3000, (200, 150)))
    gap = one.certificate()
    monkeypatch.setattr(held_loss, "SMALL", 0)
    assert gap * (1.0 - 1e-9) <= one.certificate() <= 1.2 * gap


def test_value_and_certificate_are_those_of_the_objective(rng):
    """``ObservedEntries(unobserved=...)``, for Frank-Wolfe steps, computes them another way."""
    X, y, w = events(rng, 300, (60, 40))
    one, objective = learner(0.2, (60, 40), half_life=90.0), ObservedEntries(
        (60, 40), unobserved=0.2, half_life=90.0, dtype=float
    )  # fmt: skip
    one.learn(X, y, w)
    objective.add(objective.check(X, y, w))
    objective.put(one.theta)
    assert one.value() == pytest.approx(objective.value(), rel=1e-9)
    ball = one.held_loss().ball(one.theta)
    assert one.certificate() == pytest.approx(objective.certificate(ball), rel=1e-9)


def test_the_ball_is_that_of_the_penalties(rng):
    """Ones in random places have a norm of the root of what a row has and of what a column has."""
    X = np.unique(np.column_stack((rng.integers(9, size=80), rng.integers(13, size=80))), axis=0)
    X = np.vstack(([[8, 12]], X[~(X == (8, 12)).all(axis=1)]))
    one = learner(0.2)
    one.learn(X, np.ones(len(X)))
    counts = [np.bincount(at, minlength=n) for at, n in zip(X.T, SHAPE, strict=True)]
    for found, n, others in zip(one.held_loss().penalties(), counts, SHAPE[::-1], strict=True):
        of_others = len(X) / others
        np.testing.assert_allclose(found, 0.1 + 0.55 * (np.sqrt(n) + np.sqrt(of_others)))


def test_correcting_brings_theta_to_the_minimum(rng):
    one = learner(0.2, (30, 20), "auto")
    one.learn(events(rng, 200, (30, 20))[0], np.ones(200))
    gaps = [one.certificate()]
    for _ in range(3):
        one.correct()
        gaps.append(one.certificate())
    assert gaps[3] < 0.1 * gaps[0]
    assert gaps[3] < 0.05 * one.value()
    assert one.refine().kind == "corrective"


# Order --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half_life", [None, 60.0])
def test_events_in_pieces_and_a_resumed_run_are_events_in_one_go(rng, half_life):
    X, y, w = events(rng, 1500, (30, 40))
    whole, cut = (learner(0.1, (1, 1), "auto", np.float32, half_life=half_life) for _ in "12")
    at_once, parts = whole.learn(X, y, w, ranks=True), []
    for a, b in ((0, 1), (1, 150), (150, 1200), (1200, 1500)):
        parts.append(cut.learn(X[a:b], y[a:b], w[a:b], ranks=True))
        if a == 150:
            cut = ofw.OnlineFactors.from_state(cut.state_dict())
    np.testing.assert_array_equal(at_once, np.concatenate(parts))
    assert same_state(whole.state_dict(), cut.state_dict())
    for one in (whole, cut):
        one.observe(X[:300], y[:300], w[:300])
        one.forget(3)
    assert same_state(whole.state_dict(), cut.state_dict())
    assert whole.certificate() == cut.certificate()


def test_what_a_learner_without_its_past_predicts(rng):
    X, y, w = events(rng, 300, SHAPE)
    one = learner()
    one.learn(X, y, w)
    other = ofw.OnlineFactors.from_state(one.what_predicts())
    rows = np.arange(9)
    np.testing.assert_array_equal(other.predict(*X.T), one.predict(*X.T))
    np.testing.assert_array_equal(other.model.scores(rows), one.model.scores(rows))
    assert other.certificate() == pytest.approx(one.certificate(), rel=1e-9)


# Fading and leaving -------------------------------------------------------------------------------


def test_noise_counts_what_is_there(rng):
    """What leaves, fades or is observed again changes the weight of all observations."""
    X, y, w = events(rng, 300, SHAPE)
    one = learner(half_life=50.0)
    one.learn(X, y, w)
    one.observe(X[:20], y[:20], w[:20])
    one.forget(3)
    assert one.model.known[0] == pytest.approx(one.model.lists.total_weight(), rel=1e-9)


def test_light_entries_leave_whatever_all_weigh(rng):
    """After many half-lives the first entries are gone; weights that are all small are not."""
    X = np.column_stack((np.arange(4000) // 100, rng.integers(20, size=4000)))
    left = []
    for weight in (1.0, 1e-6):
        one = learner(0.1, (40, 20), half_life=20.0)
        one.learn(X, np.ones(4000), np.full(4000, weight))
        left.append(one.model.lists.by_row.length[:40].copy())
    assert not left[0][:15].any()
    assert left[0][-1] == np.unique(X[-100:, 1]).size
    np.testing.assert_array_equal(*left)


def test_events_without_weight_do_not_stop_the_clock(rng):
    X = events(rng, 200, SHAPE)[0]
    w = np.tile([1.0, 0.0], 100)
    one, two = learner(half_life=30.0), learner(half_life=30.0)
    one.learn(X, np.ones(200), w)
    two.learn(X[::2], np.ones(100))
    assert one.model.newest == two.model.newest


def test_a_half_life_may_change_on_the_way(rng):
    X = events(rng, 900, SHAPE)[0]
    one = learner(half_life=30.0)
    one.learn(X[:300], np.ones(300))
    weight = one.model.lists.total_weight() / one.model.newest
    one.go_on(None)
    assert one.half_life is None
    one.learn(X[300:], np.ones(600))
    assert one.model.lists.total_weight() / one.model.newest == pytest.approx(weight + 600.0)


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unobserved": -1.0}, "unobserved must be the weight"),
        ({"unobserved": np.nan}, "unobserved must be the weight"),
        ({"unobserved": 0.1, "loss": ofw.losses.Logistic()}, "needs the square loss"),
        ({"unobserved": 0.1, "rank": 1001}, "rank of OnlineFactors must be at most 1000"),
        ({"unobserved": 0.1, "rank": 0}, "rank of OnlineFactors must be a"),
        ({"rank": 257}, "rank of OnlineFactors must be at most 256"),
        ({"unobserved": 0.1, "ridge": (0.0, 1.0)}, "a > 0 and b >= 0"),
        ({"unobserved": 0.1, "ridge": "strong"}, r"needs a ridge \(a, b\)"),
        ({"unobserved": 0.1, "half_life": 0.0}, "half_life"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(options, message):
    with pytest.raises(ValueError, match=message):
        ofw.OnlineFactors(**options)
    ofw.OnlineFactors(unobserved=0.1, rank=1000)


def test_ranks_are_refused_without_zeros():
    one = ofw.OnlineFactors()
    with pytest.raises(ValueError, match="ranks are those of clicks"):
        one.learn([[0, 1]], [1.0], ranks=True)
    assert one.n_observations == 0


def test_rows_that_are_not_there_are_not_forgotten(rng):
    one = learner()
    one.learn(*events(rng, 30, SHAPE))
    for row in (9, -1, 1.5):
        with pytest.raises(ValueError, match="row"):
            one.forget(row)


def test_the_radius_is_in_units_of_a_new_event(rng):
    X, radii = events(rng, 8000, (60, 40))[0], []
    one = learner(0.1, (60, 40), half_life=600.0)
    for part in np.split(X, 20):
        one.learn(part, np.ones(400))
        radii.append(one.held_loss().ball(one.theta).radius)
    assert max(radii[5:]) < 2.0 * min(radii[5:])  # weights grow by 2^9
