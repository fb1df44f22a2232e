"""Recommendations from clicks, learned once: ours after one `fit` beside its peers.

    ONLINEFW_DATA=folder python benchmarks/recommend/offline.py [--only NAME ...] [--write]

MovieLens 1M without times: ratings of 4 and 5 are clicks, in a random order that is the same in
every run. The last fifth of each user's clicks are the test; everything a user has not had in the
training part may be recommended. Every fit runs in a process of its own, one at a time, on two
threads; a system that is not installed or fails gives a line that says so. ``--tune`` compares the
settings of offline_settings.GRIDS on the last fifth of each user's training clicks instead,
``--write`` replaces offline.md.

The peers (LightFM itself does not build any more; lightfm-next is a fork that does):

    pip install implicit cornac lenskit lightfm-next pandas
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from offline_settings import DEFAULTS, GRIDS, OURS, PEERS
from offline_systems import SYSTEMS, THREADS

from onlinefw.datasets import fetch_movielens
from onlinefw.evaluate.progressive import counts_before

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HERE = Path(__file__).parent
POOLS = ("OMP", "MKL", "NUMBA", "RAYON", "POLARS", "LK", "OPENBLAS")


def clicks():
    """Return users, items and the shape of the ratings of 4 and 5, in random order."""
    data = fetch_movielens("1m").shuffled(0)
    liked = data.values >= 4
    users, items = (np.unique(ids[liked], return_inverse=True)[1] for ids in (data.rows, data.cols))
    return users, items, (users.max() + 1, items.max() + 1)


def split(users, items):
    """Put the last fifth of each user's clicks apart: (training), (test)."""
    later = counts_before(users) >= 0.8 * np.bincount(users)[users]
    return (users[~later], items[~later]), (users[later], items[later])


def write_split(path, train, test, shape):
    np.savez(
        path, users=train[0], items=train[1], test_users=test[0], test_items=test[1], shape=shape
    )


def run(path, name, settings, timeout):
    """Fit one system in a process of its own; return what it reports, or {"error": ...}."""
    result = path.with_name("result.json")
    result.unlink(missing_ok=True)
    threads = {f"{pool}_NUM_THREADS": str(THREADS) for pool in POOLS}
    if name.startswith("implicit"):
        threads["OPENBLAS_NUM_THREADS"] = "1"  # as it asks for: it has threads of its own
    command = [sys.executable, "-W", "ignore", str(HERE / "offline_systems.py")]
    command += [str(path), name, json.dumps(settings), str(result)]
    try:
        done = subprocess.run(
            command, env=os.environ | threads, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {timeout:,.0f} s"}
    if not result.exists():
        return {"error": f"ended with exit code {done.returncode}"}
    return json.loads(result.read_text())


def words(settings):
    """Settings as the table shows them."""
    return ", ".join(f"{key} {value:g}" for key, value in settings.items())


def table_line(name, label, found):
    title = SYSTEMS[name].title
    if "error" in found:
        return f"| {title} | {label} | {found['error']} | | | | |"
    package = "" if name == "popularity" else f" {found['version']}"
    return (
        f"| {title}{package} | {label} | {found['ndcg']:.4f} | {found['recall']:.4f} | "
        f"{found['seconds']:.3g} | {found['cpu']:.3g} | {found['asked']:.2g} |"
    )


def compare(options, folder):
    """Run every line and return the table."""
    users, items, shape = clicks()
    train, test = split(users, items)
    path = folder / "split.npz"
    write_split(path, train, test, shape)
    lines = [("onlinefw", label, settings) for label, settings in OURS.items()]
    for name, settings in PEERS.items():
        lines.append((name, words(settings), settings))
        if name in DEFAULTS:
            label = f"its defaults: {words(DEFAULTS[name])}"
            lines.append((name, label, DEFAULTS[name]))
    table = [
        f"MovieLens 1M, ratings of 4 and 5: {shape[0]:,} users, {shape[1]:,} items, "
        f"{train[0].size:,} clicks for training and {test[0].size:,} for testing, the last fifth "
        "of each user's in a random order. Means over users; items of the training part are not "
        "recommended again. Ours reads the clicks once, and then solves all users and items five "
        "times on those that it keeps, as an iteration of ALS does. The peers' settings are the "
        "best of a grid on the last fifth of each user's training clicks, and the defaults of "
        "their packages (`offline_settings.py`). "
        "Seconds of training by the clock and of processor time, with the data in the form the "
        "library wants and after a first small fit where code is compiled on first use; then the "
        f"seconds of 20 items for every user. {THREADS} threads, one process at a time. "
        "lenskit's ALS and LightFM begin at random: in four runs scores of theirs differed by up "
        "to 0.0016 and 0.0041. Where the load is above the number of cores, compare CPU seconds.",
        "",
        "Ours has no settings, but constants: the rule for the rank (`factors/clicks.py`), "
        "the ridge (0.1 + 0.55 times the noise) and what an unobserved item weighs (0.2), chosen "
        "on other streams and on validation parts; the candidates for what counts in a taste "
        "(`native/clicks.hpp`) are from MovieLens 100k. While this was made, the test of "
        "this table was looked at about six times in all.",
        "",
        "| system | settings | NDCG at 10 | recall at 20 | training s | CPU s | recommending s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, label, settings in lines:
        if not options.only or name in options.only:
            table.append(table_line(name, label, run(path, name, settings, options.timeout)))
            print(table[-1], flush=True)
    return table


def tune(options, folder):
    """Print the scores on the validation part of all the settings in the grids."""
    train, _ = split(*clicks()[:2])
    shape = clicks()[2]
    path = folder / "split.npz"
    write_split(path, *split(*train), shape)
    for name in options.only or GRIDS:
        best, tried = PEERS[name], {}
        for stage in GRIDS[name]:
            for combination in itertools.product(*stage.values()):
                settings = best | dict(zip(stage, combination, strict=True))
                if words(settings) in tried:
                    continue
                found = run(path, name, settings, options.timeout)
                tried[words(settings)] = (found.get("ndcg", 0.0), settings)
                print(table_line(name, words(settings), found), flush=True)
            best = max(tried.values(), key=lambda one: one[0])[1]
            print(f"the best of {name}: {best}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", choices=list(SYSTEMS), metavar="NAME", help=", ".join(SYSTEMS)
    )
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one fit")
    parser.add_argument("--tune", action="store_true", help="compare settings, make no table")
    parser.add_argument("--write", action="store_true", help="replace offline.md")
    options = parser.parse_args()
    if options.write and (options.only or options.tune):
        parser.error("--write commits the whole table: leave --only and --tune out")
    with tempfile.TemporaryDirectory() as folder:
        if options.tune:
            tune(options, Path(folder))
            return
        table = compare(options, Path(folder))
    if options.write:
        packages = [SYSTEMS[name].package for name in SYSTEMS if name != "onlinefw"]
        write_table(HERE / "offline.md", "Recommendations from clicks", table, packages)


if __name__ == "__main__":
    main()
