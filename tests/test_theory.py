"""The bounds: their constants, and that measured runs lie under them."""

from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog, nnls

import onlinefw as ofw
from onlinefw import theory
from onlinefw.losses import Sigmoid
from onlinefw.objectives import GradientOracle, LinearObjective, RunningLeastSquares
from onlinefw.sets import Box, KSparse, L1Ball, L2Ball, LinfBall, LpBall, Polytope, Simplex
from onlinefw.steps import Harmonic, Power

from .pairs import every_pair

# Constants, written out again from the appendix --------------------------------------------------


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0])
def test_constants_are_those_the_appendix_proves(K, alpha):
    sigma, rho, L, diameter, mu, delta, width = 0.7, 1.3, 2.1, 0.9, 0.4, 0.2, 0.15
    C_f = L * diameter**2
    beta = 1 + 2 * alpha / (K - alpha)
    D0 = (K**2 * C_f / 2 + rho * sigma * K) / (K - alpha)
    D1 = max(4 * ((K + 1) / K) ** (2 * alpha), beta**2)
    D1 *= (rho * sigma + K * C_f / 2) ** 2 / (2 * delta**2 * mu)
    D2p = K / (K - alpha) * (K * C_f / 2 + 2 * rho * sigma)
    D2 = max(((K + 1) / K) ** (2 * alpha), beta**2)
    D2 *= 2 * (2 * rho * sigma + K * C_f / 2) ** 2 / (width**2 * mu)
    t, n, eta = np.array([2, 5, 100]), np.array([1, 3, 70]), np.array([1.0, 1.5, 3.0])
    same = dict(K=K, alpha=alpha, sigma=sigma, eta=eta, rho=rho, L=L, diameter=diameter, mu=mu)
    for algorithm, rate, expected in (
        ("fw", "slow", D0 * (eta / (t + K - 1)) ** alpha),
        ("fw", "fast", D1 * (eta / (t + K - 1)) ** (2 * alpha)),
        ("aw", "slow", D2p * (eta / (n + K)) ** alpha),
        ("aw", "fast", D2 * (eta / (n + K)) ** (2 * alpha)),
    ):
        bound = theory.anytime_bound(
            t, algorithm=algorithm, rate=rate, delta=delta, width=width, n_steps=n, **same
        )
        np.testing.assert_allclose(bound, expected)


def test_without_a_step_counter_the_worst_case_of_half_drops_is_taken():
    same = dict(algorithm="aw", rate="slow", sigma=1.0, rho=1.0, L=1.0, diameter=1.0)
    given = theory.anytime_bound(np.array([3, 9]), n_steps=np.array([1, 4]), **same)
    np.testing.assert_allclose(theory.anytime_bound(np.array([3, 9]), **same), given)


def test_the_regret_bound_is_the_mean_of_the_anytime_bounds():
    same = dict(rate="slow", sigma=1.0, rho=1.0, L=1.0, diameter=1.0)
    expected = np.mean(theory.anytime_bound(np.arange(2, 51), **same))
    assert theory.regret_bound(50, **same) == pytest.approx(expected)


def test_gap_bounds_are_those_the_appendix_proves():
    same = dict(alpha=0.75, G=2.0, rho=3.0, L=4.0, diameter=0.5)
    C_f = 4.0 * 0.25
    assert theory.gap_bound(100, algorithm="fw", **same) == pytest.approx(
        0.25 * (4 * 6 + C_f / 2) / (1 - (2 / 3) ** 0.25) * 100**-0.25
    )
    assert theory.gap_bound(100, algorithm="aw", **same) == pytest.approx(
        0.25 * 2 * (4 * 6 + C_f) / (1 - (4 / 5) ** 0.25) * 100**-0.25
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: theory.anytime_bound(1, rate="slow", **k),
        lambda **k: theory.anytime_bound(5, rate="medium", **k),
        lambda **k: theory.anytime_bound(5, algorithm="pg", **k),
        lambda **k: theory.anytime_bound(5, rate="slow", alpha=1.5, **k),
        lambda **k: theory.anytime_bound(5, rate="slow", K=1, alpha=1.0, **k),
        lambda **k: theory.anytime_bound(5, rate="fast", **k),
        lambda **k: theory.anytime_bound(5, rate="fast", mu=0.0, delta=1.0, **k),
        lambda **k: theory.anytime_bound(5, algorithm="aw", rate="fast", mu=1.0, **k),
        lambda **k: theory.regret_bound(1, rate="slow", **k),
    ],
)
def test_bounds_outside_their_theorem_are_refused(call):
    with pytest.raises(ValueError):
        call(sigma=1.0, rho=1.0, L=1.0, diameter=1.0)


