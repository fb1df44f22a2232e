"""Matrix completion on one GPU: a pass, its products against cuSPARSE, and corrective sweeps.

    python benchmarks/gpu/matrix.py [PART ...] [--write]

Parts: ``products``, ``pass``, ``sweeps``, ``fit``, ``factors``; all of them by default. The data
are generated ratings of the shape of MovieLens 20M (16 million for training). Everything is run
once before it is timed, so that kernels are compiled. ``--write`` replaces matrix.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

import cupy as cp
import numpy as np
from stopwatch import milliseconds

import onlinefw as ofw
from onlinefw.datasets import make_movielens_like
from onlinefw.objectives import ObservedEntries
from onlinefw.sets import TraceNormBall

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

SHAPE = (138_493, 26_744)
TRAIN, RADIUS, BATCH = 16_000_000, 50_000.0, 10_000
ATOMS = 1624  # what fits into 1 GB: theta is never recompressed in one pass, here or there
START = 2_000_000
MEAN = 3.5  # of the generated ratings; theta is what is beyond it


def ratings():
    data = make_movielens_like(seed=0)
    X, values = np.column_stack((data.rows, data.cols)), data.values.astype(float)
    values -= MEAN
    return X[:TRAIN], values[:TRAIN], X[TRAIN:], values[TRAIN:]


def test_mse(objective, X, y):
    guess = objective.predict(X[:, 0], X[:, 1])
    return float(np.mean((np.clip(guess, 0.5 - MEAN, 5.0 - MEAN) - y) ** 2))


def played(data, device, rounds=None, size=BATCH, radius=RADIUS, **options):
    """One pass; returns the learner, its rounds and the seconds."""
    X, y, *_ = data
    objective = ObservedEntries(SHAPE, device=device, max_atoms=ATOMS)
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(radius), **options)
    stops = range(0, len(y), size)[:rounds]
    started = perf_counter()
    seen = [learner.observe(X[at : at + size], y[at : at + size]) for at in stops]
    if device == "cuda":
        cp.cuda.Device().synchronize()
    return learner, seen, perf_counter() - started


def one_pass(data):
    played(data, "cuda", 300)
    learner, rounds, seconds = played(data, "cuda")
    here, _, slow = played(data, "cpu")
    mse = {
        side: test_mse(one.objective, *data[2:]) for side, one in (("gpu", learner), ("cpu", here))
    }
    reads = np.mean([r.reads for r in rounds])
    return [
        "## One pass over 16 million ratings",
        "",
        f"B = {BATCH:,}, {len(rounds)} rounds, radius {RADIUS:,.0f}; new ratings are predicted and "
        "the gap is reported every round.",
        "",
        "| | seconds | test MSE |",
        "| --- | --- | --- |",
        f"| one H200 | {seconds:.2f} (asked: at most 4) | {mse['gpu']:.4f} |",
        f"| CPU, 16 cores of the same machine | {slow:.1f} | {mse['cpu']:.4f} |",
        f"| ratio | {slow / seconds:.1f} | {mse['gpu'] / mse['cpu']:.4f} (asked: 1 within 0.5%) |",
        "",
        f"{reads:.1f} reads a round, final gap {rounds[-1].gap:.3g}.",
        "",
    ]


def products(data):
    lines = [
        "## Products of the gradient",
        "",
        "Milliseconds, medians of 50. Bare cuSPARSE: `csr @ v` and `csr_of_transpose @ u` through "
        "CuPy. Ours: `normal(v)`, both products, with the tail of new entries.",
        "",
        "| nonzeros | cuSPARSE, G v | cuSPARSE, G' u | ours, both | share of cuSPARSE's speed | "
        "eight vectors, with the move |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for n in (7_400_000, 16_000_000):
        lines.append(product_row(data[0][:n], data[1][:n]))
    return [*lines, ""]


def product_row(X, y):
    objective = ObservedEntries(SHAPE, device="cuda")
    learner = ofw.OnlineFrankWolfe(objective, TraceNormBall(RADIUS))
    for part in np.array_split(np.arange(len(y)), 40):
        learner.observe(X[part], y[part])
    objective.gradient()
    past = objective._past
    G = past._slope_matrix().astype(cp.float32)
    T = G.T.tocsr()
    v, u = cp.ones(SHAPE[1], cp.float32), cp.ones(SHAPE[0], cp.float32)
    block, no_u, no_v = cp.ones((SHAPE[1], 8), cp.float32), cp.zeros_like(u), cp.zeros_like(v)

    def moved():
        past.theta.shrink(1.0)
        past.move(1.0, no_u, no_v)
        past.read(block, u)

    forward, backward = milliseconds(lambda: G @ v), milliseconds(lambda: T @ u)
    ours, fused = milliseconds(lambda: past.normal(v, u)), milliseconds(moved)
    share = (forward + backward) / ours
    return (
        f"| {len(y):,} | {forward:.3f} | {backward:.3f} | {ours:.3f} | {share:.0%} (asked: 40%) | "
        f"{fused:.3f} |"
    )


def sweeps(data):
    def run(device):
        options = {"step": ofw.steps.LineSearch(), "corrective": ofw.RidgeSweeps(10, start=START)}
        return played(data, device, size=500_000, radius=80_000.0, **options)

    run("cuda")
    learner, rounds, seconds = run("cuda")
    here, _, slow = run("cpu")
    mse = {
        side: test_mse(one.objective, *data[2:]) for side, one in (("gpu", learner), ("cpu", here))
    }
    return [
        "## Corrective sweeps on a doubling schedule",
        "",
        f"Rank 10, radius 80,000, {len(rounds)} rounds of 500,000 ratings, ridge found on the "
        f"newest ratings, corrected at {START:,} ratings and whenever they have doubled.",
        "",
        "| | seconds | test MSE |",
        "| --- | --- | --- |",
        f"| one H200 | {seconds:.2f} (asked: at most 1) | {mse['gpu']:.4f} (asked: at most 0.61) |",
        f"| CPU, 16 cores of the same machine | {slow:.1f} | {mse['cpu']:.4f} |",
        "",
    ]


def fit(data):
    """The estimator without arguments but the place."""

    def run(device):
        X, y, *_ = data
        model = ofw.FrankWolfeMatrixCompletion(device=device)
        started = perf_counter()
        model.fit(X, y)
        cp.cuda.Device().synchronize()
        return model, perf_counter() - started

    def mse(model):
        return float(np.mean((model.predict(data[2]) - data[3]) ** 2))

    run("cuda")
    model, seconds = run("cuda")
    run("cpu")
    here, slow = run("cpu")
    return [
        "## The default `fit`",
        "",
        f"`FrankWolfeMatrixCompletion(device=...)`, {model.n_rounds_} rounds; arrays are in this "
        "process's memory before.",
        "",
        "| | seconds | test MSE |",
        "| --- | --- | --- |",
        f"| one H200 | {seconds:.2f} (asked: at most 0.7) | {mse(model):.4f} "
        "(asked: at most 0.60) |",
        f"| CPU, 16 cores of the same machine | {slow:.1f} | {mse(here):.4f} |",
        "",
    ]


def factors(data):
    """Rows and columns solved in batches."""
    size, most = 100_000, 4_000_000
    X, y = data[0][:most], data[1][:most]

    def run(device):
        model = ofw.FrankWolfeMatrixCompletion(corrective="factors", shape=SHAPE, device=device)
        seconds = []
        for start in range(0, most, size):
            part = slice(start, start + size)
            began = perf_counter()
            model.partial_fit(X[part], y[part])
            seconds.append(perf_counter() - began)
        began = perf_counter()
        model.refine()
        return model, np.median(seconds[-10:]), perf_counter() - began

    lines = [
        "## Factors in batches",
        "",
        f'`corrective="factors"`, four chains of rank 16, {most:,} ratings in batches of {size:,}: '
        "a batch of the last ten (median), and a sweep over all rows and columns.",
        "",
        "| | a batch, seconds | a sweep, seconds | test MSE |",
        "| --- | --- | --- | --- |",
    ]
    names = {"cuda": "one H200", "cpu": "CPU, 16 cores of the same machine"}
    for device, name in names.items():
        model, batch, sweep = run(device)
        error = float(np.mean((model.predict(data[2]) - data[3]) ** 2))
        lines.append(f"| {name} | {batch:.3f} | {sweep:.2f} | {error:.4f} |")
    return [*lines, ""]


PARTS = {"products": products, "pass": one_pass, "sweeps": sweeps, "fit": fit, "factors": factors}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--write", action="store_true", help="replace matrix.md")
    options = parser.parse_args()
    data = ratings()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = [f"{name}.", ""]
    for part in options.parts or PARTS:
        found = PARTS[part](data)
        print("\n".join(found), flush=True)
        lines += found
    if options.write:
        path = Path(__file__).with_suffix(".md")
        cupys = ["cupy-cuda12x", "cupy-cuda13x"]  # whichever is there
        write_table(path, "Matrix completion on a GPU", lines, cupys)


if __name__ == "__main__":
    main()
