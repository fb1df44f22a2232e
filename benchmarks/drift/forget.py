"""Forgetting a person: how long it takes, and what it does to the certificate.

    ONLINEFW_DATA=... python benchmarks/drift/forget.py [--people 200] [--write]

MovieLens 1M in random order, learned with the defaults, and with a half-life of a quarter of
the ratings. Then people who are drawn at random are forgotten one after another. The certificate is
computed before the first, after the first, and after the last of them.
``--write`` replaces forget.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import onlinefw as ofw
from onlinefw.datasets import fetch_movielens

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

MILLI = 1e3


def stream():
    data = fetch_movielens("1m")
    order = np.random.default_rng(0).permutation(data.values.size)
    X = np.column_stack((data.rows, data.cols)).astype(np.int64)[order]
    return X, data.values.astype(float)[order]


def forgetting(X, y, half_life, people):
    """Return the line of a table."""
    model = ofw.FrankWolfeMatrixCompletion(half_life=half_life)
    model.learn(X, y)
    warm = ofw.FrankWolfeMatrixCompletion(half_life=half_life)
    warm.learn(X[:1000], y[:1000])
    warm.forget(int(X[0, 0]))  # compiles
    chosen = np.random.default_rng(0).choice(np.unique(X[:, 0]), people, replace=False)
    ratings = np.bincount(X[:, 0])[chosen]
    gaps, seconds, work = [model.gap_], [], []
    for k, person in enumerate(chosen):
        start, began = perf_counter(), process_time()
        model.forget(int(person))
        seconds.append(perf_counter() - start)
        work.append(process_time() - began)
        if k in (0, people - 1):
            gaps.append(model.gap_)
    median, late, most = np.quantile(seconds, (0.5, 0.9, 1.0)) * MILLI
    name = "none" if half_life is None else f"{half_life:,}"
    return (
        f"| {name} | {people} | {np.median(ratings):.0f} | {MILLI * np.median(work):.1f} "
        f"| {median:.1f} | {late:.1f} | {most:.1f} "
        f"| {gaps[0]:.4f} | {gaps[1] / gaps[0]:.3f} | {gaps[2] / gaps[0]:.3f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    X, y = stream()
    lines = [
        "MovieLens 1M in random order; `forget(row)` of people drawn at random, one after "
        "another. Milliseconds of processor time (of all threads) and by the clock, which a busy "
        "machine makes longer; the certificate (`gap_`) before the first, and its ratio after one "
        "person and after all of them.",
        "",
        "| half-life | people | ratings of one (median) | CPU ms (median) | ms (median) | ms (90%) "
        "| ms (most) | certificate | after one | after all |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for half_life in (None, y.size // 4):
        lines.append(forgetting(X, y, half_life, options.people))
        print(lines[-1], flush=True)
    if options.write:
        write_table(Path(__file__).with_suffix(".md"), "Forgetting a person", lines)


if __name__ == "__main__":
    main()
