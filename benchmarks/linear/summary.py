"""What ``past="summary"`` gives up and gains: against keeping rows, a sample of them, and SGD.

    ONLINEFW_DATA=folder python benchmarks/linear/summary.py [--write] [--rows 1000000]

rcv1v2-subset in batches of 256 through ``partial_fit``, one pass, all in one run: rows a second
(of wall time and of this process's CPU time, which tells more where a machine is shared), the error
on the test rows, coefficients, and the bytes of the arrays that have to be kept to go on. Then a
long stream of the same rows in random order, whose memory must not grow; and what it costs to find
the largest entry of the estimated gradient in three ways. ``--write`` replaces summary.md.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from math import inf
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from numba import njit
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

import onlinefw as ofw
from onlinefw.kernels.tournament import SLOPE, largest, levels, lift
from onlinefw.losses import Logistic
from onlinefw.sets import L1Ball

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from table import write_table  # noqa: E402

SIZE, RADIUS = 256, 3000.0
CLASSES = np.array([-1.0, 1.0])


def kept_bytes(state):
    """Bytes of all arrays in a state."""
    if isinstance(state, dict):
        return sum(map(kept_bytes, state.values()))
    if isinstance(state, (list, tuple)):
        return sum(map(kept_bytes, state))
    return state.nbytes if isinstance(state, np.ndarray) else 0


class Estimator:
    """An estimator of ours, or scikit-learn's."""

    def __init__(self, make):
        self.model = make()

    def learn(self, X, y, first):
        """Learn a batch."""
        if first:
            self.model.partial_fit(X, y, classes=CLASSES)
        else:
            self.model.partial_fit(X, y)

    def facts(self, X, y):
        """Return the error on these rows, the number of coefficients, and bytes kept."""
        model = self.model
        if hasattr(model, "state_dict"):
            size = kept_bytes(model.state_dict()["run"]["team"])
        else:
            size = len(pickle.dumps(model))
        return 1.0 - model.score(X, y), np.count_nonzero(model.coef_), size


class Events(Estimator):
    """An estimator that predicts and learns each row by itself."""

    def learn(self, X, y, first):
        """Learn a batch, row by row."""
        self.model.learn(X, y, classes=CLASSES)


class Published:
    """A learner with the estimators and the steps of the papers."""

    def __init__(self, estimator, radius, n=47_236):
        objective = ofw.objectives.SummaryObjective(
            Logistic(), n, fit_intercept=True, estimator=estimator
        )
        self.learner = ofw.SummaryFrankWolfe(objective, L1Ball(radius))

    def learn(self, X, y, first):
        """Learn a batch."""
        self.learner.observe(X, y)

    def facts(self, X, y):
        """Return the error on these rows, the number of coefficients, and bytes kept."""
        theta, b = self.learner.theta, self.learner.objective.intercept
        error = np.mean(np.where(X @ theta + b > 0.0, 1.0, -1.0) != y)
        return error, np.count_nonzero(theta), kept_bytes(self.learner.state_dict())


def ours(radius=RADIUS, loss="logistic", past="summary", Face=Estimator, **more):
    settings = {"radius": radius, "loss": loss, "past": past, "random_state": 0, **more}
    return lambda: Face(lambda: ofw.FrankWolfeClassifier(**settings))


def sgd(**more):
    return lambda: Estimator(lambda: SGDClassifier(loss="log_loss", random_state=0, **more))


SYSTEMS = {
    "everything kept": ours(past="all"),
    "a reservoir of 20,000": ours(past="reservoir", max_past=20_000),
    "a reservoir of 2,000": ours(past="reservoir", max_past=2_000),
    '**past="summary"**': ours(),
    '**past="summary"**, each row predicted and learned by `learn`': ours(Face=Events),
    '**past="summary"**, radius found on the way': ours("auto"),
    '**past="summary"**, sigmoid, radius found on the way': ours("auto", "sigmoid"),
    "1-SFW, ORGFW as published (rho = 1 / t), radius 3000": lambda: Published("recursive", RADIUS),
    "1-SFW, ORGFW as published (rho = 1 / t), radius 300": lambda: Published("recursive", 300.0),
    "momentum as published (rho = 1 / t), radius 3000": lambda: Published("momentum", RADIUS),
    "scikit-learn SGDClassifier, defaults": sgd(),
    "scikit-learn SGDClassifier, tuned on the test rows": sgd(
        alpha=1e-5, average=True, learning_rate="constant", eta0=10.0
    ),
}


#: What takes long is run once.
SLOW = list(SYSTEMS)[:3]


def one_pass(make, data):
    """Learn all batches; return rows a second by both clocks, and the facts."""
    system, batches = make(), cut(data.X_train, data.y_train)
    with threadpool_limits(1, "blas"):  # waiting BLAS threads slow scikit-learn down, up to tenfold
        return timed(make, system, batches, data)


def timed(make, system, batches, data):
    for k, (X, y) in enumerate(batches[:3]):  # compile
        system.learn(X, y, k == 0)
    system = make()
    wall, cpu = perf_counter(), process_time()
    for k, (X, y) in enumerate(batches):
        system.learn(X, y, k == 0)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    n = data.y_train.size
    return n / wall, n / cpu, *system.facts(data.X_test, data.y_test)


def cut(X, y):
    X = X.astype(float)
    return [(X[k : k + SIZE], y[k : k + SIZE]) for k in range(0, len(y), SIZE)]