@pytest.mark.parametrize(
    ("T", "algorithm", "alpha"),
    [(4, "fw", 0.5), (7, "fw", 0.5), (18, "aw", 0.5), (100, "fw", 1.0), (100, "pg", 0.5)],
)
def test_gap_bounds_outside_their_theorem_are_refused(T, algorithm, alpha):
    with pytest.raises(ValueError):
        theory.gap_bound(T, algorithm=algorithm, alpha=alpha, G=1.0, rho=1.0, L=1.0, diameter=1.0)


# Theorem 2: measured runs lie under the bounds ---------------------------------------------------


def inexact_run(learner_class, constraint, Q, target, *, K, alpha, sigma, T, seed, dual):
    """Minimise (theta - target)' Q (theta - target) / 2 with an error of exactly known norm.

    In round t the error has norm sigma / (K + t - 1)^alpha in the norm whose dual is ``dual``.
    It is adversarial: it pushes along a fixed direction, with random sign changes.
    """
    rng = np.random.default_rng(seed)
    n = target.size
    direction = rng.standard_normal(n)
    direction /= np.abs(direction).max() if dual == 1 else np.linalg.norm(direction)

    def fn(theta, t):
        sign = 1.0 if rng.random() < 0.9 else -1.0
        return Q @ (theta - target) + sign * sigma / (K + t - 1) ** alpha * direction

    learner = learner_class(GradientOracle(fn, n), constraint, step=Harmonic(K))
    f, counters = [], []
    for _ in range(T):
        counters.append(learner.n_steps)  # n_{t-1}
        f.append(0.5 * (learner.theta - target) @ Q @ (learner.theta - target))
        learner.observe()
    return np.array(f), np.array(counters)


def spectrum(rng, n, low, high):
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return (q * np.linspace(low, high, n)) @ q.T


def constrained_minimum(constraint, Q, target):
    objective = ofw.objectives.RunningLeastSquares(target.size)
    root = np.linalg.cholesky(Q).T
    objective.observe(root, root @ target)
    result = ofw.baselines.batch_away_frank_wolfe(objective, constraint, tol=1e-12, max_iter=20000)
    return result.objective * target.size


@pytest.mark.parametrize(
    ("sigma", "K", "alpha", "ball"), every_pair([0.0, 0.3, 3.0], [2, 4], [0.5, 1.0], ["l2", "l1"])
)
def test_ofw_lies_under_its_slow_and_fast_bounds(K, alpha, sigma, ball, rng):
    """Strongly convex, minimiser inside: both bounds of Theorem 2 apply."""
    n, mu, L = 6, 0.5, 2.0
    Q = spectrum(rng, n, mu, L)
    target = rng.standard_normal(n)
    if ball == "l2":
        target *= 0.4 / np.linalg.norm(target)
        constraint, dual, delta = L2Ball(1.0), 2, 0.6
    else:
        target *= 0.4 / np.abs(target).sum()
        constraint, dual = L1Ball(1.0), 1
        delta = 0.6 / np.sqrt(n)  # distance to the nearest face, whose normal is (+-1, ..., +-1)
    T = 400
    t = np.arange(2, T + 1)
    for seed in range(3):
        h, _ = inexact_run(
            ofw.OnlineFrankWolfe, constraint, Q, target,
            K=K, alpha=alpha, sigma=sigma, T=T, seed=seed, dual=dual,
        )  # fmt: skip
        same = dict(K=K, alpha=alpha, sigma=sigma, L=L, mu=mu, delta=delta)
        same |= dict(rho=constraint.diameter(dual), diameter=constraint.diameter(2))
        for rate in ("slow", "fast"):
            assert np.all(h[1:] <= theory.anytime_bound(t, rate=rate, **same))
            assert h[1:].mean() <= theory.regret_bound(T, rate=rate, **same)


