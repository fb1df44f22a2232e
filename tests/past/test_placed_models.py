"""Models whose entries are elsewhere learn what models here learn."""

import sys

import numpy as np
import pytest

from onlinefw import _devices
from onlinefw.iterates import LowRank
from onlinefw.losses import Square
from onlinefw.past.host.entry_lists import EntryLists
from onlinefw.past.host.listed_entries import ListedEntries
from onlinefw.past.host.local_models import LocalModels
from onlinefw.past.place import models_for
from onlinefw.past.placed_models import PlacedModels
from onlinefw.past.some_regressions import Other

from .cuda import fake_cupy
from .local_problems import batches

RIDGES = [(10.0, 0.02, 8.0), (2.0, 0.1, 8.0)]


@pytest.fixture
def cupy(monkeypatch):
    module = fake_cupy.make()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


class OnDevice(ListedEntries):
    """Takes and returns arrays of a device that stands in for one."""

    def solve_some(self, of_rows, which, other, mean, ridges):
        sides = (x.array for x in other[1:])  # a numpy array has no such thing
        found = super().solve_some(of_rows, which, Other(other.rank, *sides), mean, ridges)
        return self.theta._xp.asarray(found)


def past_of(kind, xp=np):
    theta = LowRank((1, 1))
    theta._xp = xp
    return kind(theta, float, Square())


def follow(models, past, data, sweeps=1):
    found = []
    for X, y, w in data:
        shape = np.maximum(X.max(axis=0) + 1, models.shape)
        if past is not None:
            past.grow(*shape)
        else:
            models.lists.grow(*shape)
        models.grow(*shape)
        rows, cols = (np.ascontiguousarray(x) for x in X.T)
        found.append(models.learn(rows, cols, y, w, solving=False))
        models.solve(np.unique(rows), np.unique(cols))
    for _ in range(sweeps):
        models.sweep()
    return np.concatenate(found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("device", [False, True])
def test_batches_and_sweeps(cupy, weighted, device):
    data, options = list(batches(weighted=weighted)), (3, RIDGES, True, False)
    here = LocalModels(EntryLists((1, 1), np.dtype(float)), *options)
    expected = follow(here, None, data)
    past = past_of(OnDevice, cupy) if device else past_of(ListedEntries)
    there = PlacedModels(past, *options)
    np.testing.assert_allclose(follow(there, past, data), expected, rtol=1e-9, atol=1e-9)
    for one, other in zip(there.factors(), here.factors(), strict=True):
        np.testing.assert_allclose(_devices.to_host(one), other, atol=1e-9)
    for side, other in zip(there._sides(), there._there(), strict=True):
        for part in ("factors", "offsets"):  # the copy is that of what is here
            found = _devices.to_host(getattr(other, part))
            np.testing.assert_array_equal(found, getattr(side, part))
    X = np.indices(here.shape).reshape(2, -1)
    np.testing.assert_allclose(there.predict(*X), here.predict(*X), atol=1e-9)
    assert there.mean == here.mean and there.sigma == here.sigma
    assert there.n_observations == here.n_observations


def test_long_lists_are_read_anew_where_a_batch_brings_many_of_their_entries():
    """Elsewhere there are no running sums; in them factors are older than the batch."""
    data, options = list(batches(12, 400, shape=(4, 3))), (2, RIDGES, True, False)
    here = LocalModels(EntryLists((1, 1), np.dtype(float)), *options)
    past = past_of(ListedEntries)
    there = PlacedModels(past, *options)
    for k, batch in enumerate(data):
        found = [follow(one, its, [batch], 0) for one, its in ((there, past), (here, None))]
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9, err_msg=f"batch {k}")
    assert here.models.row_sums.used[0] > 0  # some rows are long


def test_models_follow_their_entries():
    past, data = past_of(ListedEntries), list(batches(3))
    models = PlacedModels(past, 3, RIDGES, True, False)
    follow(models, past, data)
    state = models.state_dict()
    here = models_for(models, past)  # it has lists: they are used
    assert type(here) is LocalModels and here.lists is past.lists
    assert models_for(here, past) is here
    again = models_for(PlacedModels.from_state(here.state_dict()), past)
    np.testing.assert_array_equal(again.state_dict()["rows"]["factors"], state["rows"]["factors"])
    other = past_of(ListedEntries)
    with pytest.raises(ValueError, match="do not fit"):
        models_for(PlacedModels.from_state(state), other)
    with pytest.raises(ValueError, match="do not fit"):
        PlacedModels.from_state(state).use_past(other)