def systems(data):
    yield "| what is kept | rows/s | rows per CPU second | test error % | coefficients | bytes |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, make in SYSTEMS.items():
        runs = [one_pass(make, data) for _ in range(1 if name in SLOW else 3)]
        wall, cpu, error, chosen, size = max(runs, key=lambda run: run[1])
        yield f"| {name} | {wall:,.0f} | {cpu:,.0f} | {error:.2%} | {chosen:,} | {size:,} |"
        print(name, f"{wall:,.0f} {cpu:,.0f} {error:.2%} {chosen:,} {size:,}", flush=True)


def resident():
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def long_stream(data, rows):
    model = Estimator(
        lambda: ofw.FrankWolfeClassifier(
            radius=RADIUS, loss="logistic", past="summary", history_size=1000
        )
    )
    batches, rng = cut(data.X_train, data.y_train), np.random.default_rng(0)
    yield "| rows | rows/s so far | test error % | bytes of state | resident, MB |"
    yield "| --- | --- | --- | --- | --- |"
    seen, spent, marks = 0, 0.0, [rows // 50, rows // 10, rows // 2, rows]
    while seen < rows:
        for k in rng.permutation(len(batches)):
            X, y = batches[k]
            started = perf_counter()
            model.learn(X, y, seen == 0)
            spent += perf_counter() - started
            seen += y.size
            if seen >= marks[0]:
                marks = marks[1:]
                error, _, size = model.facts(data.X_test, data.y_test)
                rate, memory = seen / spent, resident() / 1e6
                yield f"| {seen:,} | {rate:,.0f} | {error:.2%} | {size:,} | {memory:.0f} |"
            if seen >= rows:
                break


@njit
def by_bounds(indptr, indices, changes, table, bounds, starts):
    found = 0
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            table[j, SLOPE] += changes[p]
            lift(bounds, starts, j, abs(table[j, SLOPE]))
        found += largest(table, bounds, starts, False)
    return found


@njit
def by_winners(indptr, indices, changes, table, winners, half):
    """A tournament whose every node knows its winner."""
    found = 0
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            table[j, SLOPE] += changes[p]
            node = (half + j) >> 1
            while node > 0:
                a, b = winners[2 * node], winners[2 * node + 1]
                best = a if abs(table[a, SLOPE]) >= abs(table[b, SLOPE]) else b
                if best == winners[node] and best != j:
                    break
                winners[node] = best
                node >>= 1
        found += winners[1]
    return found


@njit
def by_scan(indptr, indices, changes, table):
    found = 0
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            table[indices[p], SLOPE] += changes[p]
        best, chosen = -inf, 0
        for j in range(len(table)):
            if abs(table[j, SLOPE]) > best:
                best, chosen = abs(table[j, SLOPE]), j
        found += chosen
    return found


def largest_entry(data):
    """Microseconds a row for adding to the gradient and finding its largest entry."""
    yield "| features | tree of bounds | tournament of winners | scan |"
    yield "| --- | --- | --- | --- |"
    rng = np.random.default_rng(0)
    for n in (47_236, 1_000_000):
        X = data.X_train[:2000].astype(float)
        spread = rng.permutation(n)[: X.shape[1]].astype(np.int32)
        indices, half = spread[X.indices], 1 << (n - 1).bit_length()
        changes = X.data * np.repeat(rng.standard_normal(X.shape[0]), np.diff(X.indptr))
        rows, starts = (X.indptr, indices, changes), levels(n)
        few = (X.indptr[:101], indices, changes)
        times = []
        for name, some in (("bounds", rows), ("winners", rows), ("scan", few)):
            best, found = inf, set()
            for _ in range(4):  # the first compiles
                table = np.zeros((2 * half, 3) if name == "winners" else (n, 3))
                tree = first_winners(half) if name == "winners" else np.zeros(starts[-1])
                began = process_time()
                if name == "bounds":
                    found.add(by_bounds(*some, table, tree, starts))
                elif name == "winners":
                    found.add(by_winners(*some, table, tree, half))
                else:
                    found.add(by_scan(*some, table))
                best = min(best, process_time() - began)
            assert len(found) == 1
            times.append(1e6 * best / (len(some[0]) - 1))
        yield f"| {n:,} | {times[0]:.2f} us | {times[1]:.2f} us | {times[2]:.1f} us |"


def first_winners(half):
    winners = np.zeros(2 * half, np.int32)
    winners[half:] = np.arange(half)
    for node in range(half - 1, 0, -1):
        winners[node] = winners[2 * node]
    return winners


WORDS = f"""One pass over 20,242 documents in batches of {SIZE} through `partial_fit`; the \
logistic loss and radius {RADIUS:g} where nothing else is said. Bytes are those of the arrays \
that are needed to go on (scikit-learn: its pickle). The best of three runs by CPU time, which is \
that of all threads; where rows are kept, of one run. BLAS has one thread."""
LONG = """The same documents in random order, over and over, one model:"""
TREE = """Finding the largest of the estimated slopes after each row, with the additions of the \
row itself (about 75 nonzeros). A tournament of winners corrects all that changes, the tree of \
bounds only what comes up; a scan reads all features:"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace summary.md")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the long stream")
    chosen = parser.parse_args()
    data = ofw.datasets.fetch_rcv1v2_subset()
    lines = [WORDS, "", *systems(data), "", LONG, "", *long_stream(data, chosen.rows)]
    lines += ["", TREE, "", *largest_entry(data)]
    print("\n".join(lines))
    if chosen.write:
        title = 'Documents with past="summary"'
        write_table(HERE / "summary.md", title, lines, ["scikit-learn"])


if __name__ == "__main__":
    main()
