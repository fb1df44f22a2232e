"""Rows that have ids, and leave with them."""

import numpy as np
import pytest

from onlinefw.losses import Square
from onlinefw.objectives.kept_rows import KeptRows
from onlinefw.objectives.row_ids import RowIds


def objects(*ids):
    return np.array(ids, dtype=object)


def test_ids_follow_their_rows_and_leave_with_the_last_of_them():
    ids = RowIds(2)
    ids.append(objects("ann", "bob", None, "ann"), 4)
    ids.append(None, 1)
    assert ids.all.tolist() == [None, None, "ann", "bob", None, "ann", None]
    ids.keep(np.array([True, False, False, True, True, True, True]))
    assert ids.all.tolist() == [None, "bob", None, "ann", None]
    ids.keep(np.array([True, False, True, True, True]))
    assert "bob" not in ids and "ann" in ids
    ids.append(objects("eve", "bob"), 2)
    assert ids.all.tolist() == [None, None, "ann", None, "eve", "bob"]
    assert ids.rows_of(["bob", "ann", "nobody"]).tolist() == [
        False,
        False,
        True,
        False,
        False,
        True,
    ]
    ids.keep(np.zeros(6, bool))
    assert ids.all.size == 0 and ids.kind is None


@pytest.mark.parametrize("names", [("a\0", "", "\ud800"), (-5, 2**62, 0), ()])
def test_a_state_has_them_all(names):
    ids = RowIds(1)
    ids.append(objects(*names, *names), 2 * len(names))
    again = RowIds.from_state(ids.state_dict(), 1 + 2 * len(names))
    assert again.all.tolist() == ids.all.tolist() == [None, *names, *names]
    assert again.kind is ids.kind


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": np.array([0, 1, 2])},
        {"rows": np.array([0, -2])},
        {"rows": np.array([0])},
        {"ids": np.array([7, 7])},
        {"ids": np.array([7.0, 8.0])},
        {"kind": "str"},
    ],
)
def test_an_impossible_state_is_refused(wrong):
    state = RowIds.of(objects(7, 8)).state_dict()
    with pytest.raises(ValueError, match=r"id|state"):
        RowIds.from_state({**state, **wrong}, 2)


# Samples ------------------------------------------------------------------------------------------

N, LEAVES_AT = 60, 40


def sample_without(seed, size, gone, half_life=None, n=N):
    """Sample rows 1, 2, ..., n; those in ``gone`` leave when 40 have come."""
    kept = KeptRows("reservoir", size, seed, half_life=half_life)
    kept.past.add_model(Square(), None, False)
    X, ids = np.arange(1.0, n + 1)[:, None], objects(*["others"] * n)
    ids[gone] = "leaves"
    for part in (slice(0, LEAVES_AT), slice(LEAVES_AT, n)):
        x = X[part]
        kept.append(x, np.zeros_like(x), x, np.ones(len(x)), ids[part])
        if part.stop == LEAVES_AT:
            kept.forget(["leaves"])
    return kept


def test_later_rows_have_no_better_chance_because_somebody_has_left():
    counts, size, gone, runs = np.zeros(N), 20, slice(10, 25), 1000
    for seed in range(runs):
        state = sample_without(seed, size, gone).past.state_dict()
        counts[(state["rows"]["data"][:, 0][state["w"] > 0.0] - 1).astype(int)] += 1
    assert not counts[gone].any()
    late, early = (
        counts[LEAVES_AT:].mean() / runs,
        np.delete(counts[:LEAVES_AT], gone).mean() / runs,
    )
    assert late == pytest.approx(size / N, abs=0.015)  # four standard errors: 0.013
    assert early == pytest.approx(size / N, abs=0.015)


@pytest.mark.parametrize("n", [45, N])  # while it has free places, and when it is full again
def test_a_fading_sample_estimates_without_bias_when_somebody_has_left(n):
    half_life, gone, runs = 100.0, slice(10, 30), 800
    d = 2.0 ** (np.arange(1, n + 1) / half_life)
    d[gone] = 0.0
    found = [sample_without(seed, 12, gone, half_life, n).total_weight for seed in range(runs)]
    assert abs(np.mean(found) - d.sum()) < 4.0 * np.std(found) / np.sqrt(runs)


def test_a_sample_with_empty_places_is_saved():
    kept = sample_without(0, 20, slice(10, 25))
    again = KeptRows("reservoir", 20, 1)
    again.past.add_model(Square(), None, False)
    state = kept.state_dict()
    again.load_state(state)
    for one in (kept, again):
        x = np.arange(100.0)[:, None]
        one.append(x, np.zeros_like(x), x, np.ones(100))
    np.testing.assert_array_equal(again.state_dict()["slots"], kept.state_dict()["slots"])
    with pytest.raises(ValueError, match="places for other rows"):
        again.load_state({**state, "slots": np.where(state["slots"] < 0, -2, state["slots"])})
