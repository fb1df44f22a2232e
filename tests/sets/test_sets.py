"""Sets: linear minimisation, projection, membership, diameter; held to what they mean."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.linalg import aslinearoperator

from onlinefw import sets
from onlinefw.atoms import RankOne, SignedCoordinate, SparseAtom
from onlinefw.iterates import LowRank

from ..catalogue import SETS, feasible_points, name

every_set = pytest.mark.parametrize("case", SETS, ids=name)
projectable = [c for c in SETS if c[0].has_projection]


def described(constraint, x):
    """The set in cvxpy's words: constraints on the variable x."""
    flat = cp.vec(x, order="C")
    match constraint:
        case sets.L1Ball():
            return [cp.norm1(flat) <= constraint.radius]
        case sets.L2Ball():
            return [cp.norm2(flat) <= constraint.radius]
        case sets.LinfBall():
            return [cp.norm_inf(flat) <= constraint.radius]
        case sets.LpBall():
            return [cp.norm(flat, constraint.p) <= constraint.radius]
        case sets.Simplex():
            return [flat >= 0, cp.sum(flat) == constraint.radius]
        case sets.Box():
            return [x >= constraint.lower, x <= constraint.upper]
        case sets.KSparse():
            return [
                cp.norm_inf(flat) <= constraint.radius,
                cp.norm1(flat) <= constraint.k * constraint.radius,
            ]
        case sets.GroupL1Ball():
            members = [np.flatnonzero(constraint.groups == g) for g in np.unique(constraint.groups)]
            return [sum(cp.norm2(flat[m]) for m in members) <= constraint.radius]
        case sets.TraceNormBall():
            return [cp.normNuc(x) <= constraint.radius]
        case sets.WeightedTraceNormBall():
            weighted = cp.diag(constraint.rows) @ x @ cp.diag(constraint.columns)
            return [cp.normNuc(weighted) <= constraint.radius]
        case sets.Spectrahedron():
            return [x >> 0, x == x.T, cp.trace(x) == constraint.trace]
        case sets.Product():
            out, start = [], 0
            for part, size in constraint.parts:
                out += described(part, x[start : start + size])
                start += size
            return out
    raise AssertionError(constraint)


# Linear minimisation ---------------------------------------------------------------------------


@every_set
def test_the_lmo_returns_a_point_of_the_set_that_no_other_point_beats(case, rng):
    constraint, shape = case
    points = feasible_points(constraint, shape, rng)
    for _ in range(20):
        g = rng.standard_normal(shape)
        atom = constraint.lmo(g)
        assert atom.shape == shape
        assert constraint.contains(atom.dense(), tol=1e-9)
        assert atom.dot(g) == pytest.approx(np.sum(atom.dense() * g))
        assert atom.dot(g) <= (points.reshape(len(points), -1) @ g.ravel()).min() + 1e-9


@pytest.mark.parametrize("case", projectable, ids=name)
def test_the_lmo_finds_the_minimum_that_cvxpy_finds(case, rng):
    constraint, shape = case
    g = rng.standard_normal(shape)
    x = cp.Variable(shape)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(g, x))), described(constraint, x))
    problem.solve(solver=cp.CLARABEL)
    assert constraint.lmo(g).dot(g) == pytest.approx(problem.value, abs=1e-6)


@every_set
def test_a_zero_direction_gives_a_vertex_without_nan(case):
    constraint, shape = case
    atom = constraint.lmo(np.zeros(shape)).dense()
    assert np.isfinite(atom).all()
    assert constraint.contains(atom)


@pytest.mark.parametrize("constraint", [sets.TraceNormBall(2.0), sets.Spectrahedron(2.0)])
@pytest.mark.parametrize("n", [2, 5, 300])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, aslinearoperator])
def test_a_zero_matrix_of_any_kind_and_size_gives_a_vertex(constraint, n, kind):
    atom = constraint.lmo(kind(np.zeros((n, n)))).dense()
    assert constraint.contains(atom)


@every_set
def test_single_precision_directions_give_points_of_the_set(case, rng):
    constraint, shape = case
    for _ in range(20):
        atom = constraint.lmo(rng.standard_normal(shape).astype(np.float32))
        assert constraint.contains(atom.dense())


@every_set
def test_extreme_directions_give_no_nan(case, rng):
    constraint, shape = case
    for scale in (1e-300, 1e300):
        atom = constraint.lmo(scale * rng.uniform(-1, 1, shape)).dense()
        assert np.isfinite(atom).all()
        assert constraint.contains(atom)


