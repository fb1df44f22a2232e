"""The recommenders that stream.py compares, all with one face: they learn a click and give scores.

Users and items are numbers in the order of their first click, so those that are known so far are
0, 1, 2, ... A recommender has ``learn(user, item)`` and ``scores(user, known)``, the scores of
the items before ``known``; the highest is the best. ``warm_up`` learns the first part of the
stream, several times over if it has a setting ``passes``.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

MOST = 2_000  # items there is room for


class Recommender:
    """What the others have in common."""

    passes = 1

    def learn(self, user, item):
        """Learn that the user has had the item."""
        raise NotImplementedError

    def scores(self, user, known):
        """The scores of the first ``known`` items for the user."""
        raise NotImplementedError

    def warm_up(self, users, items):
        """Learn the first part of the stream."""
        for _ in range(self.passes):
            for user, item in zip(users, items, strict=True):
                self.learn(user, item)


class Popularity(Recommender):
    """What most people had; with a half-life (in clicks), what most people had of late."""

    def __init__(self, half_life=None):
        self.counts = np.zeros(MOST)
        self.growth = 1.0 if half_life is None else 2.0 ** (1.0 / half_life)
        self.weight = 1.0  # a later click weighs more, instead of the earlier ones less

    def learn(self, user, item):
        self.counts[item] += self.weight
        self.weight *= self.growth

    def scores(self, user, known):
        return self.counts[:known]


class ItemItem(Recommender):
    """Cosine of items, shrunk: n_ij / (sqrt(n_i n_j) + shrinkage), from counts that are kept."""

    def __init__(self, shrinkage):
        self.shrinkage = shrinkage
        self.together = np.zeros((MOST, MOST))
        self.counts = np.zeros(MOST)
        self.had = {}

    def learn(self, user, item):
        had = self.had.setdefault(user, [])
        self.together[had, item] += 1
        self.together[item, had] += 1
        self.counts[item] += 1
        had.append(item)

    def scores(self, user, known):
        had = self.had.get(user)
        if not had:
            return self.counts[:known]
        norms = np.sqrt(np.outer(self.counts[had], self.counts[:known]))
        return (self.together[had, :known] / (norms + self.shrinkage)).sum(axis=0)


class River(Recommender):
    """river's matrix factorisations: a click is a 1, and items drawn at random are zeros."""

    def __init__(self, kind, k, rate, l2, negatives, passes):
        from river import optim, reco

        init = optim.initializers.Normal(mu=0.0, sigma=0.1, seed=1)
        if kind == "BiasedMF":
            rates = {"bias_optimizer": optim.SGD(rate), "latent_optimizer": optim.SGD(rate)}
            penalties = {"l2_bias": l2, "l2_latent": l2}
            self.model = reco.BiasedMF(k, **rates, **penalties, latent_initializer=init, seed=1)
        else:
            self.model = reco.FunkMF(k, optim.SGD(rate), l2=l2, initializer=init, seed=1)
        self.negatives, self.passes = negatives, passes
        self.rng = np.random.default_rng(0)
        self.known = 0
        # Its items in one array: model.rank asks for one item after another.
        self.factors, self.biases = np.zeros((MOST, k)), np.zeros(MOST)

    def learn(self, user, item):
        self.known = max(self.known, item + 1)
        self._learn(user, item, 1.0)
        for other in self.rng.integers(self.known, size=self.negatives).tolist():
            if other != item:
                self._learn(user, other, 0.0)

    def _learn(self, user, item, y):
        self.model.learn_one(user, item, y)
        self.factors[item] = self.model.i_latents[item]
        if hasattr(self.model, "i_biases"):
            self.biases[item] = self.model.i_biases[item]

    def scores(self, user, known):
        return self.factors[:known] @ self.model.u_latents[user] + self.biases[:known]


class Flurs(Recommender):
    """FluRS: incremental matrix factorisation, or BPR with one item drawn at random."""

    def __init__(self, kind, k, learn_rate, l2_reg, passes):
        from flurs.data.entity import Event, Item, User
        from flurs.recommender import BPRMFRecommender, MFRecommender

        np.random.seed(0)  # noqa: NPY002 - it draws from numpy's global generator
        self.sign = -1.0 if kind == "MF" else 1.0  # MF: the distance to 1, the smallest is best
        self.model = (MFRecommender if kind == "MF" else BPRMFRecommender)(k, l2_reg, learn_rate)
        self.model.initialize()
        self.event = lambda user, item: Event(User(user), Item(item))
        self.passes = passes

    def warm_up(self, users, items):
        for user, item in zip(users, items, strict=True):  # all first, as its evaluator does
            self._register(self.event(user, item))
        super().warm_up(users, items)

    def learn(self, user, item):
        event = self.event(user, item)
        self._register(event)
        self.model.users[user]["known_items"].add(item)
        self.model.update(event)

    def _register(self, event):
        if self.model.is_new_user(event.user.index):
            self.model.register(event.user)
        if self.model.is_new_item(event.item.index):
            self.model.register(event.item)

    def scores(self, user, known):
        event = self.event(user, 0)
        self._register(event)
        return self.sign * self.model.score(event.user, np.arange(known))


class ImplicitALS(Recommender):
    """implicit's ALS: partial_fit_users and _items at each click, all anew after some."""

    def __init__(self, factors, regularization, alpha, iterations, refit):
        from implicit.cpu.als import AlternatingLeastSquares

        settings = {"iterations": iterations, "num_threads": 1, "random_state": 0}
        self.new = lambda: AlternatingLeastSquares(factors, regularization, alpha, **settings)
        self.refit = refit
        self.items_of, self.users_of = [], []
        self.seen = 0

    def warm_up(self, users, items):
        for user, item in zip(users, items, strict=True):
            self._add(user, item)
        self._fit()

    def _add(self, user, item):
        if user == len(self.items_of):
            self.items_of.append([])
        if item == len(self.users_of):
            self.users_of.append([])
        self.items_of[user].append(item)
        self.users_of[item].append(user)

    def _fit(self):
        self.model = self.new()
        matrix = _ones(self.items_of, len(self.users_of))
        self.model.fit(matrix, show_progress=False)

    def learn(self, user, item):
        self._add(user, item)
        self.seen += 1
        if self.seen % self.refit == 0:
            self._fit()
            return
        before = len(self.model.item_factors)
        had = [one for one in self.items_of[user] if one < before]
        self.model.partial_fit_users([user], _ones([had], before))
        users = len(self.model.user_factors)
        self.model.partial_fit_items([item], _ones([self.users_of[item]], users))

    def scores(self, user, known):
        if user >= len(self.model.user_factors):
            return np.array([len(users) for users in self.users_of[:known]])
        return self.model.item_factors[:known] @ self.model.user_factors[user]


def _ones(rows, n_columns):
    """A sparse matrix of ones: the columns of each row."""
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    columns = np.array([column for row in rows for column in row], np.int32)
    ones = np.ones(columns.size, np.float32)
    return csr_matrix((ones, columns, starts.astype(np.int32)), shape=(len(rows), n_columns))


SYSTEMS = {
    "popularity": (Popularity, None),
    "popularity that fades": (Popularity, None),
    "item-item cosine": (ItemItem, None),
    "river BiasedMF": (lambda **settings: River("BiasedMF", **settings), "river"),
    "river FunkMF": (lambda **settings: River("FunkMF", **settings), "river"),
    "FluRS MF": (lambda **settings: Flurs("MF", **settings), "flurs"),
    "FluRS BPRMF": (lambda **settings: Flurs("BPRMF", **settings), "flurs"),
    "implicit ALS": (ImplicitALS, "implicit"),
}
