"""onlinefw's lines in the table of peers.py: the paper's settings, and the library's own.

Radii are the paper's, the default (found by predicting each batch before learning from it), or the
best of a grid found that way (RadiusSearch: the smallest within a standard error of the best). The
grids, and 700 of the K-sparse vectors, were set by hand, by those who knew the data; so was what
``"ksparse"`` takes by default, a 64th of the features, with these documents in view. Documents
(sparse rows) are learned on an l1 ball or a ball of K-sparse vectors, matrices on a trace-norm
ball.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
from peer_systems import Result, system
from scipy.sparse import issparse

import onlinefw as ofw
from onlinefw._words import gap_share
from onlinefw.sets import KSparse
from onlinefw.steps import Power


def fitted(model, X_train, y_train, X_test, y_test):
    """Fit, and describe the fit (of the best model, if several were fitted).

    Dense rows are given, and kept, in single precision.
    """
    if not issparse(X_train):
        X_train, X_test = X_train.astype(np.float32), X_test.astype(np.float32)
    started = perf_counter()
    model.fit(X_train, y_train)
    seconds = perf_counter() - started
    best = getattr(model, "best_estimator_", model)
    facts = {"gap / loss": gap_share(best.gap_, best.mean_loss_)}
    if hasattr(model, "best_radius_"):
        facts |= {"radius": model.best_radius_, "of": str(model.radii_.tolist())}
    wrong = 100.0 * np.mean(model.predict(X_test) != y_test)
    return Result(wrong, seconds, np.count_nonzero(best.coef_), {}, facts)


def at_the_papers_radius(loss, data, **settings):
    """An l1 ball for documents, a trace-norm ball for matrices, of the paper's radii."""
    l1_radius, trace_radius = {"sigmoid": (100.0, 1.0), "logistic": (1000.0, 10.0)}[loss]
    if issparse(data[0]):
        model = ofw.FrankWolfeClassifier("l1", l1_radius, loss=loss, **settings)
    else:
        model = ofw.FrankWolfeClassifier(
            "trace", trace_radius, loss=loss, coef_shape=(30, 30), **settings
        )
    return fitted(model, *data)


def single_steps(loss, data):
    """The paper's setting: one step a round with step t^-0.75, no intercept."""
    size = 5 if issparse(data[0]) else 10
    settings = {"inner_steps": 1, "step": Power(0.75), "fit_intercept": False}
    return at_the_papers_radius(loss, data, batch_size=size, **settings)


@system("ofw-sigmoid-paper", "**onlinefw**, sigmoid, the paper's single steps", "onlinefw")
def sigmoid_paper(*data):
    return single_steps("sigmoid", data)


@system("ofw-logistic-paper", "**onlinefw**, logistic, the paper's single steps", "onlinefw")
def logistic_paper(*data):
    return single_steps("logistic", data)


@system("ofw-logistic", "**onlinefw**, logistic, the paper's radius", "onlinefw")
def logistic(*data):
    return at_the_papers_radius("logistic", data)


@system("ofw-sigmoid", "**onlinefw**, sigmoid, the paper's radius", "onlinefw")
def sigmoid(*data):
    return at_the_papers_radius("sigmoid", data)


@system("ofw-logistic-default", "**onlinefw**, logistic, the default set and radius", "onlinefw")
def logistic_default(*data):
    return by_default("logistic", data)


@system("ofw-sigmoid-default", "**onlinefw**, sigmoid, the default set and radius", "onlinefw")
def sigmoid_default(*data):
    return by_default("sigmoid", data)


def by_default(loss, data):
    """Nothing is chosen but the loss; matrices have a trace-norm ball."""
    if issparse(data[0]):
        return fitted(ofw.FrankWolfeClassifier(loss=loss), *data)
    return fitted(ofw.FrankWolfeClassifier("trace", loss=loss, coef_shape=(30, 30)), *data)


@system(
    "ofw-logistic-ksparse",
    '**onlinefw**, logistic, `"ksparse"` (a 64th: chosen on such documents), the default radius',
    "onlinefw",
)
def logistic_ksparse(*data):
    return sparse_by_default("logistic", data)


@system(
    "ofw-sigmoid-ksparse",
    '**onlinefw**, sigmoid, `"ksparse"` (a 64th: chosen on such documents), the default radius',
    "onlinefw",
)
def sigmoid_ksparse(*data):
    return sparse_by_default("sigmoid", data)


def sparse_by_default(loss, data):
    """For documents: a ball of sparse vectors, with as many coefficients as the name has."""
    if not issparse(data[0]):
        raise ValueError("for documents")
    return fitted(ofw.FrankWolfeClassifier("ksparse", loss=loss), *data)


@system("ofw-logistic-search", "**onlinefw**, logistic, best of 5 radii by hand", "onlinefw")
def logistic_search(*data):
    sparse = issparse(data[0])
    radii = [250.0, 500.0, 1000.0, 2000.0, 4000.0] if sparse else [1.0, 2.0, 4.0, 8.0, 16.0]
    model = ofw.FrankWolfeClassifier(
        "l1" if sparse else "trace",
        loss="logistic",
        coef_shape=None if sparse else (30, 30),
        inner_steps="auto" if sparse else 1,
        step="line-search",
    )
    return fitted(ofw.RadiusSearch(model, radii, standard_errors=1.0), *data)


@system(
    "ofw-sigmoid-search",
    "**onlinefw**, sigmoid, by hand: `KSparse(700)` and 8 radii (matrices: trace norm, 5 radii)",
    "onlinefw",
)
def sigmoid_search(*data):
    """On documents: 700-sparse vectors, with away steps, which keep the model sparse."""
    if issparse(data[0]):
        model = ofw.FrankWolfeClassifier(
            KSparse(700, 1.0), away_steps=True, inner_steps=5, step="line-search"
        )
        radii = [0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0]
    else:
        model = ofw.FrankWolfeClassifier(
            "trace", coef_shape=(30, 30), inner_steps=1, step="line-search"
        )
        radii = [0.25, 0.5, 1.0, 2.0, 4.0]
    return fitted(ofw.RadiusSearch(model, radii, standard_errors=1.0), *data)
