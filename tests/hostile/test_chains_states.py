"""Forged states of chains are refused before a loop sees them: lists, models, ids."""

import copy
import functools

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.factors.chains import LONG

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
        its = state["run"]["factors"]["model"]
        its = its if side is None else its["sides"][side]
        its[name] = forge(its[name])

    return change


def lists(name, forge, side="rows"):
    """Change a value of the lists."""

    def change(state):
        its = state["run"]["factors"]["model"]["lists"][side]
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
    "no chain": models("count", other(0)),
    "more chains": models("count", other(5)),
    "chains beyond all reason": models("count", other(10**6)),
    "another shape": models("shape", other([7, 5])),
    "a negative shape": models("shape", other([-6, 5])),
    "a shape in one dimension": models("shape", other([6])),
    "another loss": models("loss", other([2, 1.0])),
    "a loss that is none": models("loss", other([7, 1.0])),
    "a loss without its parameter": models("loss", other([5, 0.0])),
    "another precision": models("dtype", other("float64")),
    "a precision that is none": models("dtype", other("int8")),
    "a negative seed": models("seed", other(-1)),
    "moments that are no numbers": models("moments", at(1, np.nan)),
    "a negative weight of all": models("moments", at(0, -1.0)),
    "new observations without weight": models("moments", at(5, 0.0)),
    "moments too few": models("moments", shorter),
    "noise of fewer chains": models("noise", shorter),
    "a precision of 0": models("noise", at((0, 2), 0.0)),
    "infinite noise": models("noise", at((0, 0), np.inf)),
    "moods of fewer rows": models("latest", shorter),
    "moods that are no numbers": models("latest", at((0, 0), np.nan)),
    "moods that fit nothing": models("mood_fit", shorter),
    "a fading that is no number": models("fade", other(np.nan)),
    "means of fewer rows": models("means", shorter, "rows"),
    "narrow means": models("means", lambda x: x[:, :, :-1], "rows"),
    "infinite means": models("means", at((0, 0, 0), np.inf), "columns"),
    "means with something at the end": models("means", at((0, 0, -1), 1.0), "columns"),
    "samples of fewer rows": models("samples", shorter, "rows"),
    "samples with something at the end": models("samples", at((0, 0, -1), 1.0), "rows"),
    "a place that is not there": models("place", at(0, 10**9), "rows"),
    "a negative place": models("place", at(0, -1), "rows"),
    "a place that is taken": models("place", at(1, 1), "rows"),
    "a place that nobody has": models("place", lambda x: 0 * x, "rows"),
    "places of fewer rows": models("place", shorter, "rows"),
    "more read than there is": models("read", at((0, 0), 10**6), "rows"),
    "less than nothing read": models("read", at((0, 0), -1), "rows"),
    "read for a chain that is not there": models("read", at((0, 1), 4), "rows"),
    "sums of fewer lists": models("sums", shorter, "rows"),
    "narrow sums": models("sums", lambda x: x[:, :-1], "rows"),
    "sums that are no numbers": models("sums", at((0, 0), np.nan), "rows"),
    "priors of fewer chains": models("priors", shorter, "rows"),
    "priors that are no numbers": models("priors", at((0, 0), np.nan), "rows"),
    "solutions of fewer chains": models("solved", shorter, "rows"),
    "a negative number of solutions": models("solved", at(0, -1), "rows"),
    "more seen than there is": models("seen", at(0, 7), "rows"),
    "models that are missing": models("means", other(None), "rows"),
}


@pytest.mark.parametrize("what", [*LISTS, *MODELS])
def test_chains_with(what):
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


@pytest.mark.parametrize("observations", [-1, 0.5, np.inf, "3000", None, [3000]])
def test_a_number_of_observations_that_is_none(observations):
    state = copy.deepcopy(state_of("plain"))
    state["run"]["factors"]["n_observations"] = observations
    with pytest.raises(ValueError, match="n_observations"):
        load(state)


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


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_what_a_model_file_predicts_with_is_checked(side):
    model = ofw.FrankWolfeMatrixCompletion().load_state(copy.deepcopy(state_of("plain")))
    state = model.state_dict(past=False)
    for forge in (
        lambda its: its.update(means=its["means"][:-1]),
        lambda its: its.update(expected=its["expected"] * np.nan),
        lambda its: its.pop("expected"),
    ):
        forged = copy.deepcopy(state)
        forge(forged["run"]["factors"]["model"]["sides"][side])
        with pytest.raises(ValueError, match=r"damaged|missing"):
            load(forged)
    had = state["run"]["factors"]["model"]["had"]
    for name, wrong in (("length", had["length"][:-1]), ("columns", had["columns"] + np.uint32(5))):
        forged = copy.deepcopy(state)
        forged["run"]["factors"]["model"]["had"][name] = wrong
        with pytest.raises(ValueError, match="damaged"):
            load(forged)


def test_a_rank_that_no_file_can_hold_is_refused_at_once():
    with pytest.raises(ValueError, match="at most 256"):
        ofw.OnlineFactors(rank=257)
    ofw.OnlineFactors(rank=256, chains=1)
