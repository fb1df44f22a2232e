"""Recommendations from clicks as they happen: each is ranked before it is learned.

    ONLINEFW_DATA=folder python benchmarks/recommend/stream.py [--only NAME ...] [--write]

MovieLens 100k, ratings of 5 only, in the order of time. The first 30% warm up. After that every
click is ranked among the items that somebody has had by then and the user has not, and then it is
learned; one with an item that nobody has had is learned only. A system that is not installed gives
a line that says so. ``--tune`` compares the settings of stream_settings.GRIDS on the second half of
the warm-up (the first half warms up) instead, ``--write`` replaces stream.md.

The peers:

    pip install river flurs implicit
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from importlib.metadata import version
from pathlib import Path
from time import process_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products, and implicit asks for it

import numpy as np
from stream_settings import DEFAULTS, GRIDS, OURS, PEERS
from stream_systems import SYSTEMS

import onlinefw as ofw
from onlinefw.datasets import fetch_movielens
from onlinefw.evaluate import RankedEvents
from onlinefw.evaluate.progressive import counts_before

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HERE = Path(__file__).parent
MICRO = 1e6
WARM = 0.3


def in_order_of_first(ids):
    """Number ids in the order in which they first occur."""
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def stream():
    """Return the users and the items of all clicks, in the order of time."""
    data = fetch_movielens("100k")
    order = np.argsort(data.timestamps, kind="stable")
    order = order[data.values[order] == 5]
    return in_order_of_first(data.rows[order]), in_order_of_first(data.cols[order])


def rank_of(item, scores, had):
    """The rank of an item, 1 the best; of equal scores the item that was seen first is better."""
    scores = np.nan_to_num(np.array(scores, float), nan=-np.inf)
    scores[had] = -np.inf
    mine = scores[item]
    return 1 + np.count_nonzero(scores > mine) + np.count_nonzero(scores[:item] == mine)


def ranks(model, users, items, warm):
    """Let a recommender warm up, then rank and learn one click after another."""
    users, items = users.tolist(), items.tolist()
    had = {}
    for user, item in zip(users[:warm], items[:warm], strict=True):
        had.setdefault(user, []).append(item)
    model.warm_up(users[:warm], items[:warm])
    known, found = 1 + max(items[:warm]), np.full(len(users), np.nan)
    for k in range(warm, len(users)):
        user, item = users[k], items[k]
        before = had.setdefault(user, [])
        if item < known and item not in before:
            found[k] = rank_of(item, model.scores(user, known), before)
        model.learn(user, item)
        before.append(item)
        known = max(known, item + 1)
    return found


def learning_time(model, users, items, warm):
    """Microseconds of processor time to learn a click after the warm-up, without ranking."""
    users, items = users.tolist(), items.tolist()
    model.warm_up(users[:warm], items[:warm])
    began = process_time()
    for user, item in zip(users[warm:], items[warm:], strict=True):
        model.learn(user, item)
    return MICRO * (process_time() - began) / (len(users) - warm)


def scores_of(found, users, items, warm):
    before = counts_before(users), counts_before(items)
    ranked = RankedEvents(found, np.arange(users.size), *before)
    scores = ranked.scores(10, since=warm / users.size)
    share = scores["events"] / (users.size - warm)
    return {**scores, "of all": share * scores["recall"]}


def words(settings):
    """Settings as the table shows them."""
    return ", ".join(f"{key} {value:g}" for key, value in settings.items())


def table_line(name, label, scores, *times):
    times = " | ".join(f"{time:.3g}" for time in times)
    return (
        f"| {name} | {label} | {scores['of all']:.4f} | {scores['recall']:.4f} | "
        f"{scores['ndcg']:.4f} | {times} |"
    )


def our_lines(users, items, warm):
    """The lines of our own recommender: many clicks in a call, and one."""
    if not hasattr(ofw, "FrankWolfeRecommender"):
        return ["| onlinefw | skipped: this version has no FrankWolfeRecommender | | | | |"]
    X, lines = np.column_stack((users, items)).astype(np.int64), []
    ofw.FrankWolfeRecommender().learn(X[:1000], ranks=True)  # compiles
    for label, settings in OURS.items():
        found = ofw.FrankWolfeRecommender(**settings).learn(X, ranks=True)
        model = ofw.FrankWolfeRecommender(**settings).partial_fit(X[:warm])
        began = process_time()
        model.learn(X[warm:], ranks=False)
        time = MICRO * (process_time() - began) / (users.size - warm)
        single = ofw.FrankWolfeRecommender(**settings).partial_fit(X[:warm])
        began = process_time()
        for k in range(warm, users.size):
            single.learn(X[k : k + 1], ranks=False)
        alone = MICRO * (process_time() - began) / (users.size - warm)
        scores = scores_of(np.asarray(found, float), users, items, warm)
        lines.append(table_line("onlinefw, clicks in one call", label, scores, time))
        lines.append(table_line("onlinefw, a call for each", label, scores, alone))
    return lines


def peer_line(name, label, settings, users, items, warm):
    make, package = SYSTEMS[name]
    try:
        found = ranks(make(**settings), users, items, warm)
    except ImportError as error:
        return f"| {name} | not installed ({error}) | | | | |"
    time = learning_time(make(**settings), users, items, warm)
    title = name if package is None else f"{name} {version(package)}"
    return table_line(title, label, scores_of(found, users, items, warm), time)


def compare(only):
    """Run every line and return the table."""
    users, items = stream()
    warm = round(WARM * users.size)
    known = np.count_nonzero(counts_before(items)[warm:])
    table = [
        f"MovieLens 100k, ratings of 5 in the order of time: {users.size:,} clicks of "
        f"{users.max() + 1:,} users on {items.max() + 1:,} items. The first {warm:,} warm up; "
        f"{known:,} later ones were ranked before they were learned, among the items that somebody "
        "had had and the user had not. Recall at 10 is the share that was among the 10 best, of "
        "all later clicks (one on an item that nobody had had is a miss), and of those ranked. The "
        "peers' settings are the best of a grid on the second half of the warm-up, "
        "and the defaults of their packages (`stream_settings.py`). Microseconds of processor time "
        "to learn one click after the warm-up, without ranking. FluRS's other recommenders want "
        "features of users and items, or compare all users at every click (UserKNN).",
        "",
        "Ours has no settings, but constants. The rule for the rank (`factors/clicks.py`), "
        "the ridge (0.1 + 0.55 times the noise) and what an unobserved item weighs (0.2) were "
        "chosen on other streams and on validation parts: ratings of 3 and 4, generated clicks, "
        "the warm-up, and training clicks of MovieLens 1M. What an entry of the past counts in a "
        "present taste (FRESH and LATEST in `native/clicks.hpp`) was chosen on the warm-up "
        "and on ratings of 4 and 3, by the rule of [constants.md](constants.md). The candidates "
        "LATELY, PRESENT and WORTH were once chosen on the very clicks that are scored here; "
        "constants.md has what others in their place bring. Which is used is found while learning.",
        "",
        "| system | settings | recall at 10 | of ranked clicks | NDCG at 10 of ranked clicks | "
        "CPU microseconds a click |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    head = len(table)
    if not only or "onlinefw" in only:
        table += our_lines(users, items, warm)
        print(*table[head:], sep="\n", flush=True)
    for name in PEERS:
        lines = [(words(PEERS[name]), PEERS[name])]
        if name in DEFAULTS:
            lines.append((f"its defaults: {words(DEFAULTS[name])}", DEFAULTS[name]))
        for label, settings in lines if not only or name in only else []:
            table.append(peer_line(name, label, settings, users, items, warm))
            print(table[-1], flush=True)
    return table


def tune(only):
    """Print the recall on the validation part of all the settings in the grids."""
    users, items = stream()
    warm = round(WARM * users.size)
    users, items = users[:warm], items[:warm]
    for name in only or GRIDS:
        best, tried = PEERS[name], {}
        for stage in GRIDS[name]:
            for combination in itertools.product(*stage.values()):
                settings = best | dict(zip(stage, combination, strict=True))
                if words(settings) in tried:
                    continue
                with np.errstate(all="ignore"):  # a rate that is too large diverges
                    found = ranks(SYSTEMS[name][0](**settings), users, items, warm // 2)
                recall = scores_of(found, users, items, warm // 2)["recall"]
                tried[words(settings)] = (recall, settings)
                print(f"{name:24} {recall:.4f}  {words(settings)}", flush=True)
            best = max(tried.values(), key=lambda one: one[0])[1]
        print(f"the best of {name}: {best}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["onlinefw", *SYSTEMS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--tune", action="store_true", help="compare settings, make no table")
    parser.add_argument("--write", action="store_true", help="replace stream.md")
    options = parser.parse_args()
    if options.write and (options.only or options.tune):
        parser.error("--write commits the whole table: leave --only and --tune out")
    if options.tune:
        tune(options.only)
        return
    table = compare(options.only)
    if options.write:
        title = "Recommendations from clicks as they happen"
        packages = [SYSTEMS[name][1] for name in PEERS if SYSTEMS[name][1] is not None]
        write_table(HERE / "stream.md", title, table, packages)


if __name__ == "__main__":
    main()
