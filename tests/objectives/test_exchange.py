"""Theta moves along a pair of atoms, with everything that depends on it."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlinefw.atoms import DenseAtom, SparseAtom, sparse_difference
from onlinefw.losses import Logistic, Square
from onlinefw.objectives import LinearObjective, RunningLeastSquares
from onlinefw.sets import Box, KSparse, L1Ball

from ..pairs import every_pair

OBJECTIVES = {
    "rows": lambda loss: LinearObjective(loss),
    "rows, intercept": lambda loss: LinearObjective(loss, fit_intercept=True),
    "recent": lambda loss: LinearObjective(loss, past="recent", max_past=25),
    "sums": lambda loss: RunningLeastSquares(8),
    "sums, intercept": lambda loss: RunningLeastSquares(8, fit_intercept=True),
}
#: Sets with atoms of each kind: signed coordinates, sparse and dense ones.
KINDS = {"coordinates": L1Ball(2.0), "sparse": KSparse(3, 1.0), "dense": Box(-1.0, 1.0)}


@pytest.mark.parametrize(
    ("which", "atoms", "loss", "kind", "is_searched"),
    every_pair(
        [*OBJECTIVES],
        [*KINDS],
        [Square(), Logistic()],
        [np.asarray, sp.csr_array],
        [False, True],
    ),
)
def test_exchanges_and_their_lines_equal_dense_algebra(which, atoms, loss, kind, is_searched, rng):
    objective = OBJECTIVES[which](loss)
    loss = objective.loss
    X = rng.standard_normal((40, 8))
    y = rng.choice([-1.0, 1.0], 40)
    theta = np.zeros(8)
    for part in (slice(0, 30), slice(30, 40)):
        objective.observe(kind(X[part]), y[part])
        for _ in range(5):
            new, old = (KINDS[atoms].lmo(rng.standard_normal(8)) for _ in range(2))
            d, c = new.dense() - old.dense(), rng.random()
            if is_searched:
                line, b = objective.exchange_line(new, old), objective.intercept
                kept = np.arange(part.stop)[-25:] if which == "recent" else np.arange(part.stop)
                for at in (0.0, c):
                    z = X[kept] @ (theta + at * d)
                    if which != "sums, intercept":  # there the intercept goes along
                        assert line.value(at) == pytest.approx(np.mean(loss.value(z + b, y[kept])))
                        slope = np.mean(loss.derivative(z + b, y[kept]) * (X[kept] @ d))
                        assert line.slope(at) == pytest.approx(slope, abs=1e-12)
            objective.exchange(new, old, c)
            theta = theta + c * d
            np.testing.assert_allclose(objective.theta, theta, atol=1e-13)
            if which == "sums, intercept" and is_searched:  # F with the best intercept
                assert line.value(c) == pytest.approx(objective.value())
            fresh = OBJECTIVES[which](loss)
            for some in (slice(0, 30), slice(30, 40))[: 1 + (part.start > 0)]:
                fresh.observe(kind(X[some]), y[some])
            fresh.put(theta)
            np.testing.assert_allclose(objective.gradient(), fresh.gradient(), atol=1e-12)
            assert objective.value() == pytest.approx(fresh.value(), abs=1e-12)


def test_an_exchange_of_vertices_that_share_coordinates(rng):
    objective = LinearObjective(Square())
    objective.observe(X := rng.standard_normal((9, 4)), rng.standard_normal(9))
    new = SparseAtom([0, 1, 2], [1.0, 2.0, 3.0], (4,))
    for old in (SparseAtom([2, 1, 3], [5.0, 2.0, 1.0], (4,)), L1Ball(2.0).lmo(np.ones(4)), new):
        before = objective.theta
        objective.exchange(new, old, 0.5)
        expected = before + 0.5 * (new.dense() - old.dense())
        np.testing.assert_allclose(objective.theta, expected, atol=1e-15)
        np.testing.assert_allclose(objective.predictions(), X @ expected, atol=1e-14)
    objective.exchange(new, DenseAtom(np.ones(4)), 0.5)
    np.testing.assert_allclose(objective.predictions(), X @ objective.theta, atol=1e-14)


def test_a_difference_is_sparse_if_both_atoms_are(rng):
    coordinate, sparse, dense = (kind.lmo(rng.standard_normal(8)) for kind in KINDS.values())
    opposite = L1Ball(2.0).lmo(coordinate.dense())
    for new, old in [(coordinate, sparse), (sparse, coordinate), (coordinate, opposite)]:
        out = np.zeros(8)
        positions, values = sparse_difference(new, old)
        out[positions] += values
        assert len(set(positions.tolist())) == positions.size
        np.testing.assert_array_equal(out, new.dense() - old.dense())
    assert sparse_difference(coordinate, dense) is sparse_difference(dense, sparse) is None
