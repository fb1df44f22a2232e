"""O-FW against batch Frank-Wolfe and a plain scipy version; how rounds grow; sweeps to an error.

    ONLINEFW_DATA=folder python benchmarks/matrix/compare.py [PART ...] [--write]

Parts: ``batch`` and ``sweeps`` (generated ratings in the shape of MovieLens 20M: 16 million for
training, 4 million for the error), ``scipy`` (MovieLens 100k), ``growth``. Each part
is one run in which everything it compares is measured. ``--write`` replaces compare.md.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

import onlinefw as ofw
from onlinefw.datasets import fetch_movielens, make_movielens_like
from onlinefw.objectives import ObservedEntries
from onlinefw.sets import TraceNormBall

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

TRAIN = 16_000_000


class Stopwatch:
    """Seconds of work, without those spent on looking at the test error."""

    def __init__(self):
        self._start, self._paused = perf_counter(), 0.0

    def seconds(self):
        """Return the seconds of work so far."""
        return perf_counter() - self._start - self._paused

    def look(self, function):
        """Call a function off the clock."""
        started = perf_counter()
        result = function()
        self._paused += perf_counter() - started
        return result


def ratings():
    data = make_movielens_like(seed=0)
    return np.column_stack((data.rows, data.cols)), data.values.astype(float), data.shape


def error(theta, mean, X, y):
    test = slice(TRAIN, None)
    guess = theta.entries(X[test, 0], X[test, 1]) + mean
    return float(np.mean((np.clip(guess, 0.5, 5.0) - y[test]) ** 2))


def warm_up():
    """Compile everything once."""
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(300, size=200_000), rng.integers(900, size=200_000)))
    model = ofw.FrankWolfeMatrixCompletion(
        1000.0, step="line-search", corrective="ridge", offsets="biases", batch_size=20_000
    )
    model.fit(X, rng.standard_normal(len(X)))
    ofw.FrankWolfeMatrixCompletion(1000.0, batch_size=20_000).fit(X, rng.standard_normal(len(X)))


def batch(radius=50_000.0, iterations=200):
    """The time to batch Frank-Wolfe's final test error plus 0.01."""
    X, y, shape = ratings()
    mean = float(y[:25_000].mean())

    clock = Stopwatch()
    objective = ObservedEntries(shape)
    objective.observe(X[:TRAIN], y[:TRAIN] - mean)
    curve = []

    def watch(result):
        if result.nit % 10 == 0 or result.nit == iterations:
            curve.append((clock.seconds(), clock.look(lambda: error(result.theta, mean, X, y))))

    ofw.baselines.batch_frank_wolfe(
        objective, TraceNormBall(radius), max_iter=iterations, tol=0.0, callback=watch
    )
    final, goal = curve[-1][1], curve[-1][1] + 0.01
    batch_seconds = next(seconds for seconds, mse in curve if mse <= goal)
    del objective

    rows = []
    for label, size, atoms, step, corrective in (
        ("O-FW, one atom a round, all kept", 25_000, 641, ofw.steps.Harmonic(2), None),
        ("O-FW, one atom a round, cut to 128 MB", 25_000, None, ofw.steps.Harmonic(2), None),
        ("O-FW with corrective sweeps", 200_000, None, ofw.steps.LineSearch(), sweeper()),
    ):
        clock = Stopwatch()
        learner = ofw.OnlineFrankWolfe(
            ObservedEntries(shape, max_atoms=atoms),
            TraceNormBall(radius),
            step=step,
            corrective=corrective,
        )
        for observed in range(size, TRAIN + 1, size):
            part = slice(observed - size, observed)
            learner.observe(X[part], y[part] - mean)
            if observed % 400_000 == 0:
                mse = clock.look(partial(error, learner.theta, mean, X, y))
                if mse <= goal:
                    break
        when = _reached(clock.seconds(), observed, batch_seconds, goal, mse)
        rows.append(f"| {label} | {when} |")
    yield "## Against batch Frank-Wolfe"
    yield ""
    yield (
        f"Radius {radius:,.0f}. Batch: all {TRAIN:,} ratings stored, then {iterations} steps with "
        f"line search, final test MSE {final:.4f} after {curve[-1][0]:.1f} s."
    )
    yield ""
    yield f"| | seconds to a test MSE of {goal:.4f} | ratings used | times sooner (asked: 3) |"
    yield "| --- | --- | --- | --- |"
    yield f"| batch Frank-Wolfe | {batch_seconds:.1f} | {TRAIN:,} | 1 |"
    yield from rows
    yield ""


def _reached(seconds, observed, batch_seconds, goal, mse):
    """Return the cells of a row: when the goal was reached, or where it ended."""
    if mse > goal:
        return f"not in {seconds:.1f} (ended at {mse:.4f}) | {observed:,} |"
    return f"{seconds:.1f} | {observed:,} | {batch_seconds / seconds:.1f}"


def sweeper(rank=10):
    return ofw.RidgeSweeps(rank=rank, start=1_000_000)