@pytest.mark.parametrize(
    ("sigma", "constraint", "K", "alpha"),
    every_pair([0.0, 0.3, 3.0], [L1Ball(1.0), Simplex(), LinfBall(0.3)], [2, 4], [0.5, 1.0]),
)
def test_oaw_lies_under_its_slow_and_fast_bounds(K, alpha, sigma, constraint, rng):
    """Strongly convex on a polytope, minimiser on the boundary: Theorem 2 for O-AW."""
    n, mu, L = 5, 0.5, 2.0
    Q, target = spectrum(rng, n, mu, L), rng.standard_normal(n)
    minimum = constrained_minimum(constraint, Q, target)
    T = 400
    t = np.arange(2, T + 1)
    for seed in range(3):
        f, counters = inexact_run(
            ofw.OnlineAwayFrankWolfe, constraint, Q, target,
            K=K, alpha=alpha, sigma=sigma, T=T, seed=seed, dual=1,
        )  # fmt: skip
        same = dict(algorithm="aw", K=K, alpha=alpha, sigma=sigma, L=L, mu=mu)
        same |= dict(
            rho=constraint.diameter(1, shape=(n,)),
            diameter=constraint.diameter(2, shape=(n,)),
            width=theory.pyramidal_width(constraint, n),
        )
        for rate in ("slow", "fast"):
            bound = theory.anytime_bound(t, rate=rate, n_steps=counters[1:], **same)
            assert np.all(f[1:] - minimum <= bound)
            assert np.all(bound <= theory.anytime_bound(t, rate=rate, **same))


def test_the_bound_is_not_so_loose_that_any_run_would_pass(rng):
    """A learner that never moves breaks the fast bound: the test above can fail."""
    bound = theory.anytime_bound(
        10**6, rate="fast", sigma=0.3, rho=2.0, L=2.0, diameter=2.0, mu=0.5, delta=0.6
    )
    assert bound < 0.5 * 0.5 * 0.4**2


