"""Scores of rankings: what counts, what is left out, and what is refused."""

import numpy as np
import pytest

from onlinefw.evaluate import RankedEvents, progressive_ranking, ranking, ranking_scores


def test_users_without_relevant_items_are_left_out():
    assert ranking_scores([["a"], ["b"]], [["a"], []], 1) == {
        "recall": 1.0,
        "ndcg": 1.0,
        "hit_rate": 1.0,
        "mrr": 1.0,
        "users": 1,
    }


def test_padding_is_no_item():
    scores = ranking_scores([["a", None, None]], [["a", "b"]], 3, popularity={"a": 3, "b": 1})
    assert scores["recall"] == 0.5
    assert scores["coverage"] == 0.5
    assert scores["novelty"] == pytest.approx(-np.log2(3 / 4))


def test_an_item_that_comes_again_is_a_hit_only_once():
    assert ranking_scores([["a", "a", "b"]], [["a"]], 3) == ranking_scores([["a"]], [["a"]], 3)


def test_nothing_to_score_is_nan_and_lists_must_pair():
    assert np.isnan(ranking_scores([], [], 5)["recall"])
    with pytest.raises(ValueError, match="one list of relevant items for each of 2"):
        ranking_scores([["a"], ["b"]], [["a"]])
    with pytest.raises(ValueError, match="n must be"):
        ranking_scores([["a"]], [["a"]], 0)


@pytest.fixture
def ranked():
    ranks = np.array([np.nan, 1.0, 4.0, np.nan, 11.0, 2.0])
    users_before = np.array([0, 1, 0, 2, 3, 1])
    return RankedEvents(ranks, np.arange(6), users_before, np.zeros(6, int))


def test_an_event_at_rank_r_is_a_list_with_one_relevant_item(ranked):
    scores = ranked.scores(10)
    lists = [[f"i{k}" for k in range(1, 21)]] * 4
    plain = ranking_scores(lists, [["i1"], ["i4"], ["i11"], ["i2"]], 10)
    for name in ("recall", "ndcg", "mrr", "hit_rate"):
        assert scores[name] == pytest.approx(plain[name])
    assert scores["events"] == 4


def test_warm_up_and_masks_leave_events_out(ranked):
    assert ranked.scores(10, since=0.5) == pytest.approx(
        {"recall": 0.5, "hit_rate": 0.5, "events": 2, "mrr": 0.25, "ndcg": 0.5 / np.log2(3)}
    )
    assert ranked.scores(10, where=ranked.users_before == 0)["events"] == 1
    assert np.isnan(ranked.scores(10, where=np.zeros(6, bool))["recall"])


def test_windows_have_their_own_scores(ranked):
    table = ranked.windows(2, n=3)
    assert table["n"].tolist() == [2, 2]
    assert table["recall"].tolist() == [0.5, 0.5]
    assert table["until"].tolist() == [2, 5]
    assert table["new"][0] == 0.0
    assert np.isnan(table["new"][1])


class Fixed:
    """A recommender that always recommends a, b, c, and ranks items by their letter."""

    def __init__(self):
        self.popularity_ = {"a": 5, "b": 3, "c": 2}

    def recommend(self, users, n, *, exclude_seen):
        return np.array([["a", "b", "c"][:n]] * len(users), object), None

    def items_of(self, user):
        return ["a"] if user == "old" else []

    def knows(self, user):
        return user == "old"

    def learn(self, X, ranks):
        assert ranks
        self.seen = X.tolist()
        return np.array(["abc".index(item) + 1 for _, item in X], float)


def test_a_split_in_time_scores_known_and_new_users_apart():
    X = [("old", "a"), ("old", "b"), ("new", "c"), ("new", "d")]
    scores = ranking(Fixed(), X, 3)
    assert scores["known"]["recall"] == 1.0  # what the user has had does not count
    assert scores["new"]["recall"] == 0.5
    assert scores["recall"] == 0.75
    assert scores["coverage"] == 1.0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_events_come_in_frames_too(library):
    module = pytest.importorskip(library)
    columns = {"user": [7, 8, 7], "item": ["a", "b", "c"]}
    frame = (module.table if library == "pyarrow" else module.DataFrame)(columns)
    model = Fixed()
    assert progressive_ranking(model, frame).ranks.tolist() == [1, 2, 3]
    assert model.seen == [[7, "a"], [8, "b"], [7, "c"]]
    with pytest.raises(ValueError, match="X must have a user id and an item id"):
        progressive_ranking(model, [["u"]])


def test_events_are_ranked_in_the_order_of_time():
    model = Fixed()
    X = [("u", "c"), ("v", "a"), ("u", "b")]
    ranked = progressive_ranking(model, X, times=[3, 1, 2])
    assert model.seen == [["v", "a"], ["u", "b"], ["u", "c"]]
    assert ranked.ranks.tolist() == [1, 2, 3]
    assert ranked.users_before.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="times must be one for each of 3 events"):
        progressive_ranking(model, X, times=[1])