@every_set
def test_a_direction_with_nan_is_refused(case):
    constraint, shape = case
    g = np.ones(shape)
    g.flat[-1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        constraint.lmo(g)


@every_set
def test_sparse_directions_mean_the_same_as_dense_ones(case, rng):
    constraint, shape = case
    if len(shape) == 1:
        return
    g = rng.standard_normal(shape) * (rng.random(shape) < 0.6)
    for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        assert constraint.lmo(kind(g)).dot(g) == pytest.approx(constraint.lmo(g).dot(g))


@pytest.mark.parametrize("constraint", [sets.TraceNormBall(2.0), sets.Spectrahedron(2.0)])
@pytest.mark.parametrize("n", [2, 6, 300])
def test_spectral_sets_take_arrays_sparse_matrices_and_operators_alike(constraint, n, rng):
    dense = sp.random_array((n, n), density=0.3, rng=rng).toarray()
    values = [constraint.lmo(kind(dense)).dot(dense) for kind in (np.asarray, sp.csr_array)]
    values.append(constraint.lmo(aslinearoperator(dense)).dot(dense))
    np.testing.assert_allclose(values, values[0], rtol=1e-7)


def test_sets_of_entries_refuse_operators(rng):
    with pytest.raises(TypeError, match="LinearOperator"):
        sets.L1Ball(1.0).lmo(aslinearoperator(np.eye(3)))


def test_atoms_are_structured(rng):
    g = rng.standard_normal(6)
    assert isinstance(sets.L1Ball(1.0).lmo(g), SignedCoordinate)
    assert isinstance(sets.Simplex().lmo(g), SignedCoordinate)
    assert isinstance(sets.KSparse(2, 1.0).lmo(g), SparseAtom)
    assert isinstance(sets.TraceNormBall(1.0).lmo(rng.standard_normal((3, 4))), RankOne)
    assert isinstance(sets.Birkhoff().lmo(rng.standard_normal((3, 3))), SparseAtom)
    both = sets.Product([(sets.L1Ball(1.0), 2), (sets.KSparse(2, 1.0), 4)])
    assert isinstance(both.lmo(g), SparseAtom)


def test_a_huge_sparse_direction_stays_sparse():
    g = sp.coo_array(([3.0, -5.0], ([10, 2_000_000], [0, 3_000_000])), shape=(10**7, 10**7))
    atom = sets.L1Ball(2.0).lmo(g)
    assert atom.index == 2_000_000 * 10**7 + 3_000_000
    assert atom.value == 2.0


# Projection and membership -----------------------------------------------------------------------


@pytest.mark.parametrize("case", projectable, ids=name)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_projection_is_the_nearest_point(case, scale, rng):
    constraint, shape = case
    point = scale * rng.standard_normal(shape)
    if isinstance(constraint, sets.Spectrahedron):
        point = point + point.T
    ours = constraint.project(point)
    assert constraint.contains(ours, tol=1e-9)
    x = cp.Variable(shape)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - point)), described(constraint, x))
    problem.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(ours, x.value, atol=2e-4 * max(1.0, scale))
    assert np.sum((ours - point) ** 2) <= problem.value + 1e-6 * max(1.0, problem.value)


@pytest.mark.parametrize("case", projectable, ids=name)
def test_projection_satisfies_its_variational_inequality(case, rng):
    """<x - P(x), s - P(x)> <= 0 for every s in the set: exact, with no solver's tolerance."""
    constraint, shape = case
    for _ in range(10):
        point = 3.0 * rng.standard_normal(shape)
        if isinstance(constraint, sets.Spectrahedron):
            point = point + point.T
        projected = constraint.project(point)
        residual = point - projected
        vertex = constraint.lmo(-residual).dense()
        scale = max(1.0, np.abs(point).max())
        assert np.sum(residual * (vertex - projected)) <= 1e-9 * scale**2
        again = constraint.project(projected)
        np.testing.assert_allclose(again, projected, atol=1e-9 * scale)


@pytest.mark.parametrize("case", projectable, ids=name)
def test_projection_leaves_points_of_the_set_where_they_are(case, rng):
    constraint, shape = case
    for point in feasible_points(constraint, shape, rng, count=5):
        np.testing.assert_allclose(constraint.project(point), point, atol=1e-9)


@given(
    point=arrays(float, st.integers(1, 30), elements=st.floats(-1e6, 1e6)),
    radius=st.floats(1e-3, 1e3),
)
def test_l1_and_simplex_projections_are_feasible_for_any_point(point, radius):
    assert sets.L1Ball(radius).contains(sets.L1Ball(radius).project(point), tol=1e-9)
    assert sets.Simplex(radius).contains(sets.Simplex(radius).project(point), tol=1e-9)


