"""How long the exact n best take, for one user and for many, and what learning an event costs.

    python benchmarks/recommend/top_n.py [--write]

The kernels: one user of a million items with 50 factors, beside a plain read of those factors in
the same run; and many users of 10,000 items. Then the recommender itself on generated clicks with
10,000 items: thousands of users in a call, one user, and events learned in one call or one by one.
Times by the clock, the smallest and the median of several; learning in processor time.
``--write`` replaces top_n.md.
"""

from __future__ import annotations

import argparse
import sys
from copy import deepcopy
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from numba import njit

import onlinefw as ofw
from onlinefw._threads import n_threads, share
from onlinefw.estimators.best_items import best_items, best_items_of_one

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

MILLI, MICRO = 1e3, 1e6
TOP, RANK = 10, 50
MANY_ITEMS, ITEMS, USERS = 1_000_000, 10_000, 10_000
EVENTS, MORE = 400_000, 5_000  # learned at once, and then in calls of learn
REPEATS = 31


@njit(cache=False, nogil=True, fastmath=True)
def read(from_block, to_block, blocks, factors, sums):
    """Add up all numbers: each is read once, and nothing else is done."""
    for b in range(from_block, to_block):
        part, total = factors[blocks[b] : blocks[b + 1]], factors.dtype.type(0)
        for k in range(part.size):
            total += part[k]
        sums[b] = total


def times(*functions, repeats=REPEATS):
    """Return the seconds of functions that take turns: a list for each, without the first."""
    found = np.empty((repeats + 1, len(functions)))
    for k in range(repeats + 1):
        for j, function in enumerate(functions):
            began = perf_counter()
            function()
            found[k, j] = perf_counter() - began
    return found[1:].T


def one_of_a_million(rng):
    factors = rng.standard_normal((MANY_ITEMS, RANK), dtype=np.float32)
    vector, offsets = rng.standard_normal(RANK), np.zeros(MANY_ITEMS, np.float32)
    blocks, sums = np.linspace(0, factors.size, 17).astype(np.int64), np.empty(16)
    flat = factors.reshape(-1)
    ours, plain = times(
        lambda: best_items_of_one(vector, factors, offsets, TOP),
        lambda: share(read, blocks, flat, sums),
    )
    best, median = (float(f(ours)) for f in (np.min, np.median))
    reading = [float(f(plain)) for f in (np.min, np.median)]
    right = np.argsort(-(factors @ vector.astype(np.float32)), kind="stable")[:TOP]
    assert np.array_equal(
        np.sort(best_items_of_one(vector, factors, offsets, TOP)[0]), np.sort(right)
    )
    return [
        f"| one user of {MANY_ITEMS:,} items, {RANK} factors, ms | {MILLI * best:.1f} "
        f"| {MILLI * median:.1f} | at most 12 |",
        f"| a plain read of these factors, ms | {MILLI * reading[0]:.1f} "
        f"| {MILLI * reading[1]:.1f} | |",
        f"| ratio of the two | {best / reading[0]:.2f} | {median / reading[1]:.2f} "
        "| at most 1.5 (12 / 8) |",
    ]


def rate(what, n, seconds, asked=""):
    return f"| {what} | {n / seconds.min():,.0f} | {n / np.median(seconds):,.0f} | {asked} |"


def many_users(rng):
    factors = rng.standard_normal((ITEMS, RANK), dtype=np.float32)
    vectors = rng.standard_normal((USERS, RANK), dtype=np.float32)
    offsets = np.zeros(ITEMS, np.float32)
    (seconds,) = times(lambda: best_items(vectors, factors, offsets, TOP), repeats=7)
    return [
        rate(f"users a second, {ITEMS:,} items, {RANK} factors", USERS, seconds, "at least 20,000")
    ]


def clicks(rng, users, items, n):
    """Return n events: users like three of 40 kinds of items, and of a kind the first ones most."""
    liked, each = rng.integers(40, size=(users, 3)), items // 40
    who = rng.integers(users, size=n)
    kind = liked[who, rng.integers(3, size=n)]
    return np.column_stack((who, kind * each + (each * rng.random(n) ** 2).astype(np.int64)))


def learning(model, X, of, asked=""):
    """Lines for events learned in one call, and the same events in a call for each."""
    other = deepcopy(model)
    for one in (model, other):
        one.learn(X[:1], ranks=False)  # a copy makes its lists again
    began = process_time()
    model.learn(X[1:], ranks=False)
    together = process_time() - began
    began = process_time()
    for k in range(1, len(X)):
        other.learn(X[k : k + 1], ranks=False)
    apart = process_time() - began
    together, apart = (MICRO * seconds / (len(X) - 1) for seconds in (together, apart))
    return [
        f"| `learn(ranks=False)` {of}, {len(X):,} events in one call, CPU microseconds an event "
        f"| {together:.0f} | | {asked} |",
        f"| the same events, a call for each (rank {model.rank_} then) | {apart:.0f} | | |",
    ]


def recommender(rng):
    X = clicks(rng, USERS, ITEMS, EVENTS + MORE)
    lines, users = [], np.arange(USERS)
    for rank in (RANK, "auto"):
        began = perf_counter()
        model = ofw.FrankWolfeRecommender(rank).fit(X[:EVENTS])
        fitted = perf_counter() - began
        name = f"rank {model.rank_}" + (', which "auto" finds' if rank == "auto" else "")
        (many,) = times(lambda m=model: m.recommend(users, TOP), repeats=7)
        (one,) = times(lambda m=model: m.recommend(7, TOP))
        one *= MILLI
        lines += [
            f"| `fit` of {EVENTS:,} events, {name}, s | {fitted:.1f} | | |",
            rate(f"`recommend` for {USERS:,} users, users a second", USERS, many),
            f"| `recommend` for one user, ms | {one.min():.2f} | {np.median(one):.2f} | |",
            *learning(model, X[EVENTS:], "after that `fit`"),
        ]
    return lines


def young_stream(rng):
    """Events in the numbers of the stream that stream.py scores."""
    X = clicks(rng, 928, 1172, 21_201)
    model = ofw.FrankWolfeRecommender()
    model.learn(X[:6360], ranks=False)
    of = "of 928 users on 1,172 items, after 6,360"
    return learning(model, X[6360:], of, "at most 60")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace top_n.md")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    lines = [
        f"The {TOP} best of all items, exactly, on {n_threads()} threads. The first four lines are "
        "the kernels on random factors in single precision; the read takes turns with the "
        "search, so both have the same noise. The others are `FrankWolfeRecommender` on generated "
        f"clicks of {USERS:,} users on {ITEMS:,} items, with what users have had left out, and at "
        "the end on as many clicks as [stream.md](stream.md) has.",
        "",
        "| what | best | median | asked |",
        "| --- | --- | --- | --- |",
    ]
    for part in (one_of_a_million, many_users, recommender, young_stream):
        new = part(rng)
        print(*new, sep="\n", flush=True)
        lines += new
    if options.write:
        write_table(Path(__file__).with_suffix(".md"), "The best items, and events", lines)


if __name__ == "__main__":
    main()
