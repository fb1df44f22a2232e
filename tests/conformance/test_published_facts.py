"""Facts published elsewhere about Frank-Wolfe methods and linear minimisation oracles."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, target
from hypothesis import strategies as st
from scipy.optimize import minimize

import onlinefw as ofw
from onlinefw.atoms import SignedCoordinate
from onlinefw.baselines import batch_away_frank_wolfe, batch_frank_wolfe
from onlinefw.iterates import ActiveSet
from onlinefw.losses import Logistic, Square
from onlinefw.objectives import GradientOracle, LinearObjective
from onlinefw.sets import Birkhoff, Box, KSparse, L1Ball, L2Ball, LpBall, Simplex, TraceNormBall
from onlinefw.steps import Harmonic, LineSearch, Power

# min ||x||^2 on the probability simplex ----------------------------------------------------------


def squared_norm(n):
    return GradientOracle(lambda x, t: 2.0 * x, n, value=lambda x: float(x @ x))


def test_the_smallest_norm_on_the_simplex_in_five_dimensions_is_a_fifth():
    learner = ofw.OnlineFrankWolfe(squared_norm(5), Simplex(), step=Harmonic(2))
    for _ in range(1000):
        learner.observe()
    assert learner.theta @ learner.theta == pytest.approx(0.2, abs=1e-5)
    result = batch_frank_wolfe(squared_norm(5), Simplex(), max_iter=1000, tol=0.0)
    assert result.objective == pytest.approx(0.2, abs=1e-5)


@pytest.mark.parametrize("blended", [False, True], ids=["pairwise", "blended"])
@pytest.mark.parametrize(
    ("step", "within"), [(Harmonic(2), 1e-5), (LineSearch(), 1e-5), (Power(0.5), 1e-2)], ids=str
)
def test_pairwise_steps_find_it_too(step, within, blended):
    learner = ofw.OnlinePairwiseFrankWolfe(squared_norm(5), Simplex(), step, blended=blended)
    for _ in range(1000):
        learner.observe()
    assert learner.theta @ learner.theta == pytest.approx(0.2, abs=within)


def test_the_smallest_norm_on_the_simplex_in_a_hundred_dimensions_obeys_the_classical_bound():
    """f(x_k) - 1/n <= 2 L D^2 / (k + 2) with L = 2 and D^2 = 2."""
    learner = ofw.OnlineFrankWolfe(squared_norm(100), Simplex(), step=Harmonic(2))
    for k in range(1, 301):
        learner.observe()
        assert learner.theta @ learner.theta - 0.01 <= 2 * 2 * 2 / (k + 2)


def test_a_minimiser_inside_the_unit_ball_is_found():
    centre = np.array([0.1, 0.2, 0.3])
    objective = GradientOracle(
        lambda x, t: x - centre, 3, value=lambda x: 0.5 * float(np.sum((x - centre) ** 2))
    )
    result = batch_frank_wolfe(objective, L2Ball(1.0), max_iter=2000, tol=1e-8)
    assert result.objective == pytest.approx(0.0, abs=1e-6)


# Worst-case analysis (PEPit): vanilla Frank-Wolfe, L = D = 1, ten steps: at most 0.0783 ----------

WORST_AFTER_TEN = 0.0783
UNIT_DIAMETER = {
    "l2 ball": L2Ball(0.5),
    "l1 ball": L1Ball(0.5),
    "simplex": Simplex(1 / np.sqrt(2)),
    "cube": Box(-0.25, 0.25),  # in R^4: side 1/2, diagonal 1
}


def error_after_ten(constraint, Q, centre):
    """f(x_10) - min f for f = (x - c)' Q (x - c) / 2, steps 2 / (k + 2), k = 0, 1, ..."""
    n = centre.size
    learner = ofw.OnlineFrankWolfe(
        GradientOracle(lambda x, t: Q @ (x - centre), n), constraint, step=Harmonic(2)
    )
    for _ in range(10):
        learner.observe()
    error = learner.theta - centre
    gap = learner.certificate()
    value = 0.5 * error @ Q @ error
    best = projected_minimum(constraint, Q, centre)
    assert value - best <= gap + 1e-9
    return value - best


