"""How good recommendations are: scores of ranked lists, and of events ranked as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array
from .._validation import check_whole
from ..estimators.pairs import pairs_of
from .progressive import counts_before, means_of_parts

__all__ = ["RankedEvents", "progressive_ranking", "ranking", "ranking_scores"]


def ranking_scores(
    recommended: Sequence[Any],
    relevant: Sequence[Any],
    n: int = 10,
    *,
    popularity: dict[Any, float] | None = None,
) -> dict[str, float]:
    """Score lists of recommended items against what users have had.

    Parameters
    ----------
    recommended : sequence of sequences
        For every user the items that were recommended, the best first; None is no item. One that
        comes again is a hit only once.
    relevant : sequence of sequences
        For every user the items that were right, in any order. Users without any are left out.
    n : int
        Only the first n recommended items count.
    popularity : dict, optional
        How often every item of the catalogue was seen, for ``coverage`` and ``novelty``.

    Returns
    -------
    dict
        Means over users: ``recall`` (the share of the relevant items that was recommended),
        ``ndcg`` (hits discounted by 1 / log2(1 + rank), compared with the best possible list),
        ``hit_rate`` (whether there was a hit), ``mrr`` (1 / the rank of the first hit, or 0), and
        ``users``, how many there were. With ``popularity`` also ``coverage``, the share of the
        catalogue that was recommended to anybody, and ``novelty``, the mean of -log2 of the share
        of events that a recommended item had (one that was never seen counts as seen once).

    Examples
    --------
    >>> from onlinefw.evaluate import ranking_scores
    >>> scores = ranking_scores([["a", "b", "c"], ["a", "d", "e"]], [["b"], ["x", "y"]], n=3)
    >>> scores["recall"], scores["mrr"], round(scores["ndcg"], 3)
    (0.5, 0.25, 0.315)
    """
    n = check_whole("n", n)
    if len(recommended) != len(relevant):
        raise ValueError(
            f"there must be one list of relevant items for each of {len(recommended)} lists, "
            f"got {len(relevant)}"
        )
    discounts = 1.0 / np.log2(np.arange(n) + 2.0)
    rows, shown = [], set()
    novelty: list[float] = []
    events = sum(popularity.values()) if popularity else 0.0
    for some, right in zip(recommended, relevant, strict=True):
        wanted = set(right)
        if not wanted:
            continue
        items = [item for item in list(some)[:n] if item is not None]
        firsts = np.array([item not in items[:k] for k, item in enumerate(items)], bool)
        hits = firsts & np.array([item in wanted for item in items], bool)
        best = discounts[: min(n, len(wanted))].sum()
        first = 1.0 / (1 + int(np.argmax(hits))) if hits.any() else 0.0
        gained = float(discounts[: hits.size][hits].sum())
        rows.append((hits.sum() / len(wanted), gained / best, float(hits.any()), first))
        shown.update(items)
        if popularity:
            novelty += [-np.log2(max(popularity.get(item, 0.0), 1.0) / events) for item in items]
    means = np.mean(rows, axis=0) if rows else np.full(4, np.nan)
    names = ("recall", "ndcg", "hit_rate", "mrr")
    scores = {name: float(value) for name, value in zip(names, means, strict=True)}
    if popularity:
        known = sum(item in popularity for item in shown)
        scores["coverage"] = known / len(popularity)
        scores["novelty"] = float(np.mean(novelty)) if novelty else float("nan")
    return {**scores, "users": len(rows)}


def ranking(model: Any, X: Any, n: int = 10, *, exclude_seen: bool = True) -> dict[str, Any]:
    """Score what a fitted recommender recommends now against later events, user by user.

    Parameters
    ----------
    model : FrankWolfeRecommender
        It does not learn from the events.
    X : array-like of shape (n_events, 2)
        (user, item) of what happened after those that the model has learned: a split in time.
    n : int
        How many items are recommended to each user.
    exclude_seen : bool
        Whether items that a user has had are left out: of what is recommended, and of the later
        events.

    Returns
    -------
    dict
        :func:`ranking_scores` of all users, and of those that the model ``known`` and those that
        are ``new`` to it apart.
    """
    events: dict[Any, list[Any]] = {}
    for user, item in _pairs(X):
        events.setdefault(user, []).append(item)
    users = list(events)
    if exclude_seen:
        for user in users:
            had = set(model.items_of(user))
            events[user] = [item for item in events[user] if item not in had]
    items, _ = model.recommend(users, n, exclude_seen=exclude_seen)
    known = np.array([model.knows(user) for user in users], bool)
    popularity = model.popularity_

    def of(which: Array) -> dict[str, float]:
        chosen = np.flatnonzero(which)
        lists = [list(items[k]) for k in chosen], [events[users[k]] for k in chosen]
        return ranking_scores(*lists, n, popularity=popularity)

    everybody = of(np.ones(len(users), bool))
    return {**everybody, "known": of(known), "new": of(~known)}


@dataclass(frozen=True)
class RankedEvents:
    """The rank that every event had before it was learned, 1 the best.

    Attributes
    ----------
    ranks : ndarray
        nan where there was nothing to rank: an item that nobody had had, or that the user had.
    times : ndarray
        When events came; 0, 1, 2, ... if that was not given.
    users_before, items_before : ndarray
        How many events the user and the item of each had had before.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.evaluate import RankedEvents
    >>> before = np.zeros(4, int)
    >>> ranked = RankedEvents(np.array([np.nan, 3.0, 1.0, 20.0]), np.arange(4), before, before)
    >>> round(ranked.scores(10)["recall"], 3), ranked.scores(10)["events"]
    (0.667, 3)
    """

    ranks: Array
    times: Array
    users_before: Array
    items_before: Array

    def scores(self, n: int = 10, since: float = 0.0, where: Any = None) -> dict[str, float]:
        """Return recall (here the same as the hit rate), NDCG and MRR at n.

        Parameters
        ----------
        n : int
            An event counts as a hit if its rank was at most n.
        since : float
            The share of the events that only warm up, and are not counted.
        where : array of bool, optional
            Which events count, such as ``ranked.users_before == 0``.
        """
        ranks = self.ranks[self._counted(since, where)]
        hits = dict.fromkeys(("recall", "ndcg", "mrr"), float("nan"))
        if ranks.size:
            hits = {name: float(one.mean()) for name, one in _hits(ranks, n).items()}
        return {**hits, "hit_rate": hits["recall"], "events": int(ranks.size)}

    def _counted(self, since: float, where: Any) -> Array:
        counted = (np.arange(self.ranks.size) >= since * self.ranks.size) & ~np.isnan(self.ranks)
        return counted if where is None else counted & np.asarray(where, bool)

    def windows(self, count: int = 20, n: int = 10) -> dict[str, Array]:
        """Return scores in so many windows of equally many events, as columns.

        They are ``until`` (the time of the last one), ``n`` (how many were ranked), ``recall``,
        ``ndcg``, ``mrr``, and the recall of ``known`` and of ``new`` users.
        """
        size = self.ranks.size
        parts = np.array_split(np.arange(size), min(check_whole("count", count), size))
        hits = {name: np.full(size, np.nan) for name in ("recall", "ndcg", "mrr")}
        counted = self._counted(0.0, None)
        for name, values in _hits(self.ranks[counted], n).items():
            hits[name][counted] = values
        new = self.users_before == 0
        return {
            "until": np.array([self.times[part[-1]] for part in parts]),
            "n": np.array([np.count_nonzero(counted[part]) for part in parts]),
            **{name: means_of_parts(values, parts) for name, values in hits.items()},
            "known": means_of_parts(np.where(new, np.nan, hits["recall"]), parts),
            "new": means_of_parts(np.where(new, hits["recall"], np.nan), parts),
        }


def _hits(ranks: Array, n: int) -> dict[str, Array]:
    """What each event is worth at its rank: one item is relevant, so the best list has it first."""
    hit = ranks <= check_whole("n", n)
    return {
        "recall": hit.astype(float),
        "ndcg": np.where(hit, 1.0 / np.log2(1.0 + ranks), 0.0),
        "mrr": np.where(hit, 1.0 / ranks, 0.0),
    }


def progressive_ranking(model: Any, X: Any, times: Any = None) -> RankedEvents:
    """Let a recommender learn events in the order of time, each ranked before it is learned.

    Parameters
    ----------
    model : FrankWolfeRecommender
        New or fitted; it learns.
    X : array-like of shape (n_events, 2)
        (user, item) of every event.
    times : array-like, optional
        When each came: they are sorted by it, and those of one time keep their order.
    """
    pairs = _pairs(X)
    order = np.arange(len(pairs))
    when = order if times is None else np.asarray(times)
    if when.shape != (len(pairs),):
        raise ValueError(f"times must be one for each of {len(pairs)} events, got {when.shape}")
    if times is not None:
        order = np.argsort(when, kind="stable")
    pairs = [pairs[k] for k in order]
    ranks = model.learn(_as_objects(pairs), ranks=True)
    before = [counts_before(_codes([pair[side] for pair in pairs])) for side in (0, 1)]
    return RankedEvents(np.asarray(ranks, float), when[order], *before)


def _pairs(X: Any) -> list[tuple[Any, Any]]:
    """The (user, item) of every event, as Python objects."""
    if not len(X):
        return []
    users, items = (side.ids[side.codes].tolist() for side in pairs_of(X, ("user", "item")))
    return list(zip(users, items, strict=True))


def _as_objects(pairs: list[tuple[Any, Any]]) -> Array:
    table = np.empty((len(pairs), 2), object)
    for k, pair in enumerate(pairs):
        table[k] = pair
    return table


def _codes(values: list[Any]) -> Array:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(one, len(known)) for one in values], np.int64)
