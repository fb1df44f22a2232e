"""Rows as they happen, next to stochastic gradients, and what a schedule of corrections costs.

    ONLINEFW_DATA=folder python benchmarks/linear/rows.py [part ...] [--write]

Everything in one run, one thread of BLAS. ``--write`` replaces rows.md; parts: documents, growth,
search, matrices, single, dense, stream, round. The documents are those of rcv1v2-subset, in one
random order.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.linalg.blas import dgemm
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from threadpoolctl import threadpool_limits

import onlinefw as ofw
from onlinefw.objectives import RunningLeastSquares
from onlinefw.sets import L1Ball

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from classification_data import flip_labels, synthetic  # noqa: E402
from table import write_table  # noqa: E402

RADIUS, CLASSES = 3000.0, [-1.0, 1.0]


def timed(act, *args, **options):
    began = perf_counter()
    answer = act(*args, **options)
    return answer, perf_counter() - began


def documents():
    rows = ofw.datasets.fetch_rcv1v2_subset()
    order = np.random.default_rng(0).permutation(len(rows.y_train))
    return rows.X_train[order], rows.y_train[order], rows.X_test, rows.y_test


def percent(wrong):
    return f"{100.0 * np.mean(wrong):.2f}%"


# Documents, one at a time -------------------------------------------------------------------------


def part_documents():
    X, y, X_test, y_test = documents()
    lines = [
        "## Documents, one row at a time",
        "",
        f"{len(y):,} rows, each predicted before it is learned; liblinear at about that l1 norm.",
        "",
        "| system | rows/s | seconds | progressive error | test error | coefficients | gap |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for _ in range(2):  # the first time kernels are compiled
        model = ofw.FrankWolfeClassifier("l1", RADIUS, loss="logistic")
        predicted, seconds = timed(model.learn, X, y, classes=CLASSES)
        _, more = timed(model.correct)
    share = f"{100.0 * model.gap_ / model.mean_loss_:.2f}% of the loss"
    lines.append(
        f"| onlinefw, `learn`, radius {RADIUS:.0f} | {len(y) / seconds:,.0f} | {seconds:.2f}, "
        f"`correct` {more:.2f} | {percent(predicted != y)} "
        f"| {percent(model.predict(X_test) != y_test)} "
        f"| {np.count_nonzero(model.coef_):,} | {share} |"
    )
    ours = seconds + more
    for _ in range(2):
        model = ofw.FrankWolfeClassifier("l1", RADIUS, loss="logistic", past="summary")
        predicted, seconds = timed(model.learn, X, y, classes=CLASSES)
    lines.append(
        f'| onlinefw, `past="summary"` | {len(y) / seconds:,.0f} | {seconds:.2f} '
        f"| {percent(predicted != y)} | {percent(model.predict(X_test) != y_test)} "
        f"| {np.count_nonzero(model.coef_):,} | |"
    )
    lines += _stochastic(X, y, X_test, y_test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = []
        for _ in range(3):
            batch = LogisticRegression(C=2.4, l1_ratio=1.0, solver="liblinear")
            fits.append(timed(batch.fit, X, y)[1])
    lines.append(
        f"| scikit-learn liblinear, batch, l1 norm {np.abs(batch.coef_).sum():.0f} | | "
        f"{np.median(fits):.2f} | | {percent(batch.predict(X_test) != y_test)} "
        f"| {np.count_nonzero(batch.coef_):,} | |"
    )
    ratio = ours / np.median(fits)
    lines += [
        "",
        f"The pass and `correct` take {ratio:.1f} times one batch fit (asked: at most 4).",
    ]
    return lines


def _stochastic(X, y, X_test, y_test):
    from river import linear_model, optim

    lines = []
    peers = {
        "scikit-learn SGD, log loss, defaults": SGDClassifier(loss="log_loss"),
        "scikit-learn SGD, log loss, rate 10": SGDClassifier(
            loss="log_loss", alpha=1e-6, learning_rate="constant", eta0=10.0
        ),
    }
    for name, model in peers.items():
        wrong = np.empty(len(y), bool)

        def stream(model=model, wrong=wrong):
            for k in range(len(y)):
                row = X[k : k + 1]
                wrong[k] = k > 0 and model.predict(row)[0] != y[k]
                model.partial_fit(row, y[k : k + 1], classes=CLASSES)

        _, seconds = timed(stream)
        lines.append(
            f"| {name}, `predict` and `partial_fit` | {len(y) / seconds:,.0f} | {seconds:.2f} | "
            f"{percent(wrong)} | {percent(model.predict(X_test) != y_test)} "
            f"| {np.count_nonzero(model.coef_):,} | |"
        )
    rows = [
        dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    tests = [
        dict(zip(X_test.indices[a:b].tolist(), X_test.data[a:b].tolist(), strict=True))
        for a, b in zip(X_test.indptr[:-1], X_test.indptr[1:], strict=True)
    ]
    rules = {
        "river LogisticRegression, SGD(1)": optim.SGD(1.0),
        "river LogisticRegression, FTRL(alpha 3, l1 0.3)": optim.FTRLProximal(alpha=3.0, l1=0.3),
    }
    for name, rule in rules.items():
        model, wrong = linear_model.LogisticRegression(rule), np.empty(len(y), bool)

        def stream(model=model, wrong=wrong):
            for k, row in enumerate(rows):
                wrong[k] = model.predict_one(row) is not bool(y[k] > 0)
                model.learn_one(row, bool(y[k] > 0))

        _, seconds = timed(stream)
        said = np.array([model.predict_one(row) for row in tests])
        used = sum(1 for value in model.weights.values() if value)
        lines.append(
            f"| {name} | {len(y) / seconds:,.0f} | {seconds:.2f} | {percent(wrong)} "
            f"| {percent(said != (y_test > 0))} | {used:,} | |"
        )
    return lines


def part_growth():
    X, y, X_test, y_test = documents()
    lines = [
        "## How often to correct",
        "",
        "The same documents, one at a time, radius 3000; so many candidates may enter at once.",
        "",
        "| growth | candidates | seconds | progressive error | test error after `correct` |",
        "| --- | --- | --- | --- | --- |",
    ]
    for growth in (1.05, 1.1, 1.2, 1.3, 1.5, 2.0):
        for candidates in (50, 300) if growth in (1.1, 1.3) else (300,):
            corrective = ofw.NewtonSteps(candidates, growth)
            model = ofw.FrankWolfeClassifier("l1", RADIUS, loss="logistic", corrective=corrective)
            predicted, seconds = timed(model.learn, X, y, classes=CLASSES)
            model.correct()
            lines.append(
                f"| {growth} | {candidates} | {seconds:.2f} | {percent(predicted != y)} "
                f"| {percent(model.predict(X_test) != y_test)} |"
            )
    return lines


def part_search():
    X, y, X_test, y_test = documents()
    flipped = np.where(np.random.default_rng(0).random(len(y)) < 0.25, -y, y)
    lines = [
        "## The radius found on the way",
        "",
        'The defaults: `radius="auto"`, twelve radii that the data suggest, batches of 256.',
        "",
        "| set | loss | flipped | seconds | test error | coefficients | radius | it alone, s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    ofw.FrankWolfeClassifier("ksparse", 10.0).fit(X[:600], y[:600])
    kinds = [(kind, loss) for kind in ("l1", "ksparse") for loss in ("logistic", "sigmoid")]
    for kind, loss in kinds:
        for share, labels in (("0%", y), ("25%", flipped)):
            model, seconds = timed(ofw.FrankWolfeClassifier(kind, loss=loss).fit, X, labels)
            radius = model.radius_
            _, alone = timed(ofw.FrankWolfeClassifier(kind, radius, loss=loss).fit, X, labels)
            lines.append(
                f"| {kind} | {loss} | {share} | {seconds:.2f} "
                f"| {percent(model.predict(X_test) != y_test)} "
                f"| {np.count_nonzero(model.coef_):,} | {radius:.0f} | {alone:.2f} |"
            )
    return lines


def part_matrices():
    X, y, X_test, y_test = synthetic()
    lines = [
        "## The paper's classifier with wrong labels",
        "",
        f"{len(y):,} matrices of 30 x 30, a true classifier of rank 10, 25% of the labels flipped; "
        'a trace-norm ball with `radius="auto"`, otherwise the defaults. Errors are of '
        f"{len(y_test):,} rows with right labels.",
        "",
        "| loss | seconds | test error | radius |",
        "| --- | --- | --- | --- |",
    ]
    labels = flip_labels(y, 0.25)
    for loss in ("logistic", "sigmoid"):
        model = ofw.FrankWolfeClassifier("trace", loss=loss, coef_shape=(30, 30))
        _, seconds = timed(model.fit, X, labels)
        lines.append(
            f"| {loss} | {seconds:.1f} | {percent(model.predict(X_test) != y_test)} "
            f"| {model.radius_:.3g} |"
        )
    return lines


# Single rows --------------------------------------------------------------------------------------


def part_single():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 50))
    y = (X[:, 0] > X[:, 1] + rng.standard_normal(5000)).astype(int)
    lines = [
        "## One row through `partial_fit`, called from Python",
        "",
        "50 features, after 1,000 rows; microseconds a call.",
        "",
        "| system | median | 99% | 99.9% |",
        "| --- | --- | --- | --- |",
    ]
    models = {
        "onlinefw classifier, radius given": ofw.FrankWolfeClassifier(radius=5.0),
        "onlinefw classifier, reservoir of 2,000": ofw.FrankWolfeClassifier(
            radius=5.0, past="reservoir", max_past=2000
        ),
        'onlinefw classifier, `past="summary"`': ofw.FrankWolfeClassifier(
            radius=5.0, past="summary"
        ),
        "onlinefw classifier, while radii race": ofw.FrankWolfeClassifier(),
        "scikit-learn SGDClassifier": SGDClassifier(),
    }
    for name, model in models.items():
        model.partial_fit(X[:1000], y[:1000], classes=[0, 1])
        times = [timed(model.partial_fit, X[k : k + 1], y[k : k + 1])[1] for k in range(1000, 5000)]
        cells = " | ".join(f"{1e6 * np.quantile(times, q):.0f}" for q in (0.5, 0.99, 0.999))
        lines.append(f"| {name} | {cells} |")
    X, y, *_ = documents()
    rates = []
    for size in (1, 5, 20):
        model = ofw.FrankWolfeClassifier(
            "l1", 1000.0, loss="logistic", past="reservoir", max_past=2000
        )
        _, seconds = timed(model.learn, X, y, batch_size=size, classes=CLASSES)
        rates.append(f"{len(y) / seconds:,.0f} in batches of {size}")
    lines += [
        "",
        "Documents from a reservoir of 2,000 with `learn`, rows a second: "
        + ", ".join(rates)
        + ".",
    ]
    return lines


# Regression ---------------------------------------------------------------------------------------


def part_dense():
    from celer import Lasso

    rng = np.random.default_rng(0)
    n, p = 4000, 3000
    X, truth = rng.standard_normal((n, p)), np.zeros(p)
    truth[:30] = rng.choice([-1.0, 1.0], 30)
    y = X @ truth + 3.0 * rng.standard_normal(n)
    lines = [
        "## Regression with 3,000 dense features",
        "",
        "4,000 rows, 30 coefficients; seconds for all rows. celer's Lasso (alpha 0.2) is "
        "fitted anew, from where it was, at every batch.",
        "",
        "| batch | radius 30 given | radius found | ratio | celer at every batch |",
        "| --- | --- | --- | --- | --- |",
    ]
    ofw.FrankWolfeRegressor(radius=30.0).fit(X[:300], y[:300])
    for size in (100, 1000):
        _, given = timed(ofw.FrankWolfeRegressor(radius=30.0, batch_size=size).fit, X, y)
        _, found = timed(ofw.FrankWolfeRegressor(batch_size=size).fit, X, y)

        def refit(size=size):
            peer = Lasso(alpha=0.2, warm_start=True)
            for k in range(size, n + 1, size):
                peer.fit(X[:k], y[:k])

        _, peer = timed(refit)
        lines.append(f"| {size} | {given:.2f} | {found:.2f} | {found / given:.1f} | {peer:.2f} |")
    return lines


def part_stream():
    from river import linear_model, optim

    rng = np.random.default_rng(0)
    n, p = 20_000, 300
    X, truth = rng.standard_normal((n, p)), np.zeros(p)
    truth[:10] = rng.choice([-1.0, 1.0], 10)
    y = X @ truth + rng.standard_normal(n)
    lines = [
        "## A regression stream of 300 features, single rows",
        "",
        "Each row is predicted, then learned. Excess error: mean squared error of the second half "
        "less that of the noise.",
        "",
        "| system | rows | rows/s | excess error |",
        "| --- | --- | --- | --- |",
    ]

    def line(name, predicted, seconds, n):
        rows = slice(n // 2, n)
        excess = np.mean((predicted[rows] - X[rows] @ truth) ** 2)
        lines.append(f"| {name} | {n:,} | {n / seconds:,.0f} | {excess:.4f} |")

    ofw.FrankWolfeRegressor(radius=12.0).learn(X[:500], y[:500])
    for name, model in {
        "onlinefw `learn`, radius 12": ofw.FrankWolfeRegressor(radius=12.0),
        "onlinefw `learn`, radius found": ofw.FrankWolfeRegressor(),
        'onlinefw `learn`, `past="summary"`': ofw.FrankWolfeRegressor(radius=12.0, past="summary"),
    }.items():
        predicted, seconds = timed(model.learn, X, y)
        line(name, predicted, seconds, n)
    few = 3000
    predicted = np.zeros(few)
    model = ofw.FrankWolfeRegressor(radius=12.0).partial_fit(X[:1], y[:1])

    def calls():
        for k in range(1, few):
            predicted[k] = model.predict(X[k : k + 1])[0]
            model.partial_fit(X[k : k + 1], y[k : k + 1])

    line("onlinefw `predict` and `partial_fit`", predicted, timed(calls)[1], few)
    line("recursive least squares (numpy)", *timed(_recursive, X[:few], y[:few]), few)
    sgd, said = SGDRegressor(), np.zeros(few)

    def stochastic():
        for k in range(few):
            said[k] = sgd.predict(X[k : k + 1])[0] if k else 0.0
            sgd.partial_fit(X[k : k + 1], y[k : k + 1])

    line("scikit-learn SGD, defaults", said, timed(stochastic)[1], few)
    river, told = linear_model.LinearRegression(optim.SGD(0.001)), np.zeros(few)
    rows = [dict(enumerate(row.tolist())) for row in X[:few]]

    def one_by_one():
        for k, row in enumerate(rows):
            told[k] = river.predict_one(row)
            river.learn_one(row, y[k])

    line("river LinearRegression, SGD(0.001)", told, timed(one_by_one)[1], few)
    return lines


def _recursive(X, y):
    n, p = X.shape
    P, theta, predicted = 10.0 * np.eye(p), np.zeros(p), np.zeros(n)
    for k in range(n):
        x = X[k]
        predicted[k] = x @ theta
        image = P @ x
        gain = image / (1.0 + x @ image)
        theta += gain * (y[k] - predicted[k])
        P -= np.outer(gain, image)
    return predicted


def _arithmetic(X, y, H, state):
    """What a round must compute: theta and X'X theta are the state."""
    theta, image = state
    dgemm(1.0, X.T, X.T, 1.0, H, trans_b=True, overwrite_c=True)
    gradient = image + X.T @ (X @ theta - y)
    j = int(np.abs(gradient).argmax())
    state[:] = 0.9 * theta, 0.9 * gradient + 0.1 * H[:, j]


