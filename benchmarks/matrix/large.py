"""The default ``fit`` in the shape of MovieLens 20M: seconds by stage, and the test error.

    python benchmarks/matrix/large.py [--repeats 3] [--write]

Generated data (``make_movielens_like``): 138,493 x 26,744, the first 16 million ratings for
training, the other 4 million for testing. ``FrankWolfeMatrixCompletion()`` with all defaults, after
a small fit. Processor seconds are those of all threads together: they say more than
the clock on a machine that others use. The stages are those of the run whose clock is the middle
one. ``--write`` replaces large.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np

import onlinefw as ofw
from onlinefw.datasets import make_movielens_like
from onlinefw.estimators.base import StreamingEstimator
from onlinefw.estimators.stream import ArrayRounds
from onlinefw.factors.chains import Chains
from onlinefw.factors.lists import EntryLists

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

TRAIN, SMALL = 16_000_000, 2_100_000
#: What is timed, without what it calls that is timed itself.
STAGES = {
    "input is checked": [(StreamingEstimator, "_rounds")],
    "batches are cut": [(ArrayRounds, "_take")],
    "a batch is predicted": [(Chains, "_say")],
    "lists get memory": [(EntryLists, "reserve")],
    "entries are appended": [(Chains, "learn")],
    "rows and columns of a batch are solved": [(Chains, "solve_learned")],
    "all rows and columns are solved again, at the end": [(Chains, "sweep")],
}


class Stages:
    """Seconds and processor seconds by stage; a stage within another counts for itself."""

    def __init__(self):
        self.spent = defaultdict(lambda: np.zeros(3))  # clock, processor, calls
        self.within = []

    @contextmanager
    def stage(self, name):
        """Count what is done within this block."""
        self.within.append(np.zeros(2))
        before = np.array([perf_counter(), process_time()])
        try:
            yield
        finally:
            took = np.array([perf_counter(), process_time()]) - before
            own = took - self.within.pop()
            if self.within:
                self.within[-1] += took
            self.spent[name] += (*own, 1)

    def timed(self, name, method):
        """Return the method as a stage."""

        def run(*args, **kwargs):
            with self.stage(name):
                return method(*args, **kwargs)

        return run


def fitted(X, y):
    """Return a default model and its stages; the last one is all that is not in the others."""
    stages = Stages()
    with ExitStack() as patches:
        for name, methods in STAGES.items():
            for owner, method in methods:
                timed = stages.timed(name, getattr(owner, method))
                patches.enter_context(patch.object(owner, method, timed))
        with stages.stage("everything else"):
            model = ofw.FrankWolfeMatrixCompletion().fit(X, y)
    return model, {name: stages.spent[name] for name in (*STAGES, "everything else")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="replace large.md")
    options = parser.parse_args()
    made = make_movielens_like(seed=0)
    X, y = np.column_stack((made.rows, made.cols)), made.values.astype(float)
    train, test = (X[:TRAIN], y[:TRAIN]), (X[TRAIN:], y[TRAIN:])
    del made, X, y
    fitted(*(part[:SMALL] for part in train))
    runs, errors = [], []
    for _ in range(options.repeats):
        model, stages = fitted(*train)
        runs.append(stages)
        errors.append(float(np.mean((model.predict(test[0]) - test[1]) ** 2)))
        clock, processor, _ = sum(stages.values())
        print(f"{clock:.2f} s, processor {processor:.2f} s, MSE {errors[-1]:.4f}", flush=True)
    totals = [sum(stages.values())[:2] for stages in runs]
    middle = runs[int(np.argsort([clock for clock, _ in totals])[len(runs) // 2])]
    lines = [
        f"{len(train[1]):,} ratings, {model.n_rounds_} rounds of a size that doubles, one chain, "
        f"test MSE {max(errors):.4f} (asked: at most 0.590), rank {model.rank_}. Before chains "
        "(commit 7730904) it was 0.5902, in 5.5 s.",
        "",
        "| | " + " | ".join(f"run {k + 1}" for k in range(len(runs))) + " |",
        "| --- |" + " --- |" * len(runs),
        "| seconds (asked: at most 12) | " + " | ".join(f"{c:.1f}" for c, _ in totals) + " |",
        "| processor seconds | " + " | ".join(f"{c:.1f}" for _, c in totals) + " |",
        "",
        "| stage | calls | seconds | processor seconds |",
        "| --- | --- | --- | --- |",
    ]
    for name, (clock, processor, calls) in middle.items():
        lines.append(f"| {name} | {calls:.0f} | {clock:.2f} | {processor:.2f} |")
    print("\n".join(lines))
    if options.write:
        path = Path(__file__).with_suffix(".md")
        write_table(path, "The default fit on 16 million ratings", lines)


if __name__ == "__main__":
    main()
