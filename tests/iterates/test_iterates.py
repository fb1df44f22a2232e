"""Iterates and the active set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.atoms import DenseAtom, RankOne, SignedCoordinate
from onlinefw.iterates import ActiveSet, DenseIterate, LowRank, iterate_from_state


def random_rank_one(rng, shape=(6, 9), scale=2.0):
    return RankOne(rng.standard_normal(shape[0]), scale, rng.standard_normal(shape[1]))


def test_low_rank_moves_as_a_dense_matrix_does(rng):
    theta, dense = LowRank((6, 9)), np.zeros((6, 9))
    for t in range(1, 60):  # many more atoms than the rank: recompressed several times
        atom, step = random_rank_one(rng), 2 / (t + 1)
        theta.move(atom, step)
        dense = (1 - step) * dense + step * atom.dense()
        np.testing.assert_allclose(theta.dense(), dense, atol=1e-11)
        assert theta.n_atoms <= theta.max_atoms
    g, u, v = rng.standard_normal((6, 9)), rng.standard_normal(6), rng.standard_normal(9)
    assert theta.dot(g) == pytest.approx(np.sum(dense * g))
    np.testing.assert_allclose(theta.matvec(v), dense @ v)
    np.testing.assert_allclose(theta.rmatvec(u), dense.T @ u)
    np.testing.assert_allclose(theta.as_operator() @ v, dense @ v)
    np.testing.assert_allclose(theta.entries([0, 5, 2], [8, 0, 2]), dense[[0, 5, 2], [8, 0, 2]])
    np.testing.assert_allclose(np.asarray(theta), dense)


def test_low_rank_memory_is_bounded(rng):
    theta = LowRank((50, 4))
    for t in range(1, 400):
        theta.move(random_rank_one(rng, (50, 4)), 2 / (t + 1))
    assert theta.n_atoms <= 8
    theta.recompress()
    assert theta.n_atoms <= 4


def test_a_limit_below_the_rank_loses_nothing(rng):
    theta, dense = LowRank((8, 9), max_atoms=3), np.zeros((8, 9))
    for t in range(1, 40):
        atom = random_rank_one(rng, (8, 9))
        theta.move(atom, 2 / (t + 1))
        dense += 2 / (t + 1) * (atom.dense() - dense)
    np.testing.assert_allclose(theta.dense(), dense, atol=1e-11)
    assert theta.squared_norm() == pytest.approx(np.sum(dense**2))


def test_a_full_step_leaves_only_the_atom(rng):
    theta = LowRank((6, 9))
    theta.move(random_rank_one(rng), 0.5)
    last = random_rank_one(rng)
    theta.move(last, 1.0)
    assert theta.n_atoms == 1
    np.testing.assert_allclose(theta.dense(), last.dense())


def test_a_copy_is_independent(rng):
    theta = LowRank((6, 9))
    theta.move(random_rank_one(rng), 1.0)
    copy = theta.copy()
    before = copy.dense()
    theta.move(random_rank_one(rng), 0.5)
    np.testing.assert_array_equal(copy.dense(), before)


def test_low_rank_refuses_other_atoms():
    with pytest.raises(TypeError, match="RankOne"):
        LowRank((2, 2)).move(DenseAtom(np.eye(2)), 0.5)


def test_a_theta_that_was_kept_does_not_change():
    iterate = DenseIterate((2,))
    kept = iterate.theta
    iterate.move(SignedCoordinate(0, 1.0, (2,)), 0.5)
    np.testing.assert_array_equal(kept, [0.0, 0.0])
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1.0


def test_iterates_come_back_from_their_state(rng):
    theta = LowRank((6, 9))
    theta.move(random_rank_one(rng), 0.5)
    dense = DenseIterate((2,))
    dense.move(SignedCoordinate(0, 1.0, (2,)), 0.5)
    for iterate in (theta, dense):
        copy = iterate_from_state(iterate.state_dict())
        np.testing.assert_array_equal(np.asarray(copy.theta), np.asarray(iterate.theta))
    with pytest.raises(ValueError, match="Cloud"):
        iterate_from_state({"kind": "Cloud"})


# The active set ----------------------------------------------------------------------------------


def eighths():
    active = ActiveSet()
    for k, weight in enumerate((1 / 8, 1 / 8, 3 / 4)):
        active._append(SignedCoordinate(k, 1.0, (3,)), weight)
    return active


def test_a_full_away_step_drops_the_atom():
    active = eighths()
    assert active.max_away_step(2) == 3.0
    active.drop(2)
    np.testing.assert_array_equal(active.weights, [1 / 2, 1 / 2])
    assert [atom.index for atom in active.atoms] == [0, 1]


def test_half_an_away_step():
    active = eighths()
    active.away(2, 1.5)
    np.testing.assert_array_equal(active.weights, [5 / 16, 5 / 16, 3 / 8])


def test_a_step_of_exactly_the_largest_length_leaves_no_ghost():
    active = eighths()
    active.away(2, 3.0)
    assert len(active) == 2


def test_an_atom_already_active_gains_weight():
    active = eighths()
    active.toward(SignedCoordinate(0, 1.0, (3,)), 0.5)
    np.testing.assert_array_equal(active.weights, [9 / 16, 1 / 16, 3 / 8])
    active.toward(SignedCoordinate(0, -1.0, (3,)), 0.5)  # the opposite vertex is another atom
    assert len(active) == 4


def test_an_exchange_changes_two_weights():
    active = ActiveSet()
    a, b, c = (SignedCoordinate(j, 1.0, (3,)) for j in range(3))
    active.toward(a, 1.0)
    active.toward(b, 0.25)
    assert active.exchange(0, c, 0.5) is False
    assert dict(zip([atom.index for atom in active.atoms], active.weights, strict=True)) == {
        0: 0.25, 1: 0.25, 2: 0.5,
    }  # fmt: skip
    assert active.exchange(0, b, 0.25) is True  # all that it has
    assert a not in active and b in active and len(active) == 2
    assert active.exchange(0, SignedCoordinate(0, -1.0, (3,)), 0.0) is False
    active.toward(a, 0.0)
    assert len(active) == 2  # no atom without weight
    np.testing.assert_array_equal(active.combination((3,)), [0.0, 0.5, 0.5])


def test_the_last_atom_has_no_longest_step():
    active = ActiveSet()
    active.toward(SignedCoordinate(0, 1.0, (3,)), 1.0)
    assert active.max_away_step(0) == np.inf
    active.away(0, 0.7)
    np.testing.assert_allclose(active.weights, [1.0])


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0.01, 0.99), st.booleans()), max_size=60))
def test_any_steps_leave_positive_weights_that_sum_to_one(moves):
    active, theta = ActiveSet(), np.zeros(5)
    active.toward(SignedCoordinate(0, 1.0, (5,)), 1.0)
    theta[0] = 1.0
    for which, length, away in moves:
        if away:
            k = which % len(active)
            step = min(length, active.max_away_step(k))
            atom = active.atoms[k].dense()
            theta = theta + step * (theta - atom)
            if step == active.max_away_step(k):
                active.drop(k)
            else:
                active.away(k, step)
        else:
            atom = SignedCoordinate(which % 5, 1.0 if which < 5 else -1.0, (5,))
            theta = theta + length * (atom.dense() - theta)
            active.toward(atom, length)
        assert (active.weights > 0).all()
        assert active.weights.sum() == pytest.approx(1.0, abs=1e-9)
        assert len({atom.key for atom in active.atoms}) == len(active)
        np.testing.assert_allclose(active.combination((5,)), theta, atol=1e-8)


def test_scores_are_inner_products_for_any_kind_of_atom(rng):
    g = rng.standard_normal(3)
    active = eighths()
    np.testing.assert_allclose(active.scores(g), g)
    active.toward(DenseAtom(np.ones(3)), 0.5)
    np.testing.assert_allclose(active.scores(g), [*g, g.sum()])
    assert active.dot(active.scores(g)) == pytest.approx(active.combination((3,)) @ g)


def test_the_active_set_comes_back_from_its_state(rng):
    active = eighths()
    active.drop(0)
    copy = ActiveSet.from_state(active.state_dict())
    np.testing.assert_array_equal(copy.weights, active.weights)
    assert [a.key for a in copy.atoms] == [a.key for a in active.atoms]
    active.toward(SignedCoordinate(2, 1.0, (3,)), 0.5)
    copy.toward(SignedCoordinate(2, 1.0, (3,)), 0.5)
    np.testing.assert_array_equal(copy.weights, active.weights)


def test_low_rank_blocks_and_placing_equal_dense_algebra(rng):
    left, right = rng.standard_normal((6, 3)), rng.standard_normal((5, 3))
    weights = np.array([2.0, -1.0, 0.5])
    dense = (left * weights) @ right.T
    theta = LowRank((6, 5))
    theta.put(left, weights, right)
    np.testing.assert_allclose(theta.dense(), dense)
    operator, v, u = theta.as_operator(), rng.standard_normal((5, 2)), rng.standard_normal((6, 2))
    np.testing.assert_allclose(operator @ v, dense @ v)
    np.testing.assert_allclose(operator.T @ u, dense.T @ u)
    theta.put(theta.left, theta.weights, theta.right)  # where it is already
    np.testing.assert_allclose(theta.dense(), dense)
    small = LowRank((6, 5), 2, max_rank=1)
    small.put(left, weights, right)
    top = np.linalg.svd(dense)
    np.testing.assert_allclose(small.dense(), top[1][0] * np.outer(top[0][:, 0], top[2][0]))


@pytest.mark.parametrize(("max_rank", "changes"), [(None, 0), (3, 0), (2, 1)])
def test_recompression_counts_as_a_change_if_it_leaves_something_out(max_rank, changes, rng):
    theta = LowRank((6, 5), 4, max_rank=max_rank)
    left, right = rng.standard_normal((6, 3)), rng.standard_normal((5, 3))
    theta.put(left, np.ones(3), right)
    before, version = theta.dense(), theta.version
    theta.recompress()
    assert theta.version == version + changes
    assert np.allclose(theta.dense(), before) == (changes == 0)


def test_entries_outside_the_matrix_are_refused(rng):
    theta = LowRank.from_factors(rng.standard_normal((6, 2)), np.ones(2), np.ones((4, 2)))
    for rows, cols, words in (
        ([0, 6], [0, 0], "6 rows, but row 6"),
        ([0], [4], "4 columns, but column 4"),
        ([-1], [0], "row -1"),
    ):
        with pytest.raises(IndexError, match=words):
            theta.entries(rows, cols)
    assert theta.entries(np.empty(0, int), np.empty(0, int)).size == 0
