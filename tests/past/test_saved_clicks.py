"""What a model file keeps of clicks: enough to recommend, and refused if it is damaged."""

import copy

import numpy as np
import pytest

from onlinefw.past.host.click_models import ClickModels
from onlinefw.past.host.entry_lists import EntryLists
from onlinefw.past.saved_clicks import clicks_from_state, clicks_state


@pytest.fixture
def models(rng):
    models = ClickModels(EntryLists((9, 7), np.dtype(float)), 3, [[1.0, 0.02, 1.0]], False, False)
    models.unobserved = 0.2
    models.learn(rng.integers(9, size=80), rng.integers(7, size=80), np.ones(80))
    return models


def test_it_recommends_the_same(models):
    loaded, rows = clicks_from_state(clicks_state(models)), np.arange(9)
    assert np.array_equal(loaded.scores(rows), models.scores(rows))
    columns = np.array([3, 1])
    assert np.array_equal(loaded.taste_of(columns), models.taste_of(columns))


@pytest.mark.parametrize("share", [0, 4, 8])
def test_the_parts_of_a_taste_add_up_to_it(models, share):
    models.wins[:] = 0.0
    models.wins[share] = 1.0
    columns, weights = np.array([3, 1, 5, 0]), np.array([1.0, 3.0, 0.5, 1.0])
    parts = models.taste_parts(columns, weights)
    assert np.allclose(parts.sum(axis=0), models.taste_of(columns, weights), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("length", lambda x: x[:-1]),
        ("length", lambda x: x - 1),
        ("columns", lambda x: x + np.uint32(7)),
        ("columns", lambda x: x.astype(float)),
        ("weights", lambda x: x[:-1]),
        ("weights", lambda x: np.nan * x),
        ("weights", lambda x: -x),
    ],
)
def test_damaged_lists_are_refused(models, name, damage):
    state = copy.deepcopy(clicks_state(models))
    state["rows"][name] = damage(state["rows"][name])
    with pytest.raises(ValueError, match="damaged"):
        clicks_from_state(state)


def test_models_of_values_are_refused(models):
    state = clicks_state(models)
    state["models"] = {**state["models"], "clicks": None}
    with pytest.raises(ValueError, match="not of clicks"):
        clicks_from_state(state)