def part_round():
    lines = [
        "## A round of `RunningLeastSquares` against its arithmetic",
        "",
        "O-FW, one step a round, 10 rows a round; microseconds, medians. The arithmetic is the "
        "update of X'X by a general product of BLAS (the library adds to one triangle), one column "
        "of it, and two products with the rows.",
        "",
        "| features | a round | its arithmetic | ratio |",
        "| --- | --- | --- | --- |",
    ]
    rng = np.random.default_rng(0)
    for p in (300, 3000):
        batches = [rng.standard_normal((10, p)) for _ in range(60)]
        learner = ofw.OnlineFrankWolfe(RunningLeastSquares(p), L1Ball(3.0))
        rounds, sums = [], []
        H, state = np.zeros((p, p), order="F"), [np.zeros(p), np.zeros(p)]
        for X in batches:
            y = X[:, 0] - X[:, 1]
            rounds.append(timed(learner.observe, X, y)[1])
            sums.append(timed(_arithmetic, X, y, H, state)[1])
        round_, least = 1e6 * np.median(rounds[10:]), 1e6 * np.median(sums[10:])
        lines.append(f"| {p:,} | {round_:.0f} | {least:.0f} | {round_ / least:.2f} |")
    return lines


PARTS = {
    "documents": part_documents,
    "growth": part_growth,
    "search": part_search,
    "matrices": part_matrices,
    "single": part_single,
    "dense": part_dense,
    "stream": part_stream,
    "round": part_round,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = []
    with threadpool_limits(1, "blas"):
        for name in options.parts or PARTS:
            some = PARTS[name]()
            print("\n".join(some), flush=True)
            lines += [*some, ""]
    if options.write:
        write_table(HERE / "rows.md", "Rows as they happen", lines, ["scikit-learn", "river"])


if __name__ == "__main__":
    main()
