"""What others predict for a stream: each observation before it is learned.

A peer is a function ``(X, y) -> predictions`` for one setting. ``PEERS`` has a list of settings for
each system: its defaults (no setting), then a grid. drift.py shows the defaults, and the best of
all in hindsight, for every task and change. The rates of the grids are constant: rates that fall to
zero cannot follow a change. river's systems learn one observation at a time, scikit-learn's ten
(one call of ``partial_fit`` costs as much as ten rows), in the grids with the l1 penalty because
the truth is sparse.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from river import linear_model, optim, reco
from sklearn.linear_model import SGDClassifier, SGDRegressor

#: scikit-learn's models predict so many rows, then learn them.
PIECE = 10


def _one_by_one(model, X, y, ask):
    predicted = np.zeros(len(y))
    for k, (row, value) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = dict(enumerate(row))
        predicted[k] = ask(x)
        model.learn_one(x, value)
    return predicted


def river_regression(X, y, rate=None):
    # The intercept's own rate is 0.01 by default.
    own = {} if rate is None else {"optimizer": optim.SGD(rate), "intercept_lr": rate}
    model = linear_model.LinearRegression(**own)
    return _one_by_one(model, X, y, model.predict_one)


def river_classification(X, y, rate=None):
    own = {} if rate is None else {"optimizer": optim.SGD(rate), "intercept_lr": rate}
    model = linear_model.LogisticRegression(**own)
    return _one_by_one(model, X, y, lambda x: model.predict_proba_one(x)[True] > 0.5)


def river_ratings(X, y, kind, rate=None, l2=None):
    init = optim.initializers.Normal(mu=0.0, sigma=0.1, seed=1)
    if rate is None:
        model = getattr(reco, kind)(seed=1)
    elif kind == "BiasedMF":
        model = reco.BiasedMF(
            n_factors=4,
            bias_optimizer=optim.SGD(rate / 2),
            latent_optimizer=optim.SGD(rate),
            l2_bias=0.0,
            l2_latent=l2,
            latent_initializer=init,
            seed=1,
        )
    else:
        model = reco.FunkMF(4, optim.SGD(rate), l2=l2, initializer=init, seed=1)
    predicted = np.zeros(len(y))
    for k, ((row, column), value) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        predicted[k] = model.predict_one(row, column)
        model.learn_one(row, column, value)
    return predicted


def _by_pieces(model, X, y, **first):
    predicted = np.zeros(len(y))
    for start in range(0, len(y), PIECE):
        piece = slice(start, start + PIECE)
        if start:
            predicted[piece] = model.predict(X[piece])
        model.partial_fit(X[piece], y[piece], **(first if start == 0 else {}))
    return predicted


def _constant(rate):
    return {"learning_rate": "constant", "eta0": rate, "penalty": "l1"}


def sklearn_regression(X, y, rate=None):
    own = {} if rate is None else _constant(rate)
    return _by_pieces(SGDRegressor(random_state=0, **own), X, y)


def sklearn_classification(X, y, rate=None):
    own = {} if rate is None else {"loss": "log_loss", **_constant(rate)}
    return _by_pieces(SGDClassifier(random_state=0, **own), X, y, classes=[0, 1])


def _settings(function, **choices):
    """Return the defaults and the grid of choices, each with its function of a stream."""
    grid = [{}]
    for name, values in choices.items():
        grid = [{**one, name: value} for one in grid for value in values]
    return [(one, partial(function, **one)) for one in ({}, *grid)]


PEERS = {
    "regression": {
        "river LinearRegression": _settings(river_regression, rate=(0.0005, 0.001, 0.002)),
        "scikit-learn SGDRegressor": _settings(sklearn_regression, rate=(0.001, 0.002, 0.004)),
    },
    "classification": {
        "river LogisticRegression": _settings(
            river_classification, rate=(0.00125, 0.0025, 0.005, 0.01, 0.02)
        ),
        "scikit-learn SGDClassifier": _settings(
            sklearn_classification, rate=(0.00125, 0.0025, 0.005, 0.01, 0.02)
        ),
    },
    "ratings": {
        f"river {kind}": _settings(
            partial(river_ratings, kind=kind), rate=(0.05, 0.07, 0.1, 0.14), l2=(0.0, 0.02)
        )
        for kind in ("BiasedMF", "FunkMF")
    },
}
