"""Clicks in the order of time: how often the next item is among the ten best, and time per event.

    ONLINEFW_DATA=folder python benchmarks/recommend/clicks.py [--write]

MovieLens 100k, ratings of 5 only, in the order of time; the first 30% are for warming up. Then each
event is ranked before it is learned, among the items seen so far that the user has not had. Recall
at 10 counts all events, those of new items too, which nobody can rank. Popularity is beside it.

Times are processor time of an event, in microseconds, without and with ranking. The first line is
the default. The weight of unobserved entries (0.2) and the ridge (0.55 times the noise) were
compared on the ratings of 4 and of 3 of the same file, on the first 30% of these events and on a
validation part of MovieLens 1M; how the rank grows was set by the fits on MovieLens 1M. The
candidates for what counts besides theta (how fast a taste and the trend fade, what the trend may
be worth) are older, and were compared on the very events that are scored here; the model chooses
among them on the way. The other lines show what a choice makes of it: all are within the error of
a recall, 0.003.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np

import onlinefw as ofw
from onlinefw.datasets import fetch_movielens

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

TOP, WARMING_UP = 10, 0.3
#: alpha, rank and ridge; the first is the default.
SETTINGS = (
    (0.2, "auto", "auto"),
    (0.1, "auto", "auto"),
    (0.2, 16, "auto"),
    (0.2, 32, "auto"),
    (0.2, 24, (1.0, 0.02)),
)


def stream():
    """Return the events, users and items numbered as they come."""
    data = fetch_movielens("100k")
    which = np.flatnonzero(data.values == 5)
    which = which[np.argsort(data.timestamps[which], kind="stable")]
    return np.column_stack([numbered(x[which]) for x in (data.rows, data.cols)])


def numbered(ids):
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    number = np.empty(first.size, np.int64)
    number[np.argsort(first)] = np.arange(first.size)
    return number[inverse]


def learned(X, alpha, rank, ridge, ranks):
    """Return ranks or predictions, seconds, and what the model counts besides theta."""
    learner = ofw.OnlineFactors(rank=rank, ridge=ridge, unobserved=alpha)
    start = process_time()
    found = learner.learn(X, np.ones(len(X)), ranks=ranks)
    return found, process_time() - start, learner.model.arm


def popularity(X, first):
    counts, had = np.zeros(X[:, 1].max() + 1), np.zeros(X.max(axis=0) + 1, bool)
    hits = 0
    for t, (i, j) in enumerate(X):
        if t >= first and counts[j] > 0:
            hits += np.sum(counts[~had[i]] > counts[j]) < TOP
        counts[j] += 1
        had[i, j] = True
    return hits / (len(X) - first)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace clicks.md")
    options = parser.parse_args()
    X = stream()
    n, first = len(X), int(WARMING_UP * len(X))
    lines = [
        f"{n:,} events; popularity: recall at {TOP} {popularity(X, first):.4f}.",
        "",
        "| alpha | rank | ridge | recall | first half | second half | us | us ranked | in use |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print(*lines, sep="\n")
    for alpha, rank, ridge in SETTINGS:
        ranks, ranked, in_use = learned(X, alpha, rank, ridge, True)
        _, plain, _ = learned(X, alpha, rank, ridge, False)
        hits = ranks[first:] <= TOP
        halves = [half.mean() for half in np.array_split(hits, 2)]
        times = [1e6 * seconds / n for seconds in (plain, ranked)]
        lines.append(
            f"| {alpha} | {rank} | {ridge} | {hits.mean():.4f} | {halves[0]:.4f} | "
            f"{halves[1]:.4f} | {times[0]:.0f} | {times[1]:.0f} | {in_use} |"
        )
        print(lines[-1], flush=True)
    if options.write:
        title = "What choices make of clicks in the order of time"
        write_table(Path(__file__).with_suffix(".md"), title, lines)


if __name__ == "__main__":
    main()
