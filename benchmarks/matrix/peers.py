"""Our matrix completion and its peers on the same ratings, in one run: error, seconds, memory.

    ONLINEFW_DATA=folder python benchmarks/matrix/peers.py --data ml-100k [--seeds 0 1 2] [--write]
    python benchmarks/matrix/peers.py --data generated [--size 1000000] [--write]

Every fit runs in a process of its own, one at a time, on two threads; a system that is not
installed or fails gives a line that says so. ``--only NAME ...`` runs some, ``--skip NAME ...``
leaves some out, ``--tune`` compares the settings of peer_settings.GRIDS on a tenth of the training
part instead, ``--write`` replaces peers-<data>.md. ml-100k and ml-1m come from
``fetch_movielens``; ``generated`` is ``make_movielens_like``, in the shape of MovieLens 20M.

The peers (Spark needs Java 17, myFM the older setuptools; LIBMF's wheel comes without SIMD):

    pip install cmfrec scikit-surprise cornac lenskit myfm river pyspark pandas fancyimpute
    pip install 'setuptools<81'
    CXXFLAGS='-O3 -mavx -DUSEAVX' pip install --no-binary libmf libmf
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
from peer_settings import CHOSEN, DOCUMENTED, GRIDS, NOT_RUN, OURS, PEERS
from peer_systems import SYSTEMS, THREADS

from onlinefw.datasets import fetch_movielens, make_movielens_like

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HERE = Path(__file__).parent
SHAPE, SIZE = (138_493, 26_744), 20_000_000
POOLS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON", "POLARS", "LK")


def ratings(data, seed, size):
    """Return rows, columns and values in the order of arrival, the shape, and a note on them."""
    if data == "generated":
        n_rows, n_cols = (round(n * (size / SIZE) ** 0.5) for n in SHAPE)  # the same density
        made = make_movielens_like(n_rows, n_cols, size, seed=seed)
        test = slice(size * 8 // 10, None)
        oracle = np.clip(made.mean(made.rows[test], made.cols[test]), 0.5, 5.0)
        floor = np.mean((oracle - made.values[test]) ** 2)
        return made.rows, made.cols, made.values, made.shape, f"oracle {floor:.3f}, "
    real = fetch_movielens(data.removeprefix("ml-")).shuffled(seed)
    return real.rows, real.cols, real.values, real.shape, ""


def write_split(path, rows, cols, values, shape, n_train, n_end=None):
    """Store the first n_train ratings for training and those up to n_end for testing."""
    a, b = slice(n_train), slice(n_train, n_end)
    train = {"rows": rows[a], "cols": cols[a], "values": values[a]}
    test = {"test_rows": rows[b], "test_cols": cols[b], "test_values": values[b]}
    np.savez(path, **train, **test, shape=shape)
    return float(np.mean((values[b] - values[a].mean(dtype=float)) ** 2))


def run(split, name, settings, timeout):
    """Fit one system in a process of its own; return what it reports, or {"error": ...}."""
    result = split.with_name("result.json")
    result.unlink(missing_ok=True)
    threads = {f"{pool}_NUM_THREADS": str(THREADS) for pool in POOLS}
    command = [sys.executable, "-W", "ignore", str(HERE / "peer_systems.py")]
    command += [str(split), name, json.dumps(settings), str(result)]
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
    """Settings as the table shows them; the passes have a column of their own."""
    return ", ".join(
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in settings.items()
        if key != "passes"
    )


def table_line(name, label, settings, found, n_train):
    """One row of the table: means over the seeds, or why there is none."""
    title = SYSTEMS[name].title
    errors = [f["error"] for f in found if "error" in f]
    if errors:
        return f"| {title} | {label} | {errors[0]} | | | | | | | |"
    mse, seconds, work = (np.mean([f[key] for f in found]) for key in ("mse", "seconds", "work"))
    peak = max(f["peak"] for f in found)
    passes = f"at most {settings['passes']}" if name == "softimpute" else settings["passes"]
    if name == "onlinefw":
        reads = found[0]["reads"]
        again = "what is kept is read again, not counted" if reads is None else f"{reads:.0f} reads"
        passes = f"{passes} ({again})"
    return (
        f"| {title} {found[0]['version']} | {label} | {mse:.3f} | {passes} | {seconds:.3g} | "
        f"{work:.2f} | {n_train / seconds:,.0f} | {peak:,.0f} | {SYSTEMS[name].online} | "
        f"{SYSTEMS[name].certificate} |"
    )


def compare(options, folder):
    """Run every line on every seed and return the table."""
    lines = [("onlinefw", label, s) for label, s in OURS[options.data].items()]
    lines += [(name, words(s), s) for name, s in PEERS[options.data]]
    named = {name for name, _ in PEERS[options.data]}
    documented = [(name, s) for name, s in DOCUMENTED.items() if name in named]
    lines += [(name, f"documented: {words(s)}", s) for name, s in documented]
    lines = [line for line in lines if not options.only or line[0] in options.only]
    lines = [line for line in lines if line[0] not in options.skip]
    found = [[] for _ in lines]
    for seed in options.seeds:
        rows, cols, values, shape, note = ratings(options.data, seed, options.size)
        n_train = values.size * 8 // 10
        split = folder / "split.npz"
        mean = write_split(split, rows, cols, values, shape, n_train)
        n_test = values.size - n_train
        del rows, cols, values  # room for the one that runs
        for (name, label, settings), results in zip(lines, found, strict=True):
            results.append(run(split, name, settings, options.timeout))
            print(table_line(name, label, settings, results[-1:], n_train), flush=True)
    seeds = ", ".join(map(str, options.seeds))
    table = [
        f"{shape[0]:,} x {shape[1]:,}, {n_train:,} ratings for training and {n_test:,} for "
        f"testing, seed {seeds}. Test MSE of predictions clipped to the training range ({note}"
        f"global mean {mean:.3f}). Seconds are training alone, with the data in the form the "
        "library wants and after a first small fit where code is compiled on first use, by the "
        "clock and of the processors (all threads; compare these where the load is above the "
        "number of cores); ratings/s are training ratings over the seconds by the clock, all "
        "passes together. Passes are how often a library is given the ratings, or goes through "
        "them by itself; ours reads those that it has again, in every round or by sweeps: in "
        "brackets how often all of them, where it "
        f"counts. {CHOSEN[options.data]} `documented` ones are the "
        "library's defaults, or of its tutorial. Ours: `auto` is found while learning, a radius "
        "was chosen on validation rows (`peer_settings.py`). Peak memory is that of the "
        f"process and its children, data and Python included. {THREADS} threads, one process at a "
        "time.",
        "",
        "| system | settings | test MSE | passes | seconds | CPU s | ratings/s | peak MB | "
        "online | certificate |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (name, label, settings), results in zip(lines, found, strict=True):
        table.append(table_line(name, label, settings, results, n_train))
    skipped = dict.fromkeys(options.skip, "left out this time")
    for name, reason in (NOT_RUN.get(options.data, {}) | skipped).items():
        if not options.only or name in options.only:
            table.append(f"| {SYSTEMS[name].title} | | not run: {reason} | | | | | | | |")
    return [*table, ""]


def tune(options, folder):
    """Print the validation error of every combination in GRIDS, best first."""
    rows, cols, values, shape, _ = ratings(options.data, options.seeds[0], options.size)
    n_train = values.size * 8 // 10
    split = folder / "split.npz"
    write_split(split, rows, cols, values, shape, n_train * 9 // 10, n_train)
    for name in options.only or GRIDS:
        tried = []
        for combination in itertools.product(*GRIDS[name].values()):
            settings = dict(zip(GRIDS[name], combination, strict=True))
            found = run(split, name, settings, options.timeout)
            tried.append((found.get("mse", np.inf), found.get("seconds"), settings))
        for mse, seconds, settings in sorted(tried, key=lambda line: line[0]):
            print(f"{name:12} {mse:.4f} {seconds or 0:8.2f} s  {settings}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=("ml-100k", "ml-1m", "generated"), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--size", type=int, default=SIZE, help="generated entries, for a trial")
    parser.add_argument(
        "--only", nargs="+", choices=list(SYSTEMS), metavar="NAME", help=", ".join(SYSTEMS)
    )
    parser.add_argument(
        "--skip", nargs="+", choices=list(SYSTEMS), default=[], metavar="NAME",
        help="leave these out: the table says so",
    )  # fmt: skip
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for one fit")
    parser.add_argument("--tune", action="store_true", help="compare settings, make no table")
    parser.add_argument("--write", action="store_true", help="replace peers-<data>.md")
    options = parser.parse_args()
    if options.write and (options.only or options.size != SIZE or options.tune):
        parser.error("--write commits the whole table: leave --only, --size and --tune out")
    with tempfile.TemporaryDirectory() as folder:
        if options.tune:
            tune(options, Path(folder))
            return
        table = compare(options, Path(folder))
    print("", *table, sep="\n")
    if options.write:
        title = f"Matrix completion next to its peers: {options.data}"
        packages = [SYSTEMS[name].package for name, _ in PEERS[options.data]]
        write_table(HERE / f"peers-{options.data}.md", title, table, packages)


if __name__ == "__main__":
    main()