def sweeps(radius=80_000.0, rank=10, size=200_000):
    """The test error along one pass with corrective sweeps."""
    X, y, shape = ratings()
    model = ofw.FrankWolfeMatrixCompletion(
        radius, shape=shape, offsets="biases", step="line-search",
        corrective=sweeper(rank),
    )  # fmt: skip
    clock = Stopwatch()
    yield "## Corrective sweeps on the 20M shape"
    yield ""
    yield (
        f"Rank {rank}, radius {radius:,.0f}, {size:,} ratings a round, ridge found on the newest "
        "ratings, corrected when the data have doubled and at the end."
    )
    yield ""
    yield "| ratings seen | seconds | test MSE |"
    yield "| --- | --- | --- |"
    test = slice(TRAIN, None)

    def look():
        guess = model.predict(X[test], unknown="fallback")
        return float(np.mean((np.clip(guess, 0.5, 5.0) - y[test]) ** 2))

    for start in range(0, TRAIN, size):
        part = slice(start, start + size)
        model.partial_fit(X[part], y[part])
        seen = start + size
        if seen % 2_000_000 == 0:
            yield f"| {seen:,} | {clock.seconds():.1f} | {clock.look(look):.4f} |"
    for _ in range(2):
        model.correct()
        yield f"| all, and one more correction | {clock.seconds():.1f} | {clock.look(look):.4f} |"
    yield ""
    gap, loss = clock.look(lambda: (model.gap_, model.mean_loss_))
    yield f"Final gap {gap:.3f}, {gap / loss:.0%} of the mean loss; rank {model.rank_}."
    yield ""


def plain_scipy(radius=1000.0, size=80):
    """O-FW as one would write it with scipy: the gradient rebuilt, svds every round."""
    data = fetch_movielens("100k")
    X = np.column_stack((data.rows, data.cols)).astype(int)
    y = data.values.astype(float) - data.values.mean(dtype=float)
    order = np.random.default_rng(0).permutation(len(y))[:80_000]
    X, y = X[order], y[order]
    shape = (943, 1682)

    started = perf_counter()
    z = np.zeros(len(y))
    for t in range(1, len(y) // size + 1):
        seen = slice(0, t * size)
        rows, cols = X[seen].T
        gradient = sp.csr_array((z[seen] - y[seen], (rows, cols)), shape) / (t * size)
        u, _, vt = svds(gradient, k=1, random_state=0)
        gamma = 2.0 / (t + 1)
        z = (1.0 - gamma) * z - gamma * radius * u[X[:, 0], 0] * vt[0, X[:, 1]]
    plain, plain_loss = perf_counter() - started, 0.5 * np.mean((z - y) ** 2)

    started = perf_counter()
    objective = ObservedEntries(shape)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(radius))
    for start in range(0, len(y), size):
        learner.observe(X[start : start + size], y[start : start + size])
    ours = perf_counter() - started
    yield "## Against a plain scipy version (MovieLens 100k, 1000 rounds of 80 ratings)"
    yield ""
    yield "| | seconds | final objective |"
    yield "| --- | --- | --- |"
    yield f"| scipy `svds` every round | {plain:.1f} | {plain_loss:.4f} |"
    yield f"| O-FW | {ours:.2f} | {objective.value():.4f} |"
    yield f"| ratio | {plain / ours:.0f} (asked: at least 20) | |"
    yield ""


def growth(radius=50_000.0):
    """Milliseconds of a round: early and late at the same store, and at ten times the entries."""
    X, y, shape = ratings()
    medians = {}
    for entries in (1_500_000, 15_000_000):
        objective = ObservedEntries(shape)
        learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(radius))
        objective.observe(X[:entries], y[:entries] - 3.5)
        times = []
        for _ in range(600 if entries == 1_500_000 else 60):
            started = perf_counter()
            learner.refine()
            times.append(1e3 * (perf_counter() - started))
        medians[entries] = (np.median(times[10:60]), np.median(times[-50:]))
    small, large = medians[1_500_000], medians[15_000_000]
    yield "## How rounds grow (20M shape)"
    yield ""
    yield "| rounds | ms, median | ratio |"
    yield "| --- | --- | --- |"
    yield f"| 1.5 million entries, rounds 10 to 60 | {small[0]:.1f} | 1 |"
    yield f"| the same store, rounds 550 to 600 | {small[1]:.1f} | {small[1] / small[0]:.2f} |"
    yield (
        f"| 15 million entries, rounds 10 to 60 | {large[0]:.1f} | {large[0] / small[0]:.1f} "
        "(asked: at most 11) |"
    )
    yield ""


PARTS = {"scipy": plain_scipy, "growth": growth, "batch": batch, "sweeps": sweeps}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--write", action="store_true", help="replace compare.md")
    options = parser.parse_args()
    warm_up()
    lines = []
    for name in options.parts or PARTS:
        for line in PARTS[name]():
            print(line, flush=True)
            lines.append(line)
    if options.write:
        path = Path(__file__).with_suffix(".md")
        write_table(path, "Comparisons", lines)


if __name__ == "__main__":
    main()
