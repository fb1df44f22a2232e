"""Ratings of MovieLens 100k in the order of time, with half-lives and without.

    ONLINEFW_DATA=folder python benchmarks/drift/movielens.py [--write]

Each rating is predicted before it is learned; all else are the defaults. ``--write`` replaces
movielens.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np

import onlinefw as ofw

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HALF_LIVES = (None, 10_000, 20_000, 40_000, 80_000, "auto")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace movielens.md")
    options = parser.parse_args()
    data = ofw.datasets.fetch_movielens("100k")
    order = np.argsort(data.timestamps, kind="stable")
    X, y = np.column_stack((data.rows, data.cols))[order], data.values[order].astype(float)
    ofw.FrankWolfeMatrixCompletion(half_life="auto").learn(X[:3000], y[:3000])  # compiles
    lines = [
        "Mean squared errors of predictions made before learning, in the order of time.",
        "",
        "| half-life | all ratings | last fifth | processor seconds |",
        "| --- | --- | --- | --- |",
    ]
    for half_life in HALF_LIVES:
        began = process_time()
        predicted = ofw.FrankWolfeMatrixCompletion(half_life=half_life).learn(X, y)
        errors, seconds = (predicted - y) ** 2, process_time() - began
        last = errors[len(y) * 4 // 5 :].mean()
        lines.append(f"| {half_life} | {errors.mean():.4f} | {last:.4f} | {seconds:.1f} |")
        print(lines[-1], flush=True)
    if options.write:
        title = "MovieLens 100k in the order of time"
        write_table(Path(__file__).with_name("movielens.md"), title, lines)


if __name__ == "__main__":
    main()
