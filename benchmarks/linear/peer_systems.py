"""The systems that peers.py compares: how each is fitted, and the settings it may choose from.

A system is a function ``(X_train, y_train, X_test, y_test) -> Result``. X is dense or CSR, labels
are -1 and +1. To add one, write such a function and put ``@system(name, title, package)`` above it.

The peers choose their settings with ``best_of``: every setting of a small grid is fitted, and the
lowest error *on the test rows* wins. That is an oracle in their favour; no user has it. All but the
batch fits see every training row once, in the given order.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np


@dataclass(frozen=True)
class Result:
    """What one fit gave; ``seconds`` are training alone, ``facts`` are for the notes."""

    error: float  # per cent of the test rows
    seconds: float
    nonzeros: int  # coefficients, without the intercept
    settings: dict = field(default_factory=dict)
    facts: dict = field(default_factory=dict)


@dataclass(frozen=True)
class System:
    """One library: its function here, its name in the table, and where its version is found."""

    run: Callable
    title: str
    package: str


SYSTEMS: dict[str, System] = {}


def system(name, title, package):
    def register(run):
        SYSTEMS[name] = System(run, title, package)
        return run

    return register


def grid(**choices):
    """All combinations of the given choices, as a list of settings."""
    return [dict(zip(choices, c, strict=True)) for c in itertools.product(*choices.values())]


def best_of(fit, settings, X_test, y_test):
    """Fit with every setting; return the Result of the lowest test error.

    ``fit(**setting)`` returns the seconds of training, the coefficients, the intercept and a
    dictionary of facts. The best setting is fitted again, up to three times in all or five seconds,
    and the median of its seconds is reported. Another fact is how few nonzeros any setting has
    whose error is at most half a point above the lowest.
    """
    tried = []
    for setting in settings:
        seconds, coef, intercept, facts = fit(**setting)
        if np.isfinite(coef).all():
            wrong = np.where(X_test @ coef + intercept >= 0, 1.0, -1.0) != y_test
            nonzeros = np.count_nonzero(coef)
            tried.append(Result(100 * wrong.mean(), seconds, nonzeros, setting, facts))
    if not tried:
        raise ArithmeticError("every setting diverged")
    best = min(tried, key=lambda result: result.error)
    near = [result for result in tried if result.error <= best.error + 0.5]
    few = min(near, key=lambda result: result.nonzeros)
    fewest = {"fewest within 0.5 points": f"{few.nonzeros:,} at {few.error:.2f}%"}
    times = [best.seconds]
    while len(times) < 3 and sum(times) < 5.0:
        times.append(fit(**best.settings)[0])
    return replace(best, seconds=median(times), facts=best.facts | fewest)


# ---- scikit-learn -------------------------------------------------------------------------------

STEPS = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]
RATES = [{"learning_rate": "optimal"}, *grid(learning_rate=["constant", "invscaling"], eta0=STEPS)]
ALPHAS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1]


def sgd(loss, settings, X_train, y_train, X_test, y_test):
    """One call of partial_fit: one pass over the rows, in their order."""
    from sklearn.linear_model import SGDClassifier

    def fit(**setting):
        model = SGDClassifier(loss=loss, shuffle=False, power_t=0.5, **setting)
        started = perf_counter()
        model.partial_fit(X_train, y_train, classes=[-1.0, 1.0])
        return perf_counter() - started, model.coef_[0], model.intercept_[0], {}

    return best_of(fit, settings, X_test, y_test)


def sgd_settings(**choices):
    return [s | rate for s in grid(alpha=ALPHAS, **choices) for rate in RATES]


@system("sgd-log", "scikit-learn SGDClassifier, log loss", "scikit-learn")
def sgd_log(*problem):
    return sgd("log_loss", sgd_settings(average=[False, True]), *problem)


@system("sgd-default", "scikit-learn SGDClassifier, log loss, defaults", "scikit-learn")
def sgd_default(*problem):
    return sgd("log_loss", [{}], *problem)


@system("sgd-huber", "scikit-learn SGDClassifier, modified Huber", "scikit-learn")
def sgd_huber(*problem):
    return sgd("modified_huber", sgd_settings(average=[False, True]), *problem)


@system("sgd-log-l1", "scikit-learn SGDClassifier, log loss, l1", "scikit-learn")
def sgd_log_l1(*problem):
    return sgd("log_loss", sgd_settings(penalty=["l1"]), *problem)


@system("sgd-huber-l1", "scikit-learn SGDClassifier, modified Huber, l1", "scikit-learn")
def sgd_huber_l1(*problem):
    return sgd("modified_huber", sgd_settings(penalty=["l1"]), *problem)


@system("passive-aggressive", "scikit-learn SGDClassifier, passive-aggressive I", "scikit-learn")
def passive_aggressive(*problem):
    rule = {"penalty": [None], "learning_rate": ["pa1"], "average": [False, True]}
    return sgd("hinge", grid(**rule, eta0=STEPS), *problem)


@system("batch-l1", "scikit-learn LogisticRegression, l1, batch", "scikit-learn")
def batch_l1(*problem):
    return liblinear(grid(C=[0.3, 1.0, 3.0, 10.0]), *problem)


@system("batch-l1-default", "scikit-learn LogisticRegression, l1, batch, defaults", "scikit-learn")
def batch_l1_default(*problem):
    return liblinear(grid(C=[1.0]), *problem)


def liblinear(settings, X_train, y_train, X_test, y_test):
    """All rows at once, until it has converged."""
    from sklearn.linear_model import LogisticRegression

    def fit(C):
        model = LogisticRegression(l1_ratio=1.0, C=C, solver="liblinear", random_state=0)
        started = perf_counter()
        model.fit(X_train, y_train)
        seconds = perf_counter() - started
        coef, intercept = model.coef_[0], model.intercept_[0]
        margins = y_train * (X_train @ coef + intercept)
        facts = {
            "l1 norm": float(np.abs(coef).sum()),
            "training log loss": float(np.logaddexp(0.0, -margins).mean()),
            "iterations": int(model.n_iter_[0]),
        }
        return seconds, coef, intercept, facts

    return best_of(fit, settings, X_test, y_test)


# ---- river --------------------------------------------------------------------------------------


def named_values(X):
    """The rows one after the other, each as its columns and its values."""
    for i in range(X.shape[0]):
        if isinstance(X, np.ndarray):
            yield range(X.shape[1]), X[i].tolist()
        else:
            row = slice(X.indptr[i], X.indptr[i + 1])
            yield X.indices[row].tolist(), X.data[row].tolist()


RATES_RIVER = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]


@system("river", "river LogisticRegression, SGD", "river")
def river(*problem):
    return river_sgd(grid(rate=RATES_RIVER, decay=[False, True]), *problem)


@system("river-default", "river LogisticRegression, SGD, defaults", "river")
def river_default(*problem):
    return river_sgd([{"rate": 0.01, "decay": False}], *problem)


def river_sgd(settings, X_train, y_train, X_test, y_test):
    """learn_one on dictionaries, each made while the clock stands still."""
    from river import linear_model, optim

    labels = (y_train > 0).tolist()

    def fit(rate, decay):
        step = optim.schedulers.InverseScaling(rate, power=0.5) if decay else rate
        model = linear_model.LogisticRegression(optim.SGD(step), intercept_lr=step)
        seconds = 0.0
        for (columns, values), label in zip(named_values(X_train), labels, strict=True):
            row = dict(zip(columns, values, strict=True))
            started = perf_counter()
            model.learn_one(row, label)
            seconds += perf_counter() - started
        coef = np.zeros(X_train.shape[1])
        coef[list(model.weights)] = list(model.weights.values())
        return seconds, coef, model.intercept, {}

    return best_of(fit, settings, X_test, y_test)


# ---- Vowpal Wabbit ------------------------------------------------------------------------------

VW_CONSTANT = 11650396  # where it keeps the intercept


def vw(options, settings, X_train, y_train, X_test, y_test):
    """Its own driver on its binary cache of the rows: reading the cache counts, text does not."""
    from vowpalwabbit import Workspace

    def fit(**setting):
        given = " ".join(f"--{key} {value}" for key, value in setting.items())
        started = perf_counter()
        model = Workspace(f"--quiet {rows} {options} {given}")
        seconds = perf_counter() - started
        coef = np.array([model.get_weight(j) for j in range(X_train.shape[1])])
        intercept = model.get_weight(VW_CONSTANT)
        model.finish()
        return seconds, coef, intercept, {}

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "rows.txt"
        rows = f"--data {text} --cache_file {text}.cache"
        with text.open("w") as file:
            for (columns, values), label in zip(named_values(X_train), y_train, strict=True):
                pairs = map("%d:%.8g".__mod__, zip(columns, values, strict=True))
                file.write(f"{label:g} | {' '.join(pairs)}\n")
        Workspace(f"--quiet {rows} --noop").finish()  # writes the cache
        return best_of(fit, settings, X_test, y_test)


RATES_VW = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]


@system("vw-logistic", "Vowpal Wabbit, logistic", "vowpalwabbit")
def vw_logistic(*problem):
    return vw("--loss_function logistic", grid(learning_rate=RATES_VW), *problem)


@system("vw-default", "Vowpal Wabbit, logistic, defaults", "vowpalwabbit")
def vw_default(*problem):
    return vw("--loss_function logistic", [{}], *problem)


@system("vw-hinge", "Vowpal Wabbit, hinge", "vowpalwabbit")
def vw_hinge(*problem):
    return vw("--loss_function hinge", grid(learning_rate=RATES_VW), *problem)


@system("vw-ftrl", "Vowpal Wabbit, logistic, FTRL", "vowpalwabbit")
def vw_ftrl(*problem):
    return vw("--loss_function logistic --ftrl", grid(ftrl_alpha=RATES_VW), *problem)


@system("vw-ftrl-l1", "Vowpal Wabbit, logistic, FTRL, l1", "vowpalwabbit")
def vw_ftrl_l1(*problem):
    settings = grid(ftrl_alpha=RATES_VW, l1=[0.3, 1.0, 3.0])
    return vw("--loss_function logistic --ftrl", settings, *problem)
