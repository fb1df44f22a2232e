"""Linear classifiers in one pass over the rows, next to each other: error, seconds, nonzeros.

    ONLINEFW_DATA=folder python benchmarks/linear/peers.py --data rcv1v2-subset [--write]
    python benchmarks/linear/peers.py --data synthetic [--write] [--only NAME ...]

Every system of peer_systems.SYSTEMS is fitted to the training labels as they are and to labels of
which a quarter is flipped; test labels are always right. ``--only NAME ...`` runs some, ``--write``
replaces peers-<data>.md. A system that is not installed or fails gives a line that says so. Set
OMP_NUM_THREADS=1 for one thread; Vowpal Wabbit reads its rows in a second one all the same.

    pip install scikit-learn river vowpalwabbit
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

import own_systems  # noqa: F401 (adds its systems)
from classification_data import PROBLEMS, flip_labels
from peer_systems import SYSTEMS

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HERE = Path(__file__).parent
FLIPS = (0.0, 0.25)
COLUMNS = ("test error %", "seconds", "rows/s", "nonzeros")


def run(name, X_train, y_train, X_test, y_test):
    """Return the Result of one system, or the reason why there is none."""
    try:
        return SYSTEMS[name].run(X_train, y_train, X_test, y_test)
    except ImportError as error:
        return f"not installed ({error})"
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


def titled(name):
    """The system's title and version."""
    return f"{SYSTEMS[name].title} {version(SYSTEMS[name].package)}"


def table_line(name, results, n_train):
    """One row of the table: all flips side by side, or why there are none."""
    reasons = [result for result in results if isinstance(result, str)]
    if reasons:
        return f"| {SYSTEMS[name].title} | {reasons[0]} |" + " |" * (len(COLUMNS) * len(FLIPS) - 1)
    cells = [
        f"{r.error:.2f} | {r.seconds:.3g} | {n_train / r.seconds:,.0f} | {r.nonzeros:,}"
        for r in results
    ]
    return f"| {titled(name)} | {' | '.join(cells)} |"


def words(values):
    """Settings or facts as the notes show them."""
    return ", ".join(
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
    )


def notes(name, results):
    """What was chosen, and what else is known of the fit, for every share of flips."""
    for flip, result in zip(FLIPS, results, strict=True):
        if not isinstance(result, str):
            yield f"- {titled(name)}, {flip:.0%}: {words(result.settings | result.facts)}"


def compare(options):
    """Run every system on every share of flips; return the table and the notes."""
    X_train, y_train, X_test, y_test = PROBLEMS[options.data]()
    n_train, n_features = X_train.shape
    names = options.only or list(SYSTEMS)
    found = {}
    for name in names:
        found[name] = [
            run(name, X_train, flip_labels(y_train, flip, options.seed), X_test, y_test)
            for flip in FLIPS
        ]
        print(table_line(name, found[name], n_train), *notes(name, found[name]), sep="\n")
        sys.stdout.flush()
    heads = [f"{column}, {flip:.0%}" for flip in FLIPS for column in COLUMNS]
    return [
        f"{n_train:,} training rows in one pass (batch: until converged) and {y_test.size:,} test "
        f"rows, {n_features:,} features; 0% or 25% of the training labels flipped (seed "
        f"{options.seed}). Settings were chosen from a grid by the error on the test rows, for "
        "each share of flips: an oracle in the favour of the peers; rows that say so have the "
        "library's defaults. onlinefw has no test rows: its radii are the paper's, or found by "
        "predicting each batch before learning from it, by default or (rows that say by hand) in "
        "a grid and a set that were chosen by those who knew the data. Seconds are "
        "training alone, "
        "with the rows in the form the library wants (Vowpal Wabbit: read from its binary cache on "
        "disk within that time), and rows/s are training rows over those seconds. Nonzeros are "
        "coefficients, without the intercept.",
        "",
        f"| system | {' | '.join(heads)} |",
        "| --- |" + " --- |" * len(heads),
        *(table_line(name, found[name], n_train) for name in names),
        "",
        "Settings chosen, with 0% and with 25% flipped:",
        "",
        *(note for name in names for note in notes(name, found[name])),
        "",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=list(PROBLEMS), required=True)
    parser.add_argument("--seed", type=int, default=0, help="of the flipped labels")
    parser.add_argument(
        "--only", nargs="+", choices=list(SYSTEMS), metavar="NAME", help=", ".join(SYSTEMS)
    )
    parser.add_argument("--write", action="store_true", help="replace peers-<data>.md")
    options = parser.parse_args()
    table = compare(options)
    print("", *table, sep="\n")
    if options.write:
        title = f"Linear classification in one pass: {options.data}"
        packages = [system.package for system in SYSTEMS.values() if system.package != "onlinefw"]
        write_table(HERE / f"peers-{options.data}.md", title, table, packages)


if __name__ == "__main__":
    main()