def projected_minimum(constraint, Q, centre):
    """The exact minimum by many projected gradient steps, independent of Frank-Wolfe."""
    x = constraint.project(centre)
    y, momentum = x, 1.0
    for _ in range(2000):
        new = constraint.project(y - Q @ (y - centre))
        if np.linalg.norm(new - x) < 1e-11:
            break
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        y, x, momentum = new + (momentum - 1) / following * (new - x), new, following
    return 0.5 * (x - centre) @ Q @ (x - centre)


def quadratic(parameters, n=4):
    """A quadratic with largest eigenvalue 1 from any numbers."""
    factor, centre = parameters[: n * n].reshape(n, n), parameters[n * n :]
    Q = factor @ factor.T
    top = np.linalg.eigvalsh(Q)[-1]
    return (Q / top if top > 1e-12 else np.eye(n)), centre


@pytest.mark.parametrize("name", list(UNIT_DIAMETER))
def test_random_quadratics_never_exceed_the_worst_case(name):
    constraint = UNIT_DIAMETER[name]
    assert constraint.diameter(2, shape=(4,)) == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        Q, centre = quadratic(rng.standard_normal(20) * rng.choice([0.1, 0.5, 2.0]))
        assert error_after_ten(constraint, Q, centre) <= WORST_AFTER_TEN


@pytest.mark.slow
@pytest.mark.parametrize("name", list(UNIT_DIAMETER))
def test_adversarial_quadratics_never_exceed_the_worst_case(name):
    """A direct search for the worst quadratic stays under the figure."""
    constraint = UNIT_DIAMETER[name]
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(3):
        found = minimize(
            lambda p: -error_after_ten(constraint, *quadratic(p)),
            0.3 * rng.standard_normal(20),
            method="Nelder-Mead",
            options={"maxfev": 250},
        )
        worst = max(worst, -found.fun)
    assert worst <= WORST_AFTER_TEN
    assert worst > 1e-3  # the search does look at hard problems


def test_the_classical_lower_bound_instance_lies_between_its_bound_and_the_worst_case():
    """||x||^2 / 2 on a simplex: after k steps x has k nonzeros, so f >= radius^2 / (2 k)."""
    n, radius = 400, 1 / np.sqrt(2)
    error = error_after_ten(Simplex(radius), np.eye(n), np.zeros(n))
    assert radius**2 / 2 * (1 / 10 - 1 / n) <= error <= WORST_AFTER_TEN


@settings(max_examples=60)
@given(st.lists(st.floats(-2, 2), min_size=20, max_size=20))
def test_no_quadratic_that_hypothesis_finds_exceeds_the_worst_case(numbers):
    error = error_after_ten(L2Ball(0.5), *quadratic(np.array(numbers)))
    target(error)
    assert error <= WORST_AFTER_TEN


# Worst-case analysis (PEPit): online Frank-Wolfe on linear losses --------------------------------


@pytest.mark.parametrize(("n", "worst"), [(2, 0.93301), (5, 2.0029), (10, 3.3306)])
def test_regularised_online_frank_wolfe_never_exceeds_its_worst_regret(n, worst, rng):
    """v_t = LMO(x_t - x_1 + eta * sum of gradients), a constant step: an oracle and a rule here."""
    D, M = 0.5, 1.0
    eta = D / (2 * M) * (3 / n) ** 0.75
    sigma = min(1.0, np.sqrt(3 / n))
    for adversary in ("random", "fixed", "against x", "alternating"):
        for _ in range(20):
            state = {"sum": np.zeros(3), "regret": 0.0}
            fixed = rng.standard_normal(3)
            fixed /= np.linalg.norm(fixed)

            def fn(x, t, state=state, fixed=fixed, adversary=adversary):
                g = {
                    "random": rng.standard_normal(3),
                    "fixed": fixed,
                    "against x": x if np.linalg.norm(x) > 0 else fixed,
                    "alternating": fixed * (-1.0) ** t,
                }[adversary]
                g = M * g / np.linalg.norm(g)
                state["regret"] += g @ x
                state["sum"] += g
                return x + eta * state["sum"]

            learner = ofw.OnlineFrankWolfe(
                GradientOracle(fn, 3), L2Ball(D / 2), step=lambda t: sigma
            )
            for _ in range(n):
                learner.observe()
            best = -(D / 2) * np.linalg.norm(state["sum"])
            assert state["regret"] - best <= worst


