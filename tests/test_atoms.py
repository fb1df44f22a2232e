"""Atoms behave as their dense form does."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlinefw.atoms import (
    DenseAtom,
    RankOne,
    SignedCoordinate,
    SparseAtom,
    as_atom,
    atom_from_state,
)
from onlinefw.past.host.dense_rows import DenseRows
from onlinefw.past.host.sparse_rows import SparseRows

ATOMS = [
    SignedCoordinate(7, -2.0, (3, 4)),
    SparseAtom([1, 5, 11], [1.0, -2.0, 0.5], (3, 4)),
    RankOne(np.array([1.0, -2.0, 0.5]), 3.0, np.array([0.1, 0.2, 0.0, -1.0])),
    DenseAtom(np.arange(12.0).reshape(3, 4)),
]
every_atom = pytest.mark.parametrize("atom", ATOMS, ids=lambda a: type(a).__name__)


@every_atom
def test_inner_products(atom, rng):
    g = rng.standard_normal((3, 4))
    expected = np.sum(atom.dense() * g)
    assert atom.dot(g) == pytest.approx(expected)
    assert atom.dot(sp.csr_array(g)) == pytest.approx(expected)
    assert atom.dot(sp.coo_matrix(g)) == pytest.approx(expected)


@every_atom
def test_dense_forms_agree(atom):
    np.testing.assert_array_equal(atom.dense(), atom.toarray())
    np.testing.assert_array_equal(atom.dense(), np.asarray(atom))
    assert atom.dense().shape == atom.shape == (3, 4)
    assert np.asarray(atom, dtype=np.float32).dtype == np.float32


@every_atom
def test_adding_in_place(atom, rng):
    start = rng.standard_normal((3, 4))
    out = start.copy()
    atom.add_to(out, -0.3)
    np.testing.assert_allclose(out, start - 0.3 * atom.dense())


@every_atom
@pytest.mark.parametrize("kind", [DenseRows, SparseRows])
def test_image_of_stored_rows(atom, kind, rng):
    X = rng.standard_normal((9, 12)) * (rng.random((9, 12)) < 0.5)
    rows = kind((3, 4))
    rows = rows.extended(sp.csr_array(X[:5]))
    rows = rows.extended(sp.csr_array(X[5:]))
    np.testing.assert_allclose(atom.image(rows), X @ atom.dense().ravel(), atol=1e-12)


@every_atom
def test_state_makes_an_equal_atom(atom):
    copy = atom_from_state(atom.state_dict())
    assert type(copy) is type(atom)
    assert copy.key == atom.key
    np.testing.assert_array_equal(copy.dense(), atom.dense())


def test_keys_tell_vertices_apart():
    assert SignedCoordinate(1, 2.0, (3,)).key == SignedCoordinate(1, 2.0, (3,)).key
    assert SignedCoordinate(1, 2.0, (3,)).key != SignedCoordinate(1, -2.0, (3,)).key
    assert DenseAtom(np.ones(2), key=4).key == 4
    assert DenseAtom(np.ones(2)).key == DenseAtom(np.ones(2)).key


def test_a_plain_array_becomes_a_dense_atom():
    assert as_atom([1, 2], (2,)).dot(np.array([1.0, 1.0])) == 3.0
    assert as_atom(ATOMS[0], (3, 4)) is ATOMS[0]
    for wrong in ([1, 2, 3], [1, np.nan]):
        with pytest.raises(ValueError, match=r"vertex of shape \(2,\)"):
            as_atom(wrong, (2,))


def test_an_unknown_kind_in_a_state_is_refused():
    with pytest.raises(ValueError, match="Wave"):
        atom_from_state({"kind": "Wave"})
