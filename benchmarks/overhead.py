"""What one round costs beside its arithmetic: calls of our own functions, and microseconds.

Everything is so small that little but overhead is measured: one rating or click a round with 1,000
stored (what chains and tastes take is in it), one row a round with 10 features. Beside it, in the
same run, river's ``learn_one`` and ``predict_one`` and scikit-learn's SGD for the same rows.

    python benchmarks/overhead.py [--write]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onlinefw as ofw

sys.path.insert(0, str(Path(__file__).parent))
from table import write_table

PACKAGE = str(Path(ofw.__file__).parent)
#: Ratings that are stored before; rows are few, so that sums over them take no time.
STORED, ROWS, ROUNDS, FEATURES = 1000, 50, 400, 10


def own_calls(act: Callable[[], Any]) -> tuple[int, int]:
    """Count the calls of functions of this package, and the files in which these are."""
    called: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            called.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return len(called), len(set(called))


def measure(act: Callable[[int], Any]) -> tuple[float, float, int, int]:
    """Return the median and the 99th percentile in microseconds, and the median calls and files."""
    for k in range(50):
        act(k)
    seconds = []
    for k in range(50, ROUNDS):
        start = time.perf_counter()
        act(k)
        seconds.append(time.perf_counter() - start)
    found = [own_calls(lambda k=k: act(k)) for k in range(ROUNDS, ROUNDS + 25)]
    micro = 1e6 * np.array(seconds)
    calls, files = (int(n) for n in np.median(found, axis=0))
    return float(np.median(micro)), float(np.percentile(micro, 99)), calls, files


def data(seed: int = 0) -> tuple[Any, ...]:
    """Return rows with targets and labels, and ratings."""
    rng = np.random.default_rng(seed)
    n = STORED + ROUNDS + 100
    X = rng.standard_normal((n, FEATURES))
    y = X[:, 0] - 2 * X[:, 1] + rng.standard_normal(n)
    pairs = np.column_stack((rng.integers(100, size=n), rng.integers(80, size=n)))
    stars = rng.integers(1, 6, n).astype(float)
    return X, y, np.where(y > 0, 1, -1), pairs, stars


def systems() -> list[tuple[str, str, Callable[[int], Any]]]:
    """Return (what, who, act) of everything measured."""
    X, y, labels, pairs, stars = data()
    ratings = ofw.FrankWolfeMatrixCompletion.paper(200.0, shape=(100, 80))
    default, learning = (ofw.FrankWolfeMatrixCompletion() for _ in range(2))
    for one in (ratings, default, learning):
        one.partial_fit(pairs[:STORED], stars[:STORED])
    clicks, clicking = (ofw.FrankWolfeRecommender() for _ in range(2))
    for one in (clicks, clicking):
        one.partial_fit(pairs[:STORED])
    regressor = ofw.FrankWolfeRegressor(radius=3.0, inner_steps=1)
    classifier = ofw.FrankWolfeClassifier(radius=3.0, inner_steps=1)
    regressor.partial_fit(X[:ROWS], y[:ROWS])
    classifier.partial_fit(X[:ROWS], labels[:ROWS], classes=[-1, 1])
    rows, at = [X[k : k + 1] for k in range(len(X))], STORED
    found = [
        (
            "ratings, partial_fit",
            "onlinefw, the paper's set-up",
            lambda k: ratings.partial_fit(pairs[at + k : at + k + 1], stars[at + k : at + k + 1]),
        ),
        (
            "ratings, partial_fit",
            "onlinefw, all defaults",
            lambda k: default.partial_fit(pairs[at + k : at + k + 1], stars[at + k : at + k + 1]),
        ),
        (
            "ratings, learn",
            "onlinefw, all defaults",
            lambda k: learning.learn(pairs[at + k : at + k + 1], stars[at + k : at + k + 1]),
        ),
        (
            "clicks, partial_fit",
            "onlinefw",
            lambda k: clicks.partial_fit(pairs[at + k : at + k + 1]),
        ),
        ("clicks, learn", "onlinefw", lambda k: clicking.learn(pairs[at + k : at + k + 1])),
        (
            "ratings, predict",
            "onlinefw, the paper's set-up",
            lambda k: ratings.predict(pairs[k : k + 1]),
        ),
        ("ratings, predict", "onlinefw, all defaults", lambda k: default.predict(pairs[k : k + 1])),
        (
            "regressor, partial_fit",
            "onlinefw",
            lambda k: regressor.partial_fit(rows[at + k], y[at + k : at + k + 1]),
        ),
        ("regressor, predict", "onlinefw", lambda k: regressor.predict(rows[k])),
        (
            "classifier, partial_fit",
            "onlinefw",
            lambda k: classifier.partial_fit(rows[at + k], labels[at + k : at + k + 1]),
        ),
        ("classifier, predict", "onlinefw", lambda k: classifier.predict(rows[k])),
    ]
    return found + peers(X, y, labels, pairs, stars)


def peers(X: Any, y: Any, labels: Any, pairs: Any, stars: Any) -> list[tuple[str, str, Any]]:
    """Return what others do with the same rows."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    rows, at = [X[k : k + 1] for k in range(len(X))], STORED
    sgd, sgdc = SGDRegressor(), SGDClassifier(loss="log_loss")
    sgd.partial_fit(X[:ROWS], y[:ROWS])
    sgdc.partial_fit(X[:ROWS], labels[:ROWS], classes=[-1, 1])
    found: list[tuple[str, str, Any]] = [
        (
            "regressor, partial_fit",
            "scikit-learn SGD",
            lambda k: sgd.partial_fit(rows[at + k], y[at + k : at + k + 1]),
        ),
        ("regressor, predict", "scikit-learn SGD", lambda k: sgd.predict(rows[k])),
        (
            "classifier, partial_fit",
            "scikit-learn SGD",
            lambda k: sgdc.partial_fit(rows[at + k], labels[at + k : at + k + 1]),
        ),
        ("classifier, predict", "scikit-learn SGD", lambda k: sgdc.predict(rows[k])),
    ]
    try:
        from river import linear_model, optim, reco
    except ImportError:
        return found
    dicts = [dict(enumerate(row.tolist())) for row in X]
    linear, logistic = linear_model.LinearRegression(), linear_model.LogisticRegression()
    # The settings of river's own tutorial on matrix factorisation.
    biased = reco.BiasedMF(
        n_factors=10,
        bias_optimizer=optim.SGD(0.025),
        latent_optimizer=optim.SGD(0.05),
        weight_initializer=optim.initializers.Zeros(),
        latent_initializer=optim.initializers.Normal(mu=0.0, sigma=0.1, seed=73),
    )
    users, items = pairs[:, 0].tolist(), pairs[:, 1].tolist()
    for k in range(STORED):
        biased.learn_one(user=users[k], item=items[k], y=stars[k])
    return [
        *found,
        ("regressor, partial_fit", "river", lambda k: linear.learn_one(dicts[at + k], y[at + k])),
        ("regressor, predict", "river", lambda k: linear.predict_one(dicts[k])),
        (
            "classifier, partial_fit",
            "river",
            lambda k: logistic.learn_one(dicts[at + k], bool(labels[at + k] > 0)),
        ),
        ("classifier, predict", "river", lambda k: logistic.predict_one(dicts[k])),
        (
            "ratings, partial_fit",
            "river",
            lambda k: biased.learn_one(user=users[at + k], item=items[at + k], y=stars[at + k]),
        ),
        (
            "ratings, predict",
            "river",
            lambda k: biased.predict_one(user=users[k], item=items[k]),
        ),
    ]


def main() -> None:
    warnings.simplefilter("ignore")
    lines = [
        "Asked of `learn`, for one rating and for one click: a median of at most 60 microseconds, "
        "30 calls of our own functions, in 12 files. Before chains (commit 7730904) one rating "
        "passed 80 in 28.",
        "",
        "| what | who | median, us | 99%, us | own calls | in files |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for what, who, act in sorted(systems(), key=lambda one: one[:2]):
        median, tail, calls, files = measure(act)
        own = f"{calls} | {files}" if who.startswith("onlinefw") else " | "
        lines.append(f"| {what} | {who} | {median:.0f} | {tail:.0f} | {own} |")
        print(lines[-1], flush=True)
    if "--write" in sys.argv:
        title = "What one round costs beside its arithmetic"
        path = Path(__file__).with_suffix(".md")
        write_table(path, title, lines, ["scikit-learn", "river"])


if __name__ == "__main__":
    main()
