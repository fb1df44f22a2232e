"""Factors whose rows and columns real workers solve; more is tried in ``tests/factors``."""

import numpy as np
import pytest

from ...factors.places import assert_same, batches, follow, learner
from .killing import kill_before

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_batch_there_is_a_batch_here(workers):
    data = list(batches())
    here, spread = learner(), learner(workers=workers)
    np.testing.assert_allclose(follow(spread, data), follow(here, data), rtol=1e-9)
    for one in (here, spread):
        one.forget(3)
        one.refine()
    assert_same(spread, here)


def test_killed_workers_come_back():
    data = list(batches())
    here, spread = learner(), learner(workers=2)
    shards = spread.model.solver._shards
    kill_before(shards, {4, 11})
    np.testing.assert_allclose(follow(spread, data), follow(here, data), rtol=1e-9)
    assert shards.restarts >= 1
    assert_same(spread, here)
