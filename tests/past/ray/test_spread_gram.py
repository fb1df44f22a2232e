"""X'X added up by workers is that of one process, also after deaths."""

import numpy as np
import pytest
from scipy import sparse

from onlinefw.past.place import Place, new_gram
from onlinefw.past.ray.errors import ClusterLost

from .in_process import kill, ray_in_process

N = 5


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


def add(pasts, rng, kind="dense", n=4):
    X, w = rng.standard_normal((n, N)), rng.random(n)
    X = sparse.csr_array(X) if kind == "sparse" else X
    for past in pasts:
        past.add(past.bring(X), w)


def assert_same(one, other):
    v, chosen = np.arange(N) / N, np.array([1, 3])
    np.testing.assert_allclose(other.times(v), one.times(v))
    np.testing.assert_allclose(other.combine(chosen, v[:2]), one.combine(chosen, v[:2]))
    np.testing.assert_allclose(other.block(chosen), one.block(chosen))
    np.testing.assert_allclose(other.state_dict()["H"], one.state_dict()["H"])


@pytest.mark.parametrize("workers", [1, 3, 9])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_every_verb(workers, kind):
    rng, pasts = np.random.default_rng(0), [new_gram(Place(workers=n), N) for n in (None, workers)]
    assert_same(*pasts)
    for _ in range(5):
        add(pasts, rng, kind)
    assert_same(*pasts)
    for past in pasts:
        past.rescale(0.25)
    add(pasts, rng, kind)
    assert_same(*pasts)


def test_deaths_change_nothing_and_logs_stay_short():
    rng, pasts = np.random.default_rng(0), [new_gram(Place(workers=n), N) for n in (None, 2)]
    for k in range(60):
        add(pasts, rng)
        if k % 10 == 3:
            for past in pasts:
                past.rescale(0.5)
        if k % 7 == 0:
            kill(pasts[1].shards, k % 2)
            assert_same(*pasts)
    assert pasts[1].shards.restarts == 9
    assert max(pasts[1].log.sizes()) < 6 * 8 * N**2 + 2000


@pytest.mark.parametrize("after", [None, 2, 3])
def test_a_state_goes_on_anywhere(after, ray):
    rng, pasts = np.random.default_rng(0), [new_gram(Place(workers=n), N) for n in (None, 2)]
    for _ in range(5):
        add(pasts, rng)
    ray.shutdown()
    with pytest.raises(ClusterLost):
        add(pasts[1:], rng)
    state = pasts[1].state_dict()
    ray.init()
    new = new_gram(Place(workers=after), N)
    add([new], rng)  # is forgotten
    new.load_state(state)
    assert_same(pasts[0], new)
    add([pasts[0], new], rng)
    if after:
        kill(new.shards, 1)
    assert_same(pasts[0], new)
