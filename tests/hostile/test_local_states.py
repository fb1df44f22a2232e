"""Forged states of local corrections are refused before a kernel sees them: lists, models, ids."""

import copy
import functools

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.kernels.local_models import LONG

N = 3000


@functools.cache
def state_of(kind):
    """The state of a model that has learned; its first row is long enough for running sums."""
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(6, size=N), rng.integers(5, size=N)))
    X[: LONG + 200, 0] = 0
    weights = rng.random(N) + 0.5 if kind == "weights" else None
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(X.astype(object) if kind == "ids" else X, rng.standard_normal(N), weights)
    return model.state_dict()


def load(state):
    return ofw.FrankWolfeMatrixCompletion().load_state(state)


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


def models(name, forge, side=None):
    """Change a value of the models, or of one side of them."""

    def change(state):
        its = state["run"]["team"]["learners"][0]["corrective"]["state"]["models"]
        its = its if side is None else its[side]
        its[name] = forge(its[name])

    return change


def lists(name, forge, side="rows"):
    """Change a value of the lists."""

    def change(state):
        its = state["run"]["team"]["learners"][0]["objective"]["past"]["lists"][side]
        its[name] = forge(its[name])

    return change


def at(index, value):
    return lambda array: changed(array, index, value)


def other(value):
    return lambda _: value


def longer(array):
    return np.concatenate((array, array[:1]))


def shorter(array):
    return array[:-1]


def as_type(dtype):
    return lambda array: array.astype(dtype)


LISTS = {
    "a negative length": lists("length", lambda x: changed(changed(x, 0, -1), 1, x[:2].sum() + 1)),
    "lengths that add up after an overflow": lists(
        "length", lambda x: np.array([2**62] * 3 + [2**62 + N, 0, 0])
    ),
    "a length too large": lists("length", at(0, 10**12)),
    "a length that another list lacks": lists("length", lambda x: x[::-1].copy()),
    "a list too many": lists("length", longer),
    "a list too few": lists("length", shorter),
    "lengths that are no whole numbers": lists("length", as_type(float)),
    "a column beyond the matrix": lists("other", at(7, 5)),
    "the largest column": lists("other", at(7, 2**32 - 1)),
    "a row beyond the matrix": lists("other", at(7, 6), "columns"),
    "another column": lists("other", lambda x: changed(x, 7, (x[7] + 1) % 5)),
    "columns that may be negative": lists("other", as_type(np.int32)),
    "an entry too many": lists("other", longer),
    "a value too few": lists("value", shorter),
    "a value that is no number": lists("value", at(0, np.nan)),
    "an infinite value": lists("value", at(0, np.inf), "columns"),
    "values of another type": lists("value", as_type(np.float64)),
    "values in two dimensions": lists("value", lambda x: x[:, None]),
    "weights of one side": lists("weight", other(np.ones(N, np.float32))),
    "weights of some entries": lists("weight", other(np.ones(N - 1, np.float32))),
    "no array": lists("other", other([0] * N)),
    "lists that are missing": lists("length", other(None)),
}
MODELS = {
    "no rank": models("rank", other(0)),
    "a rank beyond all reason": models("rank", other(10**6)),
    "another rank": models("rank", other(30)),
    "a rank that is text": models("rank", other("14")),
    "another shape": models("shape", other([7, 5])),
    "a negative shape": models("shape", other([-6, 5])),
    "a shape in one dimension": models("shape", other([6])),
    "a check in the past": models("check_at", other(10)),
    "another number of observations": models("n_observations", other(N + 1)),
    "another loss": models("loss", other([2, 1.0])),
    "another precision": models("dtype", other("float64")),
    "a precision that is none": models("dtype", other("int8")),
    "moments that are no numbers": models("moments", at(1, np.nan)),
    "a negative weight of all": models("moments", at(0, -1.0)),
    "moments too few": models("moments", shorter),
    "a turn beyond the rows": models("turns", at(1, 6)),
    "a last row beyond the rows": models("turns", at(3, 10**9)),
    "a last column beyond the columns": models("turns", at(4, 5)),
    "a turn before the first": models("turns", at(2, -2)),
    "a negative number of events": models("turns", at(0, -1)),
    "turns too few": models("turns", shorter),
    "a negative ridge": models("ridges", at((0, 0), -1.0)),
    "no ridge": models("ridges", lambda x: x[:0]),
    "a ridge too many": models("ridges", longer),
    "weights of fewer models": models("weights", shorter, "mixture"),
    "a mixture that is no number": models("spread", at((0, 0), np.nan), "mixture"),
    "a mixture of fewer models": models("spread", lambda x: x[:-1, :-1], "mixture"),
    "factors of fewer rows": models("factors", shorter, "rows"),
    "narrow factors": models("factors", lambda x: x[:, :-1], "rows"),
    "infinite factors": models("factors", at((0, 0), np.inf), "columns"),
    "offsets of fewer columns": models("offsets", shorter, "columns"),
    "memories of more rows": models("memory", longer, "rows"),
    "a place that is not there": models("place", at(0, 10**9), "rows"),
    "a negative place": models("place", at(0, -1), "rows"),
    "a place that is taken": models("place", at(1, 1), "rows"),
    "a place that nobody has": models("place", lambda x: 0 * x, "rows"),
    "places of fewer rows": models("place", shorter, "rows"),
    "more added than there is": models("added", at((0, 0), 10**6), "rows"),
    "more being made than there is": models("added", at((0, 1), 10**6), "rows"),
    "less than nothing added": models("added", at((0, 0), -1), "rows"),
    "equations of fewer lists": models("equations", shorter, "rows"),
    "narrow equations": models("equations", lambda x: x[..., :-1], "rows"),
    "equations that are no numbers": models("equations", at((0, 0, 0, 0, 0), np.nan), "rows"),
    "models that are missing": models("rows", other(None)),
}


