"""Estimators of every kind, in many settings, with a stream to learn from."""

import numpy as np
import pytest
from scipy import sparse

import onlinefw as ofw
from onlinefw.losses import Correntropy, Sigmoid
from onlinefw.sets import Box, L1Ball, Product, Simplex, TraceNormBall
from onlinefw.steps import Power

N_FEATURES = 6
ROUNDS = 12

REGRESSORS = {
    "sums": lambda: ofw.FrankWolfeRegressor(radius=2.0),
    "rows": lambda: ofw.FrankWolfeRegressor(radius=2.0, loss=Correntropy(2.0)),
    "reservoir": lambda: ofw.FrankWolfeRegressor(
        radius=2.0, past="reservoir", max_past=25, random_state=np.random.default_rng(3)
    ),
    "recent": lambda: ofw.FrankWolfeRegressor(
        radius=1.0, past="recent", max_past=25, random_state=1
    ),
    "racing": lambda: ofw.FrankWolfeRegressor(),
    "racing rows": lambda: ofw.FrankWolfeRegressor(loss="correntropy", scale=True),
    "away steps": lambda: ofw.FrankWolfeRegressor(Simplex(), away_steps=True, step=Power(0.7)),
    "box, away steps": lambda: ofw.FrankWolfeRegressor(
        Box(-np.ones(N_FEATURES), np.ones(N_FEATURES)), away_steps=True, loss="correntropy"
    ),
    "product": lambda: ofw.FrankWolfeRegressor(Product([(L1Ball(1.0), 2), (L1Ball(2.0), 4)])),
    "matrix-shaped": lambda: ofw.FrankWolfeRegressor(TraceNormBall(2.0), coef_shape=(2, 3)),
    "plain steps": lambda: ofw.FrankWolfeRegressor(
        "l2", 2.0, inner_steps=2, history_size=5, path_size=3
    ),
    "means": lambda: ofw.FrankWolfeRegressor(radius=1.0, loss="bernoulli"),
    "summary": lambda: ofw.FrankWolfeRegressor(radius=2.0, past="summary"),
    "fading sums": lambda: ofw.FrankWolfeRegressor(radius=2.0, half_life=1.0),
    "fading summary": lambda: ofw.FrankWolfeRegressor(radius=2.0, past="summary", half_life=9.0),
}
CLASSIFIERS = {
    "three classes racing": lambda: ofw.FrankWolfeClassifier(),
    "two classes": lambda: ofw.FrankWolfeClassifier(radius=3.0, loss="logistic"),
    "three classes": lambda: ofw.FrankWolfeClassifier(radius=3.0, loss=Sigmoid(3.0)),
    "bernoulli": lambda: ofw.FrankWolfeClassifier(
        radius=3.0, loss="bernoulli", past="reservoir", max_past=20, random_state=0
    ),
    "three classes, fading": lambda: ofw.FrankWolfeClassifier(loss="logistic", half_life=1.1),
    "fading sample": lambda: ofw.FrankWolfeClassifier(
        radius=3.0, past="reservoir", max_past=20, random_state=0, half_life=1.2
    ),
    "three classes, summary": lambda: ofw.FrankWolfeClassifier(past="summary"),
}
SEARCHES = {
    "sums": lambda: ofw.RadiusSearch(ofw.FrankWolfeRegressor(), standard_errors=0.5),
    "rows": lambda: ofw.RadiusSearch(
        ofw.FrankWolfeRegressor(loss="correntropy"), radii=[0.5, 1.0, 2.0], scoring="r2"
    ),
    "of classifiers": lambda: ofw.RadiusSearch(
        ofw.FrankWolfeClassifier(L1Ball(1.0), loss="logistic"), radii=np.array([1.0, 4.0])
    ),
    "fading": lambda: ofw.RadiusSearch(
        ofw.FrankWolfeRegressor(half_life=1.0), radii=[0.5, 1.0, 2.0]
    ),
    "summary": lambda: ofw.RadiusSearch(ofw.FrankWolfeRegressor(past="summary"), radii=[1.0, 4.0]),
}
COMPLETIONS = {
    "auto": lambda: ofw.FrankWolfeMatrixCompletion(shape=(9, 8)),
    "auto, joint": lambda: ofw.FrankWolfeMatrixCompletion(offsets="joint", weighting="smoothed"),
    "ridge": lambda: ofw.FrankWolfeMatrixCompletion(
        20.0, corrective=ofw.RidgeSweeps(rank=2), offsets="biases", clip=True, dtype="float64"
    ),
    "line search": lambda: ofw.FrankWolfeMatrixCompletion(20.0, step="line-search", max_atoms=4),
    "labels": lambda: ofw.FrankWolfeMatrixCompletion(20.0, loss="logistic"),
    "biases": lambda: ofw.FrankWolfeMatrixCompletion(
        20.0,
        offsets=ofw.objectives.RunningBiases(1.0),
        loss=Correntropy(4.0),
        random_state=np.random.default_rng(1),
        certify_every=3,
    ),
    "ids": lambda: ofw.FrankWolfeMatrixCompletion(corrective="factors"),
}
RECOMMENDERS = {
    "auto": lambda: ofw.FrankWolfeRecommender(rank=2),
    "fading": lambda: ofw.FrankWolfeRecommender(rank=2, ridge=(0.5, 0.1), half_life=9.0),
}
ZOO = {
    **{f"regressor, {name}": make for name, make in REGRESSORS.items()},
    **{f"classifier, {name}": make for name, make in CLASSIFIERS.items()},
    **{f"search, {name}": make for name, make in SEARCHES.items()},
    **{f"completion, {name}": make for name, make in COMPLETIONS.items()},
    **{f"recommender, {name}": make for name, make in RECOMMENDERS.items()},
}


