"""The recommenders that offline.py compares: how each is fitted, and how it recommends.

A system is a function ``prepare(clicks, **settings)`` that brings the clicks into the form its
library wants and returns two functions: ``fit()``, which is timed, and ``recommend(n)``, which
returns for every user the n best items that the user has not had, the best first. offline.py runs
this file in a process of its own for every fit:

    python benchmarks/recommend/offline_systems.py SPLIT.npz SYSTEM SETTINGS RESULT.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.sparse import csr_matrix

from onlinefw import __version__ as our_version
from onlinefw.evaluate import ranking_scores

THREADS = 2
WARM_UP = 1000  # clicks fitted before the clock starts, where code is compiled on first use


class NotThere(Exception):
    """What a system needs is not installed, or not written yet."""


@dataclass(frozen=True)
class Clicks:
    """What users had, in the order of arrival: users and items from 0, and how many there are."""

    users: np.ndarray
    items: np.ndarray
    shape: tuple[int, int]

    def head(self, n):
        """The first n clicks."""
        return Clicks(self.users[:n], self.items[:n], self.shape)

    @cached_property
    def matrix(self):
        """Ones in users x items."""
        ones = np.ones(self.users.size, np.float32)
        return csr_matrix((ones, (self.users, self.items)), shape=self.shape)

    def best(self, scores_of, n, block=500):
        """The n items with the highest scores among those that the user has not had.

        ``scores_of`` takes users and returns a score of every item for each of them; what is not
        a number comes last.
        """
        out = np.empty((self.shape[0], n), np.int64)
        for start in range(0, self.shape[0], block):
            users = np.arange(start, min(start + block, self.shape[0]))
            scores = np.array(scores_of(users), float)
            scores[np.isnan(scores)] = -np.inf
            scores[self.matrix[users].nonzero()] = -np.inf
            some = np.argpartition(-scores, n, axis=1)[:, :n]
            order = np.argsort(-np.take_along_axis(scores, some, 1), axis=1, kind="stable")
            out[users] = np.take_along_axis(some, order, 1)
        return out


@dataclass(frozen=True)
class System:
    """One recommender: its function here, its name in the table and its package."""

    prepare: Callable
    title: str
    package: str
    warm_up: bool = False


SYSTEMS: dict[str, System] = {}


def system(name, title, package, **facts):
    def register(prepare):
        SYSTEMS[name] = System(prepare, title, package, **facts)
        return prepare

    return register


@system("onlinefw", "onlinefw", "onlinefw", warm_up=True)
def onlinefw(clicks, verb="fit", **settings):
    import onlinefw as ofw

    if not hasattr(ofw, "FrankWolfeRecommender"):
        raise NotThere("this version has no FrankWolfeRecommender")
    model = ofw.FrankWolfeRecommender(**settings)
    X = np.column_stack((clicks.users, clicks.items)).astype(np.int64)

    def recommend(n):
        items, _ = model.recommend(np.arange(clicks.shape[0]), n)
        return np.array([[-1 if one is None else one for one in row] for row in items.tolist()])

    learn = {"fit": model.fit, "learn": lambda X: model.learn(X, ranks=False)}[verb]
    return lambda: learn(X), recommend


@system("popularity", "popularity", "numpy")
def popularity(clicks):
    counts = []
    return (
        lambda: counts.append(np.bincount(clicks.items, minlength=clicks.shape[1])),
        lambda n: clicks.best(lambda users: np.tile(counts[0], (users.size, 1)), n),
    )


def _implicit(model, clicks):
    """A model of implicit: it recommends from the matrix of what users had."""

    def recommend(n):
        users = np.arange(clicks.shape[0])
        return model.recommend(users, clicks.matrix, N=n, filter_already_liked_items=True)[0]

    matrix = clicks.matrix  # built before the clock starts
    return lambda: model.fit(matrix, show_progress=False), recommend


@system("implicit-als", "implicit AlternatingLeastSquares", "implicit")
def implicit_als(clicks, factors, regularization, alpha, iterations):
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors, regularization, alpha, iterations=iterations, num_threads=THREADS, random_state=0
    )
    return _implicit(model, clicks)


@system("implicit-cosine", "implicit CosineRecommender (item-item)", "implicit")
def implicit_cosine(clicks, K):
    from implicit.nearest_neighbours import CosineRecommender

    return _implicit(CosineRecommender(K, num_threads=THREADS), clicks)


@system("implicit-bm25", "implicit BM25Recommender (item-item)", "implicit")
def implicit_bm25(clicks, K, K1, B):
    from implicit.nearest_neighbours import BM25Recommender

    return _implicit(BM25Recommender(K, K1, B, num_threads=THREADS), clicks)


@system("cornac-bpr", "cornac BPR", "cornac")
def cornac_bpr(clicks, k, learning_rate, lambda_reg, max_iter):
    from cornac.data import Dataset
    from cornac.models import BPR

    ids = [{k: k for k in range(n)} for n in clicks.shape]
    ones = np.ones(clicks.users.size)
    events = clicks.users.astype(np.int64), clicks.items.astype(np.int64), ones
    data = Dataset(*clicks.shape, *ids, events, seed=0)
    model = BPR(
        k=k,
        learning_rate=learning_rate,
        lambda_reg=lambda_reg,
        max_iter=max_iter,
        num_threads=THREADS,
        seed=0,
    )

    def scores_of(users):
        return model.u_factors[users] @ model.i_factors.T + model.i_biases

    return lambda: model.fit(data), lambda n: clicks.best(scores_of, n)


@system("lightfm-warp", "LightFM WARP (lightfm-next)", "lightfm-next")
def lightfm_warp(clicks, no_components, learning_rate, item_alpha, epochs):
    from lightfm import LightFM

    model = LightFM(
        no_components=no_components,
        loss="warp",
        learning_rate=learning_rate,
        item_alpha=item_alpha,
        user_alpha=item_alpha,
        random_state=0,
    )
    matrix = clicks.matrix.tocoo()

    def scores_of(users):
        biases, factors = model.get_item_representations()
        return model.get_user_representations()[1][users] @ factors.T + biases

    return (
        lambda: model.fit(matrix, epochs=epochs, num_threads=THREADS),
        lambda n: clicks.best(scores_of, n),
    )


def _lenskit_data(clicks):
    import pandas as pd
    from lenskit.data import from_interactions_df

    return from_interactions_df(pd.DataFrame({"user_id": clicks.users, "item_id": clicks.items}))


def _in_order(scores, vocabulary, n):
    """Scores of all n items, from those of the items that lenskit has seen, in its order."""
    out = np.full((len(scores), n), np.nan)
    out[:, vocabulary.ids().astype(np.int64)] = scores
    return out


@system("lenskit-als", "lenskit ImplicitMF (ALS)", "lenskit", warm_up=True)
def lenskit_als(clicks, embedding_size, regularization, weight, epochs):
    from lenskit.als import ImplicitMFScorer

    data = _lenskit_data(clicks)
    model = ImplicitMFScorer(
        embedding_size=embedding_size, regularization=regularization, weight=weight, epochs=epochs
    )

    def scores_of(users):
        rows = model.users.numbers(users, missing="negative")
        scores = model.user_embeddings[rows] @ model.item_embeddings.T
        return _in_order(scores, model.items, clicks.shape[1])

    return lambda: model.train(data), lambda n: clicks.best(scores_of, n)


@system("lenskit-ease", "lenskit EASE (item-item)", "lenskit", warm_up=True)
def lenskit_ease(clicks, regularization):
    from lenskit.knn import EASEScorer

    data = _lenskit_data(clicks)
    model = EASEScorer(regularization=regularization)

    def scores_of(users):
        known = model.items.ids().astype(np.int64)
        scores = clicks.matrix[users][:, known] @ model.weights
        return _in_order(scores, model.items, clicks.shape[1])

    return lambda: model.train(data), lambda n: clicks.best(scores_of, n)


@system("lenskit-knn", "lenskit ItemKNN (item-item)", "lenskit", warm_up=True)
def lenskit_knn(clicks, max_nbrs, save_nbrs):
    from lenskit.data import ItemList, RecQuery
    from lenskit.knn import ItemKNNScorer

    data = _lenskit_data(clicks)
    model = ItemKNNScorer(max_nbrs=max_nbrs, save_nbrs=save_nbrs, feedback="implicit")
    everything = ItemList(item_ids=np.arange(clicks.shape[1]))

    def scores_of_one(user):
        query = RecQuery(user_id=user, user_items=ItemList(item_ids=clicks.matrix[user].indices))
        return model(query, everything).scores("numpy")

    def scores_of(users):
        return np.stack([scores_of_one(user) for user in users.tolist()])

    return lambda: model.train(data), lambda n: clicks.best(scores_of, n)


def measure(split, name, settings):
    """Fit one system and return what the table says of it."""
    clicks = Clicks(split["users"], split["items"], tuple(split["shape"].tolist()))
    chosen = SYSTEMS[name]
    if chosen.warm_up:
        chosen.prepare(clicks.head(WARM_UP), **settings)[0]()
    fit, recommend = chosen.prepare(clicks, **settings)
    started, worked = perf_counter(), process_time()
    fit()
    seconds, work = perf_counter() - started, process_time() - worked
    started = perf_counter()
    recommended = recommend(20)
    asked = perf_counter() - started
    relevant = [[] for _ in range(clicks.shape[0])]
    for user, item in zip(split["test_users"].tolist(), split["test_items"].tolist(), strict=True):
        relevant[user].append(item)
    lists = recommended.tolist()
    return {
        "version": our_version if name == "onlinefw" else version(chosen.package),
        "ndcg": ranking_scores(lists, relevant, 10)["ndcg"],
        "recall": ranking_scores(lists, relevant, 20)["recall"],
        "seconds": seconds,
        "cpu": work,
        "asked": asked,
    }


def main():
    split, name, settings, result = sys.argv[1:]
    try:
        found = measure(np.load(split), name, json.loads(settings))
    except ImportError as error:
        found = {"error": f"not installed ({error})"}
    except NotThere as error:
        found = {"error": f"skipped: {error}"}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
