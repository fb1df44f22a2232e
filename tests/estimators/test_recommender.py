"""A recommender learns clicks as they happen: ranks, recommendations, reasons, forgetting."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import onlinefw as ofw
from onlinefw.files import load_checkpoint, save_checkpoint

EVENTS = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "milk"], ["eve", "nuts"]]


def clicks(seed, n=300, users=25, items=18):
    """Events of users of two tastes, with popular items and repeats."""
    rng = np.random.default_rng(seed)
    user = rng.integers(users, size=n)
    item = (rng.random(n) ** 2 * items / 2).astype(int) * 2 + user % 2
    return np.column_stack((user + 1000, item + 70))


def recommender(**more):
    return ofw.FrankWolfeRecommender(rank=3, **more)


def answers(model):
    """All that a model recommends, and what it knows."""
    users = model.users_
    new = "nobody" if users.dtype == object else -1
    return users, *model.recommend(users, n=30), *model.recommend(new, n=30), model.popularity_


def assert_same(one, two):
    for x, y in zip(answers(one), answers(two), strict=True):
        assert np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y


# Learning -----------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(1, 299), max_size=6))
def test_events_in_pieces_of_any_length_come_to_the_same_model(seed, cuts):
    X = clicks(seed)
    whole, pieces, mixed = recommender(), recommender(), recommender()
    ranks = whole.learn(X)
    parts = np.split(X, sorted(cuts))
    found = [pieces.learn(part) for part in parts if len(part)]
    assert np.array_equal(np.concatenate(found), ranks, equal_nan=True)
    for k, part in enumerate(parts):
        if len(part):
            mixed.partial_fit(part) if k % 2 else mixed.learn(part, ranks=False)
    for model in (pieces, mixed, recommender().fit(X)):
        assert_same(model, whole)
        assert model.n_rounds_ == len(X)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(60, 250))
def test_ranks_are_those_of_what_would_have_been_recommended(seed, n):
    X = clicks(seed, n)
    model = recommender(dtype="float64").fit(X[: n // 2])
    for user, item in X[n // 2 :]:
        items, _ = model.recommend(user, n=100)
        scores = model.predict([[user, one] for one in model.items_.tolist()])
        own, expected = set(model.items_of(user).tolist()), np.nan
        if item in items:
            expected = 1.0 + items.tolist().index(item)
            # The same from the scores of all items, one by one.
            others = [
                score
                for one, score in zip(model.items_.tolist(), scores, strict=True)
                if one not in own
            ]
            score = model.predict([[user, item]])[0]
            assert (np.array(others) > score + 1e-9).sum() < expected
            assert expected <= (np.array(others) > score - 1e-9).sum()
        else:
            assert item in own or item not in model.items_
        rank = model.learn([[user, item]])[0]
        assert rank == expected or (np.isnan(rank) and np.isnan(expected))


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), cut=st.integers(1, 299), half_life=st.sampled_from([None, 80.0]))
def test_a_resumed_run_equals_an_uninterrupted_one(seed, cut, half_life, tmp_path_factory):
    X, path = clicks(seed), tmp_path_factory.mktemp("clicks") / "run.ckpt"
    model = recommender(half_life=half_life).fit(X[:cut])
    save_checkpoint(model, path)
    others = load_checkpoint(path), pickle.loads(pickle.dumps(model))
    ranks = model.learn(X[cut:])
    for other in others:
        assert np.array_equal(other.learn(X[cut:]), ranks, equal_nan=True)
        assert_same(other, model)


def test_ranks_are_left_out_if_nobody_wants_them():
    assert recommender().learn(EVENTS, ranks=False) is None


def test_an_item_nobody_had_or_the_user_has_had_has_no_rank():
    ranks = recommender().learn([["ann", "tea"], ["bob", "tea"], ["bob", "tea"]])
    assert np.isnan(ranks[[0, 2]]).all()
    assert ranks[1] == 1.0


def test_an_event_that_repeats_gives_weight():
    X = clicks(1)
    twice = recommender().fit(np.repeat(X, 2, axis=0))
    assert twice.popularity_ == {k: 2.0 * v for k, v in recommender().fit(X).popularity_.items()}


def test_events_of_weight_0_are_left_out():
    X, w = clicks(2), np.tile([1.0, 0.0, 2.0], 100)
    ranks = recommender().learn(X, sample_weight=w)
    assert np.isnan(ranks[1::3]).all()
    model = recommender().fit(X, sample_weight=w)
    assert_same(model, recommender().fit(X[w > 0], sample_weight=w[w > 0]))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "objects", "tuples"])
def test_events_come_in_arrays_lists_and_frames(library):
    X = clicks(3)
    users, items = [f"u{u}" for u in X[:, 0]], X[:, 1].tolist()
    pairs = [list(pair) for pair in zip(users, items, strict=True)]
    if library == "objects":
        given_ = np.array(pairs, dtype=object)
    elif library == "tuples":
        given_ = [tuple(pair) for pair in pairs]
    else:
        module = pytest.importorskip(library)
        make = module.table if library == "pyarrow" else module.DataFrame
        given_ = make({"user": users, "item": items})
    model = recommender().fit(given_)
    assert_same(model, recommender().fit(pairs))
    assert model.items_.dtype == np.int64
    assert model.knows("u1003")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_questions_take_columns_of_any_library(library):
    module, model = pytest.importorskip(library), recommender().fit(EVENTS)
    of = module.array if library in ("pyarrow", "numpy") else module.Series
    assert np.array_equal(model.recommend(of(["ann", "eve"]), n=2)[0],
                          model.recommend(["ann", "eve"], n=2)[0])  # fmt: skip
    limits = {"candidates": of(["tea", "milk"]), "exclude": of(["milk"])}
    assert model.recommend("eve", **limits)[0].tolist() == ["tea"]
    assert model.recommend_for(of(["tea"]))[0].tolist() == model.recommend_for(["tea"])[0].tolist()


def test_whole_numbers_are_ids_and_take_no_memory():
    model = recommender().fit(np.array([[10**15, -5], [7, -5], [7, 2**62]]))
    assert model.shape_ == (2, 2)
    assert model.recommend(10**15)[0].tolist() == [2**62]


def test_later_passes_bring_the_certificate_down():
    X = clicks(4)
    once, often = recommender().fit(X), recommender(epochs=8).fit(X)
    assert 0.0 <= often.gap_ < once.gap_


def test_older_events_fade_with_a_half_life():
    X = np.concatenate((np.tile([[1, 1], [2, 1]], (200, 1)), np.tile([[3, 2], [4, 2]], (200, 1))))
    assert recommender().fit(X).popularity_[1] == 400.0
    assert recommender(half_life=50.0).fit(X).popularity_[1] < 1.0


# Recommending -------------------------------------------------------------------------------------


def dense_taste(model, items):
    """The taste of somebody with these items: by dense matrices, for all events alike."""
    learned = model._run.clicks
    share = learned.arm[0]
    V = learned.columns.factors[:, : learned.rank].astype(float)[: model.shape_[1]]
    numbers = [model.items_.tolist().index(one) for one in items]
    parts = np.zeros((len(items), V.shape[1]))
    for part, fresh, latest in ((share, 0.85, 32), (1.0 - share, 1.0, len(items))):
        age = np.arange(len(items))[::-1]
        c = np.where(age < latest, fresh**age, 0.0)
        W = np.full(len(V), 0.2)
        W[numbers] = np.where(age < latest, np.maximum(c, 0.2), 0.2)
        # A tenth, and 0.55 times the roots of own events and of those of a mean item.
        ridge = 0.1 + 0.55 * (c.sum() ** 0.5 + (model.n_observations_ / len(V)) ** 0.5)
        A = V.T @ (W[:, None] * V) + ridge * np.eye(V.shape[1])
        parts += part * np.linalg.solve(A, (c[:, None] * V[numbers]).T).T
    return V, parts


@pytest.mark.parametrize("seed", range(4))
def test_somebody_new_is_folded_in_exactly_and_not_stored(seed):
    model = recommender(dtype="float64").fit(clicks(seed))
    before, some = answers(model), model.items_.tolist()[:5]
    items, scores = model.recommend_for([*some, 123456], n=100)
    V, parts = dense_taste(model, some)
    all_scores = V @ parts.sum(0) + model._run.clicks.trend()
    expected = dict(zip(model.items_.tolist(), all_scores, strict=True))
    assert set(items.tolist()) == set(model.items_.tolist()) - set(some)
    assert np.allclose(scores, [expected[one] for one in items], atol=1e-10)
    assert (np.diff(scores) <= 0.0).all()
    for x, y in zip(before, answers(model), strict=True):
        assert np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y


@pytest.mark.parametrize("seed", range(4))
def test_contributions_are_those_of_the_users_items_and_add_up_to_the_score(seed):
    X = np.unique(clicks(seed), axis=0)
    X = X[np.random.default_rng(seed).permutation(len(X))]
    model = recommender(dtype="float64").fit(X)
    for user in model.users_.tolist()[:8]:
        own = model.items_of(user).tolist()
        V, parts = dense_taste(model, own)
        for item, score in zip(*model.recommend(user, n=3), strict=True):
            items, contributions = model.because(user, item, n=4)
            assert items[-1] is None
            assert len(items) == min(4, len(own)) + 1
            assert np.isclose(contributions.sum(), score, atol=1e-12)
            expected = np.sort(parts @ V[model.items_.tolist().index(item)])[::-1][:4]
            assert np.allclose(contributions[:-1], expected, atol=1e-10)
            assert set(items[:-1].tolist()) <= set(own)


def test_what_is_left_unexplained_of_a_solved_user_is_popularity():
    model = recommender(dtype="float64", epochs=2).fit(clicks(7))
    learned = model._run.clicks
    learned.solve(np.arange(model.shape_[0]), np.arange(0), anew=True)
    user = model.users_[0]
    item = model.recommend(user, n=1)[0][0]
    rest = model.because(user, item, n=100)[1][-1]
    assert np.isclose(rest, learned.trend()[model.items_.tolist().index(item)], atol=1e-9)


def test_an_unknown_user_gets_what_is_popular():
    model = recommender().fit([["ann", "tea"], ["bob", "tea"], ["ann", "milk"]])
    assert model.recommend("somebody")[0].tolist() == ["tea", "milk"]
    items, scores = model.because("somebody", "tea")
    assert items.tolist() == [None]
    assert scores[0] == model.recommend("somebody")[1][0] == model.predict([["somebody", "tea"]])
    assert model.items_of("somebody").size == 0
    assert not model.knows("somebody")


def test_many_users_at_once_get_what_each_gets_alone():
    model = recommender().fit(clicks(8))
    users = [*model.users_.tolist(), -3]
    for how in ({}, {"exclude_seen": False}, {"candidates": [70, 71, 99]}, {"exclude": [70, 99]}):
        items, scores = model.recommend(users, n=20, **how)
        assert items.shape == scores.shape == (len(users), 20)
        for k, user in enumerate(users):
            one, values = model.recommend(user, n=20, **how)
            assert items[k].tolist() == one.tolist() + [None] * (20 - one.size)
            assert scores[k, : one.size].tolist() == values.tolist()
            assert (scores[k, one.size :] == -np.inf).all()
            assert not how.get("exclude_seen", True) or not set(one) & set(model.items_of(user))
            assert np.array_equal(model.predict([[user, x] for x in one.tolist()]), values) or (
                not one.size
            )


def test_candidates_never_seen_are_left_out():
    assert recommender().fit(EVENTS).recommend("eve", candidates=["beer"])[0].size == 0


def test_similar_items_are_had_by_the_same_users():
    X = clicks(9, 2000)
    items, cosines = ofw.FrankWolfeRecommender(rank=4).fit(X).similar(70, n=4)
    assert (items % 2 == 0).all()
    assert (np.diff(cosines) <= 0.0).all()


def test_an_item_that_nobody_has_had_has_no_score():
    assert np.isnan(recommender().fit(EVENTS).predict([["ann", "beer"]])[0])


# Forgetting ---------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), which=st.integers(0, 24))
def test_nothing_is_left_of_a_forgotten_user(seed, which):
    X = clicks(seed)
    model = recommender().fit(np.concatenate((X, [[5, 7], [5, 70]])))
    new = model.recommend(-1, n=30)
    model.forget(5)
    assert not model.knows(5)
    assert 5 not in model.users_
    assert model.items_of(5).size == 0
    assert 7 not in model.popularity_  # only they had it
    assert 7 not in model.recommend(-1, n=100)[0]
    assert model.popularity_ == recommender().fit(X).popularity_
    lists = model._run.clicks.lists
    assert lists.by_row.length[model._run.ids.rows.ids.tolist().index(None)] == 0
    assert np.isnan(model.predict([[5, 7]])[0])
    assert len(new[0]) == len(model.recommend(5, n=30)[0]) + 1
    # If they come back they are new.
    model.partial_fit([[5, 70]])
    assert model.items_of(5).tolist() == [70]
    assert model.recommend(model.users_[which % len(model.users_)])[0].size >= 0


def test_all_users_may_be_forgotten():
    model = recommender().fit(EVENTS)
    for user in ("ann", "bob", "eve"):
        model.forget(user)
    assert model.recommend("ann")[0].size == 0
    assert model.popularity_ == {}
    assert model.partial_fit([["zoe", "tea"]]).recommend("ann")[0].tolist() == ["tea"]


# Files and conventions ----------------------------------------------------------------------------


@pytest.mark.parametrize("half_life", [None, 100.0])
def test_a_model_file_recommends_the_same_and_learns_no_more(half_life, tmp_path):
    model = recommender(half_life=half_life).fit(clicks(10))
    ofw.save(model, tmp_path / "clicks.ofw")
    loaded = ofw.load(tmp_path / "clicks.ofw")
    assert_same(loaded, model)
    user = model.users_[0]
    item = model.recommend(-1)[0][0]
    for ask in (
        lambda m: m.because(user, item),
        lambda m: m.recommend_for(m.items_[:3]),
        lambda m: m.similar(item),
        lambda m: (m.items_of(user), m.factors_[1]),
    ):
        assert all(map(np.array_equal, ask(loaded), ask(model)))
    assert loaded.gap_ == model.gap_
    assert_same(pickle.loads(pickle.dumps(loaded)), model)
    with pytest.raises(ValueError, match="only predicts"):
        loaded.partial_fit(EVENTS)


def test_what_another_version_has_written_is_refused_in_one_line():
    model = recommender().fit(EVENTS)
    state = model.state_dict()
    state["run"]["team"] = state["run"].pop("factors")
    with pytest.raises(ValueError, match="another version of onlinefw has written this"):
        recommender().load_state(state)
    values = ofw.FrankWolfeMatrixCompletion()
    values.learn(EVENTS, [1.0] * 5)
    state = {**model.state_dict(), "run": values.state_dict()["run"]}
    with pytest.raises(ValueError, match="a model of values, not of clicks"):
        recommender().load_state(state)


def test_parameters_are_those_of_scikit_learn():
    model = recommender(half_life=9.0, unobserved=0.1)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(rank=5).rank == 5
    assert repr(model) == "FrankWolfeRecommender(half_life=9.0, rank=5, unobserved=0.1)"
    for ask in (lambda: model.recommend(1), lambda: model.users_, lambda: model.because(1, 1)):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([["ann", 3], ["bob", "tea"]], "item ids must be all text or all whole numbers"),
        ([["ann", None]], "an item id must be text or a whole number .* got None"),
        ([[float("nan"), "tea"]], "a user id must be text or a whole number .* got nan"),
        ([[1, "tea"]], "the user ids of this model are text, and 1 is a whole number"),
        (np.array([[1.5, 2.0]]), "a user id must be text or a whole number"),
        ([["ann"]], "X must have a user id and an item id per observation"),
        ([], "X must have a user id and an item id|the batch is empty"),
    ],
)
def test_bad_events_are_refused_in_one_line_and_nothing_changes(X, message):
    model = recommender().fit(EVENTS)
    before = answers(model)
    for learn in (model.partial_fit, model.learn):
        with pytest.raises(ValueError, match=message):
            learn(X)
    assert all(np.array_equal(x, y) for x, y in zip(before[:-1], answers(model)[:-1], strict=True))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.recommend(3), "the user ids of this model are text, and 3 is a whole number"),
        (lambda m: m.recommend(None), "a user id must be text"),
        (lambda m: m.recommend(["ann", 3]), "user ids must be all text"),
        (lambda m: m.recommend("ann", n=0), "n must be a whole number"),
        (lambda m: m.recommend("ann", candidates="tea"), "candidates must be a list of items"),
        (lambda m: m.recommend("ann", candidates=[1, 2]), "item ids of this model are text, and 1"),
        (lambda m: m.recommend("ann", exclude=["tea", None]), "got None: .*row 1 of exclude"),
        (lambda m: m.recommend("ann", exclude=np.array([["tea"]])), "exclude must be one-dim"),
        (lambda m: m.recommend(["ann", None]), "got None: .*row 1 of users"),
        (lambda m: m.recommend_for("tea"), "items must be a list of items"),
        (lambda m: m.because("ann", "beer"), "item must be one that the model has learned"),
        (lambda m: m.similar("beer"), "item must be one that the model has learned"),
        (lambda m: m.forget("zoe"), "user must be one of the 3 user ids"),
    ],
)
def test_bad_questions_are_refused_in_one_line(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(recommender().fit(EVENTS))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"half_life": "auto"}, "half_life must be a number of events or None"),
        ({"half_life": 0.0}, "half_life"),
        ({"unobserved": 0.0}, "unobserved must be a positive number"),
        ({"rank": 0}, "rank"),
        ({"ridge": (0.0, 1.0)}, "ridge"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(parameters, message):
    model = ofw.FrankWolfeRecommender(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(EVENTS)
    with pytest.raises(NotFittedError):
        model.recommend("ann")


def test_more_than_there_are_is_all_of_them():
    model = recommender().fit(EVENTS)
    assert model.recommend("eve", n=50)[0].size == 2
    assert model.recommend(["eve"], n=50)[0].shape == (1, 50)


# Scores -------------------------------------------------------------------------------------------


def test_ranking_scores_ask_the_recommender():
    X = clicks(11, 800)
    model = recommender().fit(X[:700])
    scores = ofw.evaluate.ranking(model, np.concatenate((X[700:], [[5, 70]])), n=5)
    assert scores["new"]["users"] == 1
    assert 0.0 < scores["coverage"] <= 1.0
    ranked = ofw.evaluate.progressive_ranking(recommender(), X)
    assert np.array_equal(ranked.ranks, recommender().learn(X), equal_nan=True)
    # Users of two tastes are told apart: better than any item as good as the next.
    assert ranked.scores(3, since=0.3)["recall"] > 3 / 9