@pytest.mark.parametrize(
    ("constraint", "shape"),
    [
        (sets.Birkhoff(), (3, 3)),
        (sets.Polytope(np.eye(3)), (3,)),
        (sets.Product([(sets.L1Ball(1.0), 1), (sets.Polytope(np.eye(2)), 2)]), (3,)),
    ],
    ids=["Birkhoff", "Polytope", "Product"],
)
def test_sets_without_a_practical_projection_say_so(constraint, shape):
    assert not constraint.has_projection
    with pytest.raises(ValueError, match="no practical exact projection"):
        constraint.project(np.zeros(shape))


@every_set
def test_points_outside_are_not_contained(case, rng):
    constraint, shape = case
    for _ in range(5):
        g = rng.standard_normal(shape)
        vertex = constraint.lmo(-g).dense()  # maximises <., g>: one step further is outside
        assert constraint.contains(vertex)
        outside = np.linalg.norm(vertex) * g / np.linalg.norm(g)
        assert not constraint.contains(vertex + 1e-6 * outside)
        assert not constraint.contains(vertex + 1e-3 * outside)


@every_set
def test_points_with_nan_are_in_no_set_and_have_no_projection(case):
    constraint, shape = case
    point = np.zeros(shape)
    point.flat[0] = np.nan
    assert not constraint.contains(point)
    with pytest.raises(ValueError, match="NaN"):
        constraint.project(point)


def test_small_sets_are_judged_by_their_own_size():
    tiny = sets.Polytope([[1e-10, 1e-10], [2e-10, 1e-10], [1e-10, 2e-10]])
    assert not tiny.contains_zero
    assert tiny.contains([1.2e-10, 1.2e-10])
    assert not sets.Box(1e-10, 2e-10).contains([0.0, 0.0])


@every_set
def test_zero_is_contained_exactly_when_the_set_says_so(case):
    constraint, shape = case
    assert constraint.contains(np.zeros(shape)) == constraint.contains_zero


def test_low_rank_points_are_tested_through_their_factors(rng):
    theta = LowRank((200, 300))
    for _ in range(5):
        u, v = rng.standard_normal(200), rng.standard_normal(300)
        theta.move(RankOne(u / np.linalg.norm(u), 3.0, v / np.linalg.norm(v)), 0.3)
    norm = np.linalg.norm(theta.dense(), "nuc")
    assert sets.TraceNormBall(norm * 1.0001).contains(theta)
    assert not sets.TraceNormBall(norm * 0.9999).contains(theta)


def test_tolerance_is_relative_to_the_radius():
    big = sets.L1Ball(1e9)
    assert big.contains(np.array([1e9 * (1 + 1e-10)]))
    assert not big.contains(np.array([1e9 * (1 + 1e-8)]))
    assert not sets.L1Ball(1e-9).contains(np.array([1.1e-9]))


# Diameter ----------------------------------------------------------------------------------------


def _norm(x, ord):
    return np.linalg.norm(x, "nuc") if ord == "nuc" else np.linalg.norm(x.ravel(), ord)


@every_set
@pytest.mark.parametrize("ord", [1, 2, np.inf, "nuc"])
def test_no_two_points_are_further_apart_than_the_diameter(case, ord, rng):
    constraint, shape = case
    if ord == "nuc" and len(shape) == 1:
        with pytest.raises(ValueError, match=r"nuclear|vectors"):
            constraint.diameter(ord, shape=shape)
        return
    diameter = constraint.diameter(ord, shape=shape)
    ends = [constraint.lmo(rng.choice([-1.0, 1.0], shape)).dense() for _ in range(20)]
    ends += [constraint.lmo(rng.standard_normal(shape)).dense() for _ in range(20)]
    widest = max(_norm(a - b, ord) for a in ends for b in ends)
    assert widest <= diameter * (1 + 1e-12)


