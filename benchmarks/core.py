"""The core's three speed promises, as ratios measured in one run.

    python benchmarks/core.py [--write]

Each line compares one round (or step) with the pass over memory that it cannot do without, both
timed in turn in the same run on one thread, so that a busy machine slows both alike. The figure is
the median of the ratios of neighbouring measurements. ``--write`` replaces benchmarks/core.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from table import write_table
from threadpoolctl import threadpool_limits

import onlinefw as ofw
from onlinefw._threads import use_threads
from onlinefw.atoms import SignedCoordinate


def ratio(ours, theirs, repeats, inner_ours=1, inner_theirs=1):
    """Median seconds of each, and the median and quartiles of ours / theirs, interleaved."""
    for _ in range(3):
        ours()
        theirs()
    times = np.empty((repeats, 2))
    for k in range(repeats):
        started = perf_counter()
        for _ in range(inner_ours):
            ours()
        middle = perf_counter()
        for _ in range(inner_theirs):
            theirs()
        times[k] = (middle - started) / inner_ours, (perf_counter() - middle) / inner_theirs
    ratios = times[:, 0] / times[:, 1]
    return (*np.median(times, axis=0), *np.percentile(ratios, [50, 25, 75]))


def away_round():
    """O-AW round on the l1 ball, 500 active atoms, a ready gradient: against argmax of |g|."""
    n, active = 100_000, 500
    rng = np.random.default_rng(0)
    gradients = rng.standard_normal((64, n))
    calls = [0]

    def fn(theta, t):
        calls[0] += 1
        return gradients[calls[0] % 64]

    learner = ofw.OnlineAwayFrankWolfe(ofw.objectives.GradientOracle(fn, n), ofw.sets.L1Ball(1.0))
    # 500 active atoms of equal weight, and a step counter so late that none is dropped meanwhile.
    theta = np.zeros(n)
    for j in rng.choice(n, active, replace=False):
        learner.active_set._append(SignedCoordinate(int(j), 1.0, (n,)), 1 / active)
        theta[j] = 1 / active
    learner.objective.put(theta)
    learner.n_steps = 10**9

    def one_pass():
        calls[0] += 1
        np.abs(gradients[calls[0] % 64]).argmax()

    result = ratio(learner.observe, one_pass, 300, 3, 3)
    assert len(learner.active_set) >= active
    return result


def least_squares_step():
    """RunningLeastSquares O-FW inner step at n = 4096: against recomputing H theta."""
    n = 4096
    rng = np.random.default_rng(0)
    objective = ofw.objectives.RunningLeastSquares(n)
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(5.0))
    X = rng.standard_normal((64, n))
    learner.observe(X, X[:, 0] + rng.standard_normal(64))
    return ratio(learner._update, lambda: objective._shared.past.times(learner.theta), 40, 50, 1)


def sparse_round():
    """LinearObjective round, l1 atom, 20,000 sparse rows x 47,236 features: against X.T @ r."""
    rng = np.random.default_rng(0)
    n_rows, n = 20_000, 47_236
    X = sparse_documents(rng, n_rows, n)
    y = rng.choice([-1.0, 1.0], n_rows)
    objective = ofw.objectives.LinearObjective(ofw.losses.Logistic())
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(100.0))
    for start in range(0, n_rows, 100):  # as a stream, so that bulk and tail are as in use
        objective.observe(X[start : start + 100], y[start : start + 100])
    batches = [(sparse_documents(rng, 5, n), rng.choice([-1.0, 1.0], 5)) for _ in range(100)]
    r, calls = rng.standard_normal(n_rows), [0]

    def one_round():
        calls[0] += 1
        learner.observe(*batches[calls[0] % 100])

    return ratio(one_round, lambda: X.T @ r, 60)


def sparse_documents(rng, rows, features, per_row=74):
    """Rows with 74 nonzeros each, some features far more frequent than others."""
    popularity = (np.arange(features) + 10.0) ** -1.0
    edges = np.cumsum(popularity) / popularity.sum()
    indices = np.searchsorted(edges, rng.random(rows * per_row)).clip(max=features - 1)
    data = rng.exponential(size=rows * per_row) / np.sqrt(per_row)
    indptr = np.arange(0, rows * per_row + 1, per_row)
    return sp.csr_array((data, indices.astype(np.int32), indptr), shape=(rows, features))


CASES = [
    ("O-AW round, l1 ball, n = 100,000, 500 atoms", away_round, "argmax of abs(g)", "at most 4x"),
    ("`RunningLeastSquares` step, n = 4096", least_squares_step, "H theta", "at most 1/50"),
    ("`LinearObjective` round, 20,000 x 47,236", sparse_round, "X.T @ r (scipy)", "at most 2x"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace benchmarks/core.md")
    options = parser.parse_args()
    lines = [
        "Medians, quartiles in brackets, both sides timed in turn in the same run, on one thread.",
        "",
        "| round | time | against | time | ratio | asked |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    use_threads(1)
    for name, case, against, asked in CASES:
        with threadpool_limits(1):
            ours, theirs, middle, low, high = case()
        lines.append(
            f"| {name} | {ours * 1e6:,.0f} µs | {against} | {theirs * 1e6:,.0f} µs | "
            f"{middle:.3g} ({low:.3g} to {high:.3g}) | {asked} |"
        )
        print(lines[-1], flush=True)
    if options.write:
        title = "Core: one round against the pass it cannot do without"
        write_table(Path(__file__).with_suffix(".md"), title, lines)


if __name__ == "__main__":
    main()