@pytest.mark.parametrize("what", [*LISTS, *MODELS])
def test_local_corrections_with(what):
    state = copy.deepcopy(state_of("plain"))
    load(copy.deepcopy(state))
    {**LISTS, **MODELS}[what](state)
    with pytest.raises((ValueError, TypeError)):
        load(state)


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_weights_of_entries_are_not_negative(side):
    state = copy.deepcopy(state_of("weights"))
    load(copy.deepcopy(state))
    lists("weight", at(3, -1.0), side)(state)
    with pytest.raises(ValueError, match="negative"):
        load(state)


@pytest.mark.parametrize("observations", [-1, 0, 0.5, np.inf, "3000", None, [3000]])
def test_a_number_of_observations_that_is_none(observations):
    state = copy.deepcopy(state_of("plain"))
    state["run"]["team"]["learners"][0]["objective"]["past"]["counts"][0] = observations
    with pytest.raises(ValueError, match=r"observations|whole number|damaged"):
        load(state)


def test_a_number_of_observations_is_whole_after_loading():
    state = copy.deepcopy(state_of("plain"))
    state["run"]["team"]["learners"][0]["objective"]["past"]["counts"][0] = float(N)
    model = load(state)
    assert type(model.objective_.n_observations) is int
    assert np.isfinite(model.gap_)


def test_more_ids_than_rows_are_refused():
    state = copy.deepcopy(state_of("ids"))
    ids = state["run"]["ids"]["columns"]
    (name,) = [name for name in ids if isinstance(ids[name], np.ndarray)]
    ids[name] = np.concatenate((ids[name], [77]))
    with pytest.raises(ValueError, match="6 column ids for 5 columns"):
        load(state)
    ids[name] = np.zeros(5, np.int64)
    with pytest.raises(ValueError, match=r"twice|differ"):
        load(state)


def test_a_rank_that_no_file_can_hold_is_refused_at_once():
    with pytest.raises(ValueError, match="at most 1000"):
        ofw.LocalRidge(1001)
    ofw.LocalRidge(1000)
