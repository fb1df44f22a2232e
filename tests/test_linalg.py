"""Top singular pairs and inner products, against numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator, svds

from onlinefw.linalg import inner, top_singular_pair, vector_norm

MATRICES = {
    "tall": np.random.default_rng(1).standard_normal((300, 90)),
    "wide": np.random.default_rng(2).standard_normal((50, 400)),
    "row": np.random.default_rng(3).standard_normal((1, 700)),
    "column": np.random.default_rng(4).standard_normal((700, 1)),
    "rank one": np.outer(np.arange(1.0, 200.0), np.arange(1.0, 150.0)),
    "equal singular values": np.eye(130),
    "clustered": np.diag(np.concatenate(([1.0, 1.0 - 1e-6, 1.0 - 2e-6], np.full(150, 0.9)))),
    "zero": np.zeros((120, 110)),
    "slow to converge": np.diag(1.0 - 1e-3 * np.linspace(0.0, 1.0, 600) ** 2),
    "huge": 1e200 * np.random.default_rng(6).standard_normal((110, 120)),
    "tiny": 1e-200 * np.random.default_rng(5).standard_normal((110, 120)),
}


@pytest.mark.parametrize("name", list(MATRICES))
def test_top_singular_pair_agrees_with_lapack(name):
    matrix = MATRICES[name]
    expected = np.linalg.norm(matrix, 2)
    for kind in (np.asarray, sp.csr_array, aslinearoperator):
        u, s, v = top_singular_pair(kind(matrix))
        assert s == pytest.approx(expected, rel=1e-8, abs=0.0)
        assert np.linalg.norm(u) == pytest.approx(1.0)
        assert np.linalg.norm(v) == pytest.approx(1.0)
        assert u @ matrix @ v == pytest.approx(expected, rel=1e-8, abs=0.0)


def test_a_start_at_a_lower_singular_vector_does_not_mislead():
    matrix = np.diag(np.arange(1.0, 201.0))
    assert top_singular_pair(matrix, start=np.eye(200)[0])[1] == pytest.approx(200.0)


def test_a_matrix_with_nan_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        top_singular_pair(aslinearoperator(np.full((200, 200), np.nan)))


def test_two_backends_agree(rng):
    matrix = sp.random_array((400, 300), density=0.02, rng=rng)
    ours = top_singular_pair(matrix)[1]
    assert ours == pytest.approx(svds(matrix, k=1, return_singular_vectors=False)[0], rel=1e-9)


def test_a_good_start_saves_products(rng):
    matrix = rng.standard_normal((200, 150))
    count = [0, 0]

    def counted(slot):
        def product(x):
            count[slot] += 1
            return matrix @ x

        return sp.linalg.LinearOperator(
            matrix.shape, matvec=product, rmatvec=lambda x: matrix.T @ x, dtype=float
        )

    v = top_singular_pair(counted(0))[2]
    top_singular_pair(counted(1), start=v)
    assert count[1] < count[0] / 2


def test_inner_product_with_every_kind_of_direction(rng):
    point, direction = rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    expected = np.sum(point * direction)
    for kind in (np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array, aslinearoperator):
        assert inner(point, kind(direction)) == pytest.approx(expected)


def test_norm_survives_overflow_and_underflow():
    assert vector_norm(np.array([3e200, 4e200])) == pytest.approx(5e200)
    assert vector_norm(np.array([3e-200, 4e-200])) == pytest.approx(5e-200)
    assert vector_norm(np.zeros(3)) == 0.0