# Linear minimisation oracles ---------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_birkhoff_finds_the_identity(n):
    cost = np.full((n, n), 3.0)
    np.fill_diagonal(cost, 2.0)
    atom = Birkhoff().lmo(cost)
    np.testing.assert_array_equal(atom.dense(), np.eye(n))
    assert atom.dot(cost) == 2 * n


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
def test_lp_vertices_lie_on_the_sphere(p, rng):
    for _ in range(20):
        v = LpBall(p, 3.0).lmo(rng.standard_normal(12)).dense()
        assert np.linalg.norm(v, p) == pytest.approx(3.0)


def test_k_sparse_vertices_have_k_entries(rng):
    v = KSparse(4, 3.0).lmo(rng.standard_normal(12)).dense()
    assert np.count_nonzero(v) == 4
    assert np.abs(v).sum() == pytest.approx(12.0)


# Active-set algebra ------------------------------------------------------------------------------


def test_active_set_algebra():
    def fresh():
        state = {
            "weights": [1 / 8, 1 / 8, 3 / 4],
            "atoms": [SignedCoordinate(k, 1.0, (3,)).state_dict() for k in range(3)],
        }
        return ActiveSet.from_state(state)

    full = fresh()
    full.away(2, full.max_away_step(2))
    np.testing.assert_array_equal(full.weights, [1 / 2, 1 / 2])
    half = fresh()
    half.away(2, half.max_away_step(2) / 2)
    np.testing.assert_array_equal(half.weights, [5 / 16, 5 / 16, 3 / 8])


# Matrix completion -------------------------------------------------------------------------------


def test_nuclear_norm_completion_recovers_a_rank_five_matrix(rng):
    """100 x 50, rank 5, 1,000 entries missing, 400 line-search steps."""
    truth = rng.standard_normal((100, 5)) @ rng.standard_normal((5, 50))
    seen = rng.permutation(5000)[:4000]
    rows = sp.csr_array((np.ones(4000), seen, np.arange(4001)), shape=(4000, 5000))
    objective = LinearObjective(Square(), shape=(100, 50))
    objective.observe(rows, truth.ravel()[seen])
    ball = TraceNormBall(np.linalg.norm(truth, "nuc"))
    start = ball.lmo(objective.gradient()).dense()  # a vertex, as in the published example
    at_start = np.mean((start.ravel()[seen] - truth.ravel()[seen]) ** 2) / 2
    result = batch_frank_wolfe(objective, ball, max_iter=400, tol=0.0)
    assert result.objective < 1e-3 * at_start
    singular = np.linalg.svd(result.theta, compute_uv=False)
    assert singular[5:].sum() <= 0.02 * singular.sum()


# copt's grid: gradient mappings of 20 x 16 problems ----------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Square(), Logistic()], ids=str)
@pytest.mark.parametrize("radius", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize(
    ("solver", "constraint", "limit"),
    [
        (batch_frank_wolfe, L1Ball, 0.3),
        (batch_frank_wolfe, TraceNormBall, 0.4),
        (batch_away_frank_wolfe, L1Ball, 0.2),
    ],
    ids=["l1", "trace", "away"],
)
def test_gradient_mappings_are_small_at_the_solution(loss, radius, solver, constraint, limit):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 16)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    matrix = constraint is TraceNormBall
    objective = LinearObjective(loss, **({"shape": (4, 4)} if matrix else {}))
    objective.observe(X, y)
    ball = constraint(radius)
    theta = solver(objective, ball, max_iter=1000).theta
    slopes = loss.derivative(X @ theta.ravel(), y) / 20
    gradient = (X.T @ slopes).reshape(theta.shape)
    assert np.linalg.norm(theta - ball.project(theta - gradient)) < limit


@pytest.mark.parametrize("blended", [False, True], ids=["pairwise", "blended"])
@pytest.mark.parametrize("loss", [Square(), Logistic()], ids=str)
@pytest.mark.parametrize("radius", [0.1, 1.0, 10.0, 100.0])
def test_so_are_those_of_pairwise_steps(loss, radius, blended):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 16)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    ball = L1Ball(radius)
    learner = ofw.OnlinePairwiseFrankWolfe(
        LinearObjective(loss), ball, LineSearch(), 300, blended=blended
    )
    learner.observe(X, y)
    gradient = X.T @ loss.derivative(X @ learner.theta, y) / 20
    mapping = learner.theta - ball.project(learner.theta - gradient)
    assert np.linalg.norm(mapping) < 0.2
