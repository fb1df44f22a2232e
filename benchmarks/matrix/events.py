"""Single ratings: how long one waits, and how that grows with what has been seen.

    python benchmarks/matrix/events.py [--events 10_000_000] [--write]

One rating through ``partial_fit``, ``predict`` and ``learn``, each called from Python, on MovieLens
100k in the order of time; beside it river's ``learn_one`` and ``predict_one`` at the settings of
its tutorial. Python's garbage collector leaves alone what was imported (``gc.freeze``): else it
looks through all of that once, in 60 ms or more, in whichever call that is. Then generated ratings,
of which some columns get more than a hundred thousand: the time of an event, the mean length of the
rows and columns that it touches, and the memory of the past.
``--write`` replaces events.md.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import onlinefw as ofw
from onlinefw.datasets import fetch_movielens

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

MICRO = 1e6
ROWS, COLUMNS = 100_000, 5_000
PIECE = 1_000


def stream():
    data = fetch_movielens("100k")
    order = np.argsort(data.timestamps, kind="stable")
    X = np.column_stack((data.rows, data.cols)).astype(np.int64)[order]
    return X, data.values.astype(float)[order]


def waits(act, n):
    """Return the microseconds of n calls."""
    seconds = np.empty(n)
    for k in range(n):
        began = perf_counter()
        act(k)
        seconds[k] = perf_counter() - began
    return MICRO * seconds


def line(name, found):
    median, tail, most = np.median(found), np.percentile(found, 99.9), found.max()
    return f"| {name} | {median:.0f} | {tail:.0f} | {tail / median:.1f} | {most / 1000:.1f} |"


def singles():
    X, y = stream()
    n = len(y)
    gc.collect()
    gc.freeze()
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(X[:100], y[:100])
    learned = waits(
        lambda k: model.partial_fit(X[k + 100 : k + 101], y[k + 100 : k + 101]), n - 100
    )
    asked = waits(lambda k: model.predict(X[k : k + 1]), 20_000)
    other = ofw.FrankWolfeMatrixCompletion()
    events = waits(lambda k: other.learn(X[k : k + 1], y[k : k + 1]), n)[100:]
    lines = [
        "MovieLens 100k in the order of time, microseconds a call with one rating (asked: a median "
        "of at most 60 for `learn`, 99.9% within 20 times that, none over 50 ms; before chains, "
        "commit 7730904, the medians were 89, 103 and 35). The call and the default's four chains "
        "are both in it, and no garbage collection of what was imported (`gc.freeze`).",
        "",
        "| | median | 99.9% | ratio | largest, ms |",
        "| --- | --- | --- | --- | --- |",
        line("`partial_fit`", learned),
        line("`learn`", events),
        line("`predict`", asked),
    ]
    river = river_model()
    if river is not None:
        users, films, values = *X.T.tolist(), y.tolist()
        learned = waits(lambda k: river.learn_one(users[k], films[k], values[k]), n)[100:]
        asked = waits(lambda k: river.predict_one(users[k], films[k]), 20_000)
        lines += [line("river, `learn_one`", learned), line("river, `predict_one`", asked)]
    return lines


def river_model():
    """Return river's biased matrix factorisation at the settings of its tutorial, if it is here."""
    try:
        from river import optim, reco
    except ImportError:
        return None
    return reco.BiasedMF(
        n_factors=10,
        bias_optimizer=optim.SGD(0.025),
        latent_optimizer=optim.SGD(0.05),
        weight_initializer=optim.initializers.Zeros(),
        latent_initializer=optim.initializers.Normal(mu=0.0, sigma=0.1, seed=73),
        l2_bias=0.0,
        l2_latent=0.0,
    )


def generated(n):
    rng = np.random.default_rng(0)
    rows = (ROWS * rng.random(n) ** 2).astype(np.int64)
    columns = (COLUMNS * rng.random(n) ** 4).astype(np.int64)
    left, right = rng.standard_normal((ROWS, 4)), rng.standard_normal((COLUMNS, 4))
    y = 0.4 * np.einsum("ik,ik->i", left[rows], right[columns])
    return np.column_stack((rows, columns)), y + 0.5 * rng.standard_normal(n)


def growth(most):
    X, y = generated(most)
    model = ofw.FrankWolfeMatrixCompletion()
    stops = [n for n in (10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7, 3 * 10**7) if n <= most]
    lines = [
        "",
        f"Generated ratings of {ROWS:,} rows and {COLUMNS:,} columns, in calls of `learn` with "
        f"{PIECE:,}. The lengths are those of the row and the column of an event before it came, "
        "on average since the line before; equations are made of all the entries of up to 2,048, "
        "longer lists are read in pieces.",
        "",
        "| events | microseconds an event | row + column, mean length | longest column | "
        "slowest call, microseconds an event | bytes an entry |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    counts, start = [np.zeros(n, np.int64) for n in (ROWS, COLUMNS)], 0
    for stop in stops:
        calls, lengths = [], []
        for at in range(start, stop, PIECE):
            part = slice(at, at + PIECE)
            lengths.append(sum(c[X[part, k]].mean() for k, c in enumerate(counts)))
            began = perf_counter()
            model.learn(X[part], y[part])
            calls.append((perf_counter() - began) / PIECE)
            for k, c in enumerate(counts):
                c += np.bincount(X[part, k], minlength=c.size)
        bytes_each = model.objective_.model.lists.nbytes / stop
        lines.append(
            f"| {stop:,} | {MICRO * np.mean(calls):.1f} | {np.mean(lengths):,.0f} | "
            f"{counts[1].max():,} | {MICRO * max(calls):.0f} | {bytes_each:.0f} |"
        )
        print(lines[-1], flush=True)
        start = stop
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10**7)
    parser.add_argument("--write", action="store_true", help="replace events.md")
    options = parser.parse_args()
    lines = singles()
    print("\n".join(lines), flush=True)
    lines += growth(options.events)
    print("\n".join(lines))
    if options.write:
        path = Path(__file__).with_suffix(".md")
        write_table(path, "Single ratings", lines)


if __name__ == "__main__":
    main()
