"""Every set of the library with a shape it lives in, for tests that hold for all of them."""

import numpy as np

from onlinefw import sets

_VERTICES = np.random.default_rng(7).standard_normal((9, 4))

SETS = [
    (sets.L1Ball(2.0), (5,)),
    (sets.L1Ball(0.5), (3, 4)),
    (sets.L2Ball(1.5), (5,)),
    (sets.LinfBall(0.7), (5,)),
    (sets.LpBall(1, 2.0), (5,)),
    (sets.LpBall(1.5, 2.0), (5,)),
    (sets.LpBall(2, 2.0), (5,)),
    (sets.LpBall(3, 2.0), (5,)),
    (sets.LpBall(np.inf, 2.0), (5,)),
    (sets.Simplex(), (5,)),
    (sets.Simplex(3.0), (2, 3)),
    (sets.Box(-1.0, 2.0), (5,)),
    (sets.Box(np.array([0.5, -1.0, 0.0]), np.array([1.0, 3.0, 0.0])), (3,)),
    (sets.KSparse(2, 1.5), (5,)),
    (sets.KSparse(9, 1.5), (5,)),
    (sets.GroupL1Ball([0, 1, 0, 2, 1], 2.0), (5,)),
    (sets.GroupL1Ball([[0, 3], [1, 2, 4]], 2.0), (5,)),
    (sets.TraceNormBall(2.0), (4, 3)),
    (sets.TraceNormBall(1.0), (1, 6)),
    (sets.WeightedTraceNormBall(2.0, [1.0, 2.0, 0.5, 1.5], [1.0, 3.0, 0.2]), (4, 3)),
    (sets.Spectrahedron(2.0), (4, 4)),
    (sets.Birkhoff(), (4, 4)),
    (sets.Polytope(_VERTICES), (4,)),
    (sets.Polytope(_VERTICES.reshape(9, 2, 2)), (2, 2)),
    (sets.Product([(sets.L1Ball(1.0), 3), (sets.Simplex(2.0), 2)]), (5,)),
    (sets.Product([(sets.L2Ball(1.0), 2), (sets.Box(-1.0, 1.0), 2)]), (4,)),
]
POLYTOPES = [(c, s) for c, s in SETS if c.is_polytope]


def name(case):
    return str(case[0]).split("\n")[0][:40] + str(case[1]) if isinstance(case, tuple) else None


def feasible_points(constraint, shape, rng, count=20):
    """Random points of the set: convex combinations of its own vertices."""
    vertices = np.array([constraint.lmo(rng.standard_normal(shape)).dense() for _ in range(12)])
    weights = rng.dirichlet(np.full(12, 0.3), size=count)
    return np.tensordot(weights, vertices, axes=1)