#: One of every kind, for what holds for all and takes long; the others are marked slow there.
FEW = {
    "regressor, reservoir",
    "classifier, three classes",
    "search, rows",
    "completion, auto",
    "recommender, auto",
}


def zoo():
    """Return all names as parameters of a test."""
    return [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in ZOO]


def stream(name, seed):
    """Return the batches that an estimator of this name learns from, as keyword arguments."""
    rng = np.random.default_rng(seed)
    return [_batch(name, rng, k) for k in range(ROUNDS)]


def _batch(name, rng, k):
    n = int(rng.integers(4, 12))
    if name.startswith("recommender"):
        return {"X": np.column_stack((rng.integers(3 + k, size=n), rng.integers(8, size=n)))}
    if name.startswith("completion"):
        X = np.column_stack((rng.integers(3 + k, size=n), rng.integers(8, size=n)))
        y = rng.standard_normal(n) + X[:, 0] % 3
        if "ids" in name:
            X = np.array([[f"p{row}", 7 * column] for row, column in X.tolist()], dtype=object)
        return {"X": X, "y": np.where(y > 1.0, 1.0, -1.0) if "labels" in name else y}
    X = rng.standard_normal((n, N_FEATURES))
    X[rng.random(X.shape) < 0.4] = 0.0
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n)
    if "rows" in name or "two" in name:
        X = sparse.csr_array(X)
    if "classif" in name:
        classes = ["a", "b", "c"] if "three" in name else ["a", "b"]
        labels = np.array(classes)[np.clip(np.round(y), 0, len(classes) - 1).astype(int)]
        return {"X": X, "y": labels, "classes": classes}
    return {"X": X, "y": (y > 0).astype(float) if "means" in name else y}


def all_told(model, X):
    """Return the answers that a round changes, none of which is computed anew when asked for."""
    told = [model.predict(X)]
    if hasattr(model, "history_"):
        told += [model.history_["loss"], model.history_["gap"]]
    return told


def answers(model, X):
    """Return everything that a model answers, as a list of arrays and values."""
    if isinstance(model, ofw.RadiusSearch):
        best = model.best_estimator_
        return [
            model.radii_,
            model.scores_,
            model.best_radius_,
            model.predict(X),
            *answers(best, X),
        ]
    # A state has moves carried out that would have waited for a read: reads may differ by one.
    history = {k: v for k, v in model.history_.items() if k not in ("seconds", "reads")}
    told = [model.predict(X), model.n_rounds_, *history.values()]
    if isinstance(model, ofw.FrankWolfeRecommender):
        best = model.recommend(model.users_, 3)
        told += [model.users_, model.items_, model.popularity_, *model.factors_, *best]
    elif isinstance(model, ofw.FrankWolfeMatrixCompletion):
        rows = range(model.shape_[0]) if model.row_ids_ is None else model.row_ids_
        best = [part for row in rows for part in model.recommend(row, 3)]
        beyond = model.predict_entries([0, 1000, 1000], [1000, 0, 1000], unknown="fallback")
        told += [
            list(rows),
            model.col_ids_,
            *model.factors_,
            model.rank_,
            model.radius_,
            beyond,
            *best,
        ]
    else:
        path = model.path_
        told += [model.coef_, model.intercept_, path["t"], path["coef"].toarray()]
    if isinstance(model, ofw.FrankWolfeClassifier):
        told += [model.classes_, model.decision_function(X)]
        told += [model.predict_proba(X)] if hasattr(model, "predict_proba") else []
    return [*told, model.gap_]


def assert_same_answers(one, other, X):
    # Local corrections predict with a mixture of models, their files with its sum.
    exact = getattr(one, "can_learn_", True) == getattr(other, "can_learn_", True)
    pairs = zip(answers(one, X), answers(other, X), strict=True)
    for a, b in pairs:
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind == "f" and not exact:
            np.testing.assert_allclose(a, b, 2e-6, 1e-6)
            continue
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