# Theorem 3: non-convex losses --------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 0.75])
@pytest.mark.parametrize(
    ("algorithm", "learner_class"), [("fw", ofw.OnlineFrankWolfe), ("aw", ofw.OnlineAwayFrankWolfe)]
)
def test_the_smallest_late_gap_lies_under_theorem_three(alpha, algorithm, learner_class, rng):
    """Sigmoid losses of rows with entries in [-1, 1] on the l1 ball: G and L are computed."""
    n, radius, T = 8, 1.0, 600
    loss = Sigmoid(4.0)
    truth = rng.standard_normal(n)
    learner = learner_class(LinearObjective(loss), L1Ball(radius), step=Power(alpha))
    gaps = []
    for _ in range(T):
        X = rng.uniform(-1.0, 1.0, (5, n))
        y = np.where(X @ truth >= 0, 1.0, -1.0) * rng.choice([1, 1, 1, -1], 5)
        gaps.append(learner.observe(X, y).gap)
    # |phi'| <= sharpness / 4; a row has l_inf norm <= 1 and l2 norm <= sqrt(n)
    G, L = loss.sharpness / 4, loss.smoothness * n
    ball = L1Ball(radius)
    bound = theory.gap_bound(
        T,
        algorithm=algorithm,
        alpha=alpha,
        G=G,
        rho=ball.diameter(1),
        L=L,
        diameter=ball.diameter(2),
    )
    assert min(gaps[T // 2 :]) <= bound


# Pyramidal width, by brute force -----------------------------------------------------------------


def hull_distance(A, B):
    """Distance between two convex hulls, by non-negative least squares."""
    difference = (A[:, None, :] - B[None, :, :]).reshape(-1, A.shape[1])
    weight = 1e6  # makes the weights sum to one
    system = np.vstack((difference.T, weight * np.ones(len(difference))))
    return nnls(system, np.append(np.zeros(A.shape[1]), weight), maxiter=10_000)[1]


def is_face(vertices, inside):
    """Whether the chosen vertices are exactly those of a proper face: a linear program."""
    outside = [i for i in range(len(vertices)) if i not in inside]
    if not outside:
        return False
    n = vertices.shape[1]
    # a normal g and a level c: <g, v> = c on the face, <g, v> >= c + 1 elsewhere
    result = linprog(
        np.zeros(n + 1),
        A_ub=np.hstack((-vertices[outside], np.ones((len(outside), 1)))),
        b_ub=-np.ones(len(outside)),
        A_eq=np.hstack((vertices[list(inside)], -np.ones((len(inside), 1)))),
        b_eq=np.zeros(len(inside)),
        bounds=[(None, None)] * (n + 1),
    )
    return result.status == 0


def facial_distance(vertices):
    """min over proper faces F of the distance from F to the hull of the other vertices."""
    n_vertices = len(vertices)
    best = np.inf
    for size in range(1, n_vertices):
        for inside in combinations(range(n_vertices), size):
            if is_face(vertices, inside):
                others = np.delete(vertices, inside, axis=0)
                best = min(best, hull_distance(vertices[list(inside)], others))
    return best


@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_the_width_of_the_l1_ball_is_its_facial_distance(n):
    vertices = 2.0 * np.vstack((np.eye(n), -np.eye(n)))
    assert theory.pyramidal_width(L1Ball(2.0), n) == pytest.approx(facial_distance(vertices))
    assert theory.pyramidal_width(LpBall(1, 2.0), n) == pytest.approx(facial_distance(vertices))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_width_of_the_simplex_is_its_facial_distance(n):
    assert theory.pyramidal_width(Simplex(1.5), n) == pytest.approx(
        facial_distance(1.5 * np.eye(n))
    )


@pytest.mark.parametrize("sides", [[2.0], [1.0, 3.0], [1.0, 0.5, 2.0]])
def test_the_width_of_a_box_is_its_facial_distance(sides):
    corners = np.array(np.meshgrid(*[[0.0, s] for s in sides])).reshape(len(sides), -1).T
    box = Box(np.zeros(len(sides)), np.array(sides))
    assert theory.pyramidal_width(box, len(sides)) == pytest.approx(facial_distance(corners))


def test_the_width_of_a_cube_and_of_a_flat_box():
    assert theory.pyramidal_width(LinfBall(1.0), 4) == pytest.approx(1.0)
    flat = Box(np.array([0.0, 1.0]), np.array([3.0, 1.0]))
    assert theory.pyramidal_width(flat, 2) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("constraint", "n"),
    [
        (KSparse(2, 1.0), 4),
        (Polytope(np.eye(3)), 3),
        (L2Ball(1.0), 3),
        (L1Ball(1.0), 0),
        (Simplex(), 1),
        (Box(1.0, 1.0), 2),
    ],
)
def test_unknown_widths_are_said_to_be_unknown(constraint, n):
    with pytest.raises(ValueError, match=r"width|n >= 1"):
        theory.pyramidal_width(constraint, n)


# Rates and gradient errors -----------------------------------------------------------------------


def test_fit_rate_recovers_a_power_law_and_its_interval_covers_it(rng):
    t = np.geomspace(10, 10_000, 40)
    assert theory.fit_rate(t, 7.0 * t**-0.6).slope == pytest.approx(-0.6)
    assert theory.fit_rate(t, 7.0 * t**-0.6).intercept == pytest.approx(np.log(7.0))
    covered = 0
    for _ in range(400):
        rate = theory.fit_rate(t, t**-1.0 * np.exp(0.5 * rng.standard_normal(40)))
        assert rate.low < rate.slope < rate.high
        covered += rate.low <= -1.0 <= rate.high
    assert 0.91 < covered / 400 < 0.985


@pytest.mark.parametrize(
    ("t", "h"),
    [([1, 2], [1, 2]), ([1, 2, 3], [1, 2]), ([1, 2, 3], [1, 0, 1]), ([0, 1, 2], [1, 1, 1])],
)
def test_fit_rate_refuses_what_has_no_logarithm(t, h):
    with pytest.raises(ValueError):
        theory.fit_rate(t, h)


def test_the_lasso_gradient_error_stays_under_its_bound(rng):
    """A fixed design (B_1 = 0): ||A' mean(w)||_inf against the proposition, 200 runs."""
    m, n, sigma_w, epsilon, T = 10, 20, 2.0, 0.05, 300
    A = rng.standard_normal((m, n))
    t = np.arange(1, T + 1)
    bound = theory.lasso_gradient_error(
        t, n=n, m=m, B1=0.0, B2=np.abs(A).max(), sigma_w=sigma_w, c=1.0, epsilon=epsilon
    )
    broken = 0
    for _ in range(200):
        means = np.cumsum(sigma_w * rng.standard_normal((T, m)), axis=0) / t[:, None]
        broken += np.any(np.abs(means @ A).max(axis=1) > bound)
    assert broken / 200 <= (1 + 1 / n) * np.pi**2 * epsilon / 6
    assert bound[-1] < 50 * np.abs(means @ A).max(axis=1)[-1]  # of the right order


def test_the_lasso_gradient_error_of_a_random_design(rng):
    """B_1 > 0: both terms of the proposition, at the theta that is worst for the l1 norm."""
    m, n, T = 5, 6, 400
    theta = np.zeros(n)
    theta[0] = 1.0  # ||theta - theta_bar||_1 = c = 1 with theta_bar = 0
    t = np.arange(1, T + 1)
    # entries +-1: A'A has entries in [-m, m] and mean m I, so B_1 = m and B_2 = 1
    bound = theory.lasso_gradient_error(t, n=n, m=m, B1=m, B2=1.0, sigma_w=1.0, c=1.0)
    total = np.zeros(n)
    for k in range(T):
        A = rng.choice([-1.0, 1.0], (m, n))
        total += A.T @ (A @ theta - rng.standard_normal(m))
        error = np.abs(total / (k + 1) - m * theta).max()
        assert error <= bound[k]


def test_the_matrix_gradient_error_has_the_right_order(rng):
    """Uniformly drawn entries with Gaussian noise: the bound's shape in t and in the dimensions."""
    shape, sigma = (12, 20), 1.0
    truth = rng.standard_normal(shape)
    kappa = max(np.linalg.norm(truth, axis=0).max(), np.linalg.norm(truth, axis=1).max())
    total, checks = np.zeros(shape), []
    for t in range(1, 20_001):
        i, j = rng.integers(12), rng.integers(20)
        total[i, j] -= truth[i, j] + sigma * rng.standard_normal()
        if t in (500, 2000, 8000, 20_000):
            error = np.linalg.norm(total / t + truth / 240, 2)
            checks.append(
                error / theory.matrix_gradient_error(t, shape=shape, sigma=sigma, kappa=kappa)
            )
    assert max(checks) < 1.0
    assert max(checks) / min(checks) < 3.0


def test_the_slow_bound_covers_a_short_online_least_squares_run(rng):
    """The aggregated gradient itself, not an oracle: LASSO with m >= n, all constants computed."""
    from onlinefw.datasets import make_lasso
    from onlinefw.experiments.online_lasso import run_online_lasso, slow_bound

    problem = make_lasso(m=40, n=20, sigma=1.0, seed=3)
    radius = 1.1 * np.abs(problem.theta).sum()
    curve = run_online_lasso(problem, radius, 300, ofw.OnlineFrankWolfe)
    assert np.all(curve.h <= slow_bound(problem, radius, curve.t))


# Functions that change ---------------------------------------------------------------------------


def test_a_tracking_bound_is_its_recursion():
    bounds = theory.tracking_bound([0.5, 0.2], [0.1, 0.3], L=2.0, diameter=3.0, start=4.0)
    first = 0.5 * 4.0 + 0.25 * 9.0 + 0.1
    np.testing.assert_allclose(bounds, [first, 0.8 * first + 0.04 * 9.0 + 0.3])


@pytest.mark.parametrize(
    ("steps", "changes", "words"),
    [
        ([0.5], [0.1], "pass start"),
        ([1.0, 0.5], [0.1], "as many steps as changes"),
        ([1.0, 1.5], [0.1, 0.1], "between 0 and 1"),
        ([1.0], [-0.1], "at least 0"),
    ],
)
def test_a_tracking_bound_refuses_what_it_does_not_hold_for(steps, changes, words):
    with pytest.raises(ValueError, match=words):
        theory.tracking_bound(steps, changes, L=1.0, diameter=1.0)


@pytest.mark.slow
def test_a_slowly_rotating_target_is_followed_within_the_bound():
    """The regret is below the bound, and the bound below what the worst theta has."""
    rng, n, half_life, rounds, r = np.random.default_rng(0), 4, 100.0, 400, 1.0
    objective = RunningLeastSquares(n, half_life=half_life)
    learner = ofw.OnlineFrankWolfe(objective, L1Ball(r))
    A = b = weight = 0.0
    facts = []
    for t in range(rounds):
        # Whitened rows: their mean loss is near |theta - truth|^2 / 2.
        X = np.linalg.qr(rng.standard_normal((n, n)))[0] * np.sqrt(n)
        angle = 2 * np.pi * t / 1500
        truth = 0.6 * np.array([np.cos(angle), np.sin(angle), 0.0, 0.0])
        y, theta = X @ truth, np.array(learner.theta)
        fresh = 2.0 ** (-np.arange(n)[::-1] / half_life)
        fade = 2.0 ** (-n / half_life)
        A, b = fade * A + X.T @ (fresh[:, None] * X), fade * b + X.T @ (fresh * y)
        weight = fade * weight + fresh.sum()
        facts.append((A / weight, b / weight, theta, learner.observe(X, y).step_size))
    A, b, thetas, steps = (np.array(column) for column in zip(*facts, strict=True))
    # On the l1 ball <x, theta> varies by 2 r max|x|, and theta' M theta / 2 by r^2 max|M|.
    changes = 2 * r * np.abs(np.diff(b, axis=0)).max(1) + r**2 * np.abs(np.diff(A, axis=0)).max(
        (1, 2)
    )
    L = max(np.linalg.eigvalsh(one)[-1] for one in A)
    bounds = theory.tracking_bound(steps[:-1], changes, L=L, diameter=2 * r)

    def value(t, theta):
        return 0.5 * theta @ A[t] @ theta - b[t] @ theta

    theta, regrets, worst = cp.Variable(n), [], []
    M, c = cp.Parameter((n, n)), cp.Parameter(n)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(M @ theta) / 2 - c @ theta), [cp.norm1(theta) <= r]
    )
    for t in range(1, rounds):
        M.value, c.value = np.linalg.cholesky(A[t]).T, b[t]
        least = problem.solve()
        regrets.append(value(t, thetas[t]) - least)
        worst.append(max(value(t, s * r * e) for e in np.eye(n) for s in (1, -1)) - least)
    regrets, worst = np.array(regrets), np.array(worst)
    assert (regrets <= bounds + 1e-6).all()
    assert regrets.mean() <= bounds.mean()
    late = slice(150, None)  # round 1 has a step of length 1, whose bound is forgotten by then
    assert bounds[late].max() < 0.6 * worst[late].min()
    assert steps[-1] == pytest.approx(steps[200], rel=0.1)  # they do not go to 0