@pytest.mark.parametrize(
    ("constraint", "ord", "expected"),
    [
        (sets.L1Ball(2.0), 1, 4.0),
        (sets.L1Ball(2.0), 2, 4.0),
        (sets.L1Ball(2.0), np.inf, 4.0),
        (sets.L1Ball(2.0), "nuc", 4.0),
        (sets.L2Ball(2.0), 2, 4.0),
        (sets.LinfBall(2.0), np.inf, 4.0),
        (sets.Simplex(2.0), 1, 4.0),
        (sets.Simplex(2.0), 2, 2.0 * np.sqrt(2.0)),
        (sets.Simplex(2.0), np.inf, 2.0),
        (sets.TraceNormBall(2.0), 2, 4.0),
        (sets.TraceNormBall(2.0), "nuc", 4.0),
        (sets.Spectrahedron(2.0), 2, 2.0 * np.sqrt(2.0)),
        (sets.Spectrahedron(2.0), "nuc", 4.0),
        (sets.KSparse(4, 1.0), 2, 4.0),
        (sets.KSparse(4, 1.0), 1, 8.0),
        (sets.Box([0.0, 0.0], [3.0, 4.0]), 2, 5.0),
        (sets.GroupL1Ball([0, 0, 0, 0, 1], 1.0), 1, 4.0),
        (sets.Polytope([[0.0, 0.0], [3.0, 4.0]]), 2, 5.0),
        (sets.Birkhoff(), np.inf, 1.0),
    ],
)
def test_diameters_known_in_closed_form(constraint, ord, expected):
    assert constraint.diameter(ord) == pytest.approx(expected)


def test_diameters_that_depend_on_the_dimension_ask_for_it():
    assert sets.LinfBall(1.0).diameter(2, shape=(9,)) == pytest.approx(6.0)
    assert sets.L2Ball(1.0).diameter(1, shape=16) == pytest.approx(8.0)
    assert sets.Birkhoff().diameter(2, shape=(8, 8)) == pytest.approx(4.0)
    with pytest.raises(ValueError, match="shape="):
        sets.LinfBall(1.0).diameter(2)
    with pytest.raises(ValueError, match="ord"):
        sets.L1Ball(1.0).diameter(3)


def test_the_nuclear_diameter_of_birkhoff_is_that_of_an_n_cycle():
    from itertools import permutations

    for n in (2, 3, 4, 5):
        eye = np.eye(n)
        widest = max(np.linalg.norm(eye - eye[list(p)], "nuc") for p in permutations(range(n)))
        assert sets.Birkhoff().diameter("nuc", shape=(n, n)) == pytest.approx(widest)


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf, None, "3"])
def test_a_radius_must_be_positive_and_finite(radius):
    for make in (
        sets.L1Ball,
        sets.L2Ball,
        sets.LinfBall,
        sets.TraceNormBall,
        sets.Simplex,
        sets.Spectrahedron,
        lambda r: sets.LpBall(1.5, r),
        lambda r: sets.KSparse(2, r),
        lambda r: sets.GroupL1Ball([0, 1], r),
    ):
        with pytest.raises(ValueError, match="positive"):
            make(radius)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sets.LpBall(0.5, 1.0),
        lambda: sets.Box(1.0, 0.0),
        lambda: sets.Box(0.0, np.inf),
        lambda: sets.Box([0.0, 0.0], [1.0, 1.0, 1.0]),
        lambda: sets.KSparse(0, 1.0),
        lambda: sets.KSparse(1.5, 1.0),
        lambda: sets.GroupL1Ball([0, 2], 1.0),
        lambda: sets.GroupL1Ball([[0, 1], [1, 2]], 1.0),
        lambda: sets.GroupL1Ball([], 1.0),
        lambda: sets.GroupL1Ball([[0], [], [1, 2]], 1.0),
        lambda: sets.Polytope([]),
        lambda: sets.Polytope([[np.nan, 0.0]]),
        lambda: sets.Product([]),
        lambda: sets.Product([(sets.L1Ball(1.0), 0)]),
        lambda: sets.Product([(sets.TraceNormBall(1.0), 4)]),
    ],
)
def test_impossible_sets_are_refused(make):
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize(
    ("constraint", "shape"),
    [
        (sets.TraceNormBall(1.0), (5,)),
        (sets.Spectrahedron(), (4, 5)),
        (sets.Birkhoff(), (4, 5)),
        (sets.Box([0.0, 0.0], [1.0, 1.0]), (3,)),
        (sets.GroupL1Ball([0, 0, 1], 1.0), (4,)),
        (sets.Polytope(np.eye(3)), (4,)),
        (sets.Product([(sets.L1Ball(1.0), 3)]), (4,)),
    ],
)
def test_shapes_that_do_not_fit_are_refused_naming_both(constraint, shape):
    for question in (constraint.check_shape, lambda s: constraint.contains(np.zeros(s))):
        with pytest.raises(ValueError) as error:
            question(shape)
        assert str(shape) in str(error.value)
        assert type(constraint).__name__ in str(error.value)
