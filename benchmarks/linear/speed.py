"""What rounds of the linear estimators cost, against the passes over memory they cannot do without.

    ONLINEFW_DATA=folder python benchmarks/linear/speed.py [--write] [--only PART ...]

Parts: ``classifier`` (the paper's 40,000 x 900 synthetic classifier, 4000 rounds of 10 rows),
``mnist`` (class 1 against the rest, 6000 rounds of 10 images kept as bytes), ``documents``
(rcv1v2-subset, 4048 rounds of 5), ``least-squares`` (a late round against an early one), ``radii``
(8 radii side by side against one), ``wide`` (the square loss with a million sparse features).

Every stored row counts in every round. The limit is measured in the same run: now and then the past
stored so far is read by a pure read kernel with the same threads (documents: multiplied once by
scipy), and those times are summed over all rounds. ``--write`` replaces speed.md; parts whose data
or peer is not there are left out and say so.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from numba import njit, prange

import onlinefw as ofw
from onlinefw._threads import n_threads
from onlinefw.losses import Sigmoid, Square
from onlinefw.sets import L1Ball, TraceNormBall
from onlinefw.steps import Power

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HERE = Path(__file__).parent
#: The limit is measured at so many moments of a run, each as the best of so many readings.
MOMENTS, READINGS = 40, 5


@njit(parallel=True, fastmath=True)
def read_words(words):
    """Sum 8-byte words: as fast as memory (or the cache) gives them."""
    total = np.uint64(0)
    for i in prange(words.size):
        total += words[i]
    return total


def best_time(work):
    times = []
    for _ in range(READINGS):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)


def stream(learner, X, y, size, limits):
    """Play all rounds; return their seconds, and for each limit its seconds summed over rounds.

    ``limits`` are functions of the number of rows stored so far. They are called between rounds,
    whose clock stands still meanwhile.
    """
    rounds = len(y) // size
    moments = np.unique(np.linspace(1, rounds, MOMENTS).astype(int))
    spent, sampled = np.zeros(rounds), {name: [] for name in limits}
    for t in range(rounds):
        part = slice(t * size, (t + 1) * size)
        started = perf_counter()
        learner.observe(X[part], y[part])
        spent[t] = perf_counter() - started
        if t + 1 in moments:
            for name, limit in limits.items():
                sampled[name].append(limit((t + 1) * size))
    every = np.arange(1, rounds + 1)
    return spent, {k: np.interp(every, moments, v).sum() for k, v in sampled.items()}


def against(spent, limit):
    return f"{spent.sum():.1f} s; **{spent.sum() / limit:.2f}** times the {limit:.1f} s of"


def pure_read(X):
    words = X.reshape(-1).view(np.uint8)

    def seconds(n):
        part = words[: n * X[0].nbytes // 8 * 8].view(np.uint64)
        return best_time(lambda: read_words(part))

    return seconds


def sparse_product(X):
    def seconds(n):
        columns, r = X[:n].T, np.ones(n)
        return best_time(lambda: columns @ r)

    return seconds


def plain_numpy(X, y, loss):
    """Predictions and gradient from scratch, as one would write them."""
    theta = np.zeros(X.shape[1], np.float32)

    def seconds(n):
        def work():
            z = X[:n] @ theta
            return loss.derivative(z, y[:n]).astype(np.float32) @ X[:n] / n

        return best_time(work)

    return seconds


def trace_learner(radius, shape):
    objective = ofw.objectives.LinearObjective(Sigmoid(), shape=shape)
    return ofw.OnlineFrankWolfe(objective, TraceNormBall(radius), step=Power(0.75))


def warmed(make, X, y, size):
    """Compile on a few rounds, then make the learner that counts."""
    learner = make()
    for t in range(3):
        learner.observe(X[t * size : (t + 1) * size], y[t * size : (t + 1) * size])
    return make()


def classifier():
    made = ofw.datasets.make_classifier(seed=0)
    X, y = made.X_train.reshape(len(made.y_train), -1).astype(np.float32), made.y_train
    learner = warmed(lambda: trace_learner(1.0, (30, 30)), X, y, 10)
    limits = {"read": pure_read(X), "numpy": plain_numpy(X, y, Sigmoid())}
    spent, limit = stream(learner, X, y, 10, limits)
    X_test = made.X_test.reshape(len(made.y_test), -1)
    error = np.mean(np.sign(X_test @ learner.theta.reshape(-1)) != made.y_test)
    yield (
        "40,000 x 900, float32, trace norm, 4000 rounds",
        (
            f"{against(spent, limit['read'])} one pure read of the past per round; "
            f"plain numpy {limit['numpy']:.1f} s; "
            f"test error {error:.2%}"
        ),
    )


def mnist():
    stored = np.load(data_folder() / "mnist.npz")
    X = stored["x_train"].reshape(60_000, -1)
    y = np.where(stored["y_train"] == 1, 1.0, -1.0)
    # Pixels divided by 255 on the paper's ball of radius 1 are pixels on one of radius 1 / 255.
    learner = warmed(lambda: trace_learner(1.0 / 255, (28, 28)), X, y, 10)
    spent, limit = stream(learner, X, y, 10, {"read": pure_read(X)})
    X_test, y_test = stored["x_test"].reshape(10_000, -1), stored["y_test"]
    wrong = np.sign(X_test @ learner.theta.reshape(-1)) != np.where(y_test == 1, 1.0, -1.0)
    yield (
        "mnist, 60,000 x 784 bytes, trace norm, 6000 rounds",
        (
            f"{against(spent, limit['read'])} one pure read of the past per round; "
            f"test error {wrong.mean():.2%}"
        ),
    )


def documents():
    X, y = rcv1()
    model = ofw.objectives.LinearObjective

    def make():
        return ofw.OnlineFrankWolfe(model(Sigmoid()), L1Ball(100.0), step=Power(0.75))

    spent, limit = stream(warmed(make, X, y, 5), X, y, 5, {"product": sparse_product(X)})
    yield (
        "rcv1v2-subset, 20,240 x 47,236 sparse, l1 ball, 4048 rounds",
        (f"{against(spent, limit['product'])} scipy's X.T @ r per round"),
    )


def least_squares():
    """Rounds of a learner that is 20,000 rounds old and of a young one, in turn."""
    rng = np.random.default_rng(0)
    n, old_age, young_age, turns = 300, 20_000, 200, 1000
    X, truth = rng.standard_normal((80, n)), rng.standard_normal(n)

    def aged(rounds):
        objective = ofw.objectives.RunningLeastSquares(n)
        learner = ofw.OnlineFrankWolfe(objective, L1Ball(50.0))
        for _ in range(rounds):
            learner.observe(X, X @ truth + 10 * rng.standard_normal(80))
        return learner

    learners, times = (aged(old_age), aged(young_age)), np.empty((turns, 2))
    for turn in range(turns):
        y = X @ truth + 10 * rng.standard_normal(80)
        for k, learner in enumerate(learners):
            started = perf_counter()
            learner.observe(X, y)
            times[turn, k] = perf_counter() - started
    low, middle, high = np.percentile(times[:, 0] / times[:, 1], [25, 50, 75])
    yield (
        f"RunningLeastSquares, 300 features, after {old_age:,} rounds",
        (
            f"{1e6 * np.median(times[:, 0]):.0f} us a round; **{middle:.3f}** times a round after "
            f"{young_age} rounds (quartiles {low:.3f} to {high:.3f})"
        ),
    )


def radii():
    X, y = rcv1()
    rows = slice(0, 10_000)
    chosen = 125.0 * 2.0 ** np.arange(8)
    for steps in (1, "auto"):
        model = ofw.FrankWolfeClassifier(loss="logistic", inner_steps=steps)
        alone = []
        for radius in chosen:
            started = perf_counter()
            model.set_params(radius=radius).fit(X[rows], y[rows])
            alone.append(perf_counter() - started)
        started = perf_counter()
        ofw.RadiusSearch(model, chosen).fit(X[rows], y[rows])
        together = perf_counter() - started
        yield (
            f"8 radii side by side, 10,000 documents, inner_steps={steps}",
            (
                f"{together:.1f} s; one alone {np.mean(alone):.2f} s on average: "
                f"**{together / np.mean(alone):.1f}** times"
            ),
        )


def wide():
    rng = np.random.default_rng(0)
    n, per_row, rounds = 1_000_000, 50, 400
    indices = np.minimum(rng.zipf(1.3, (rounds * 50, per_row)) - 1, n - 1)
    X = sp.csr_array(
        (
            rng.random(indices.size),
            indices.reshape(-1),
            np.arange(0, indices.size + 1, per_row),
        ),
        shape=(rounds * 50, n),
    )
    X.sum_duplicates()
    y = (
        X[:, [3]].toarray()[:, 0]
        - 2 * X[:, [20]].toarray()[:, 0]
        + rng.standard_normal(rounds * 50)
    )

    def make():
        return ofw.OnlineFrankWolfe(ofw.objectives.LinearObjective(Square()), L1Ball(3.0))

    spent, limit = stream(warmed(make, X, y, 50), X, y, 50, {"product": sparse_product(X)})
    yield (
        "square loss, 20,000 x 1,000,000 sparse, l1 ball, 400 rounds",
        (f"{against(spent, limit['product'])} scipy's X.T @ r per round"),
    )


PARTS = {
    "classifier": classifier,
    "mnist": mnist,
    "documents": documents,
    "least-squares": least_squares,
    "radii": radii,
    "wide": wide,
}


def data_folder():
    folder = os.environ.get("ONLINEFW_DATA")
    if not folder:
        raise FileNotFoundError("ONLINEFW_DATA does not name a folder")
    return Path(folder)


def rcv1():
    from classification_data import rcv1v2_subset

    X, y, _, _ = rcv1v2_subset()
    return sp.csr_array(X), y


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--write", action="store_true", help="replace speed.md")
    options = parser.parse_args()
    lines = [
        f"{n_threads()} threads. The past is read in full every round.",
        "",
        "| rounds | time |",
        "| --- | --- |",
    ]
    for name in options.only:
        try:
            for title, text in PARTS[name]():
                lines.append(f"| {title} | {text} |")
                print(lines[-1], flush=True)
        except (ImportError, FileNotFoundError) as reason:
            print(f"{name} is left out: {reason}")
    if options.write:
        title = "Rounds of the linear estimators against their limits"
        write_table(HERE / "speed.md", title, lines)


if __name__ == "__main__":
    main()
