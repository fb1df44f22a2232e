"""How the constants of a taste are chosen: by recall on clicks that stream.md does not score.

    ONLINEFW_DATA=folder python benchmarks/recommend/constants.py [--write]

The constants are in native/clicks.hpp. They are compared on three validation parts of
MovieLens 100k in the order of time: the second half of the warm-up of stream.md (where its peers
were tuned), the ratings of 4, and those of 3. The one rule: the highest mean of the three recalls,
each divided by that of the first line. What stream.md scores is shown beside it, and chooses
nothing. The constants are compiled in: every line is a process of its own, with a copy of the
package, made with other constants. ``--write`` replaces constants.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "src" / "onlinefw"
WARM = 0.3
TOP = 10
#: Of the package as it is.
PRESENT, WORTH = (0.0, 0.5, 1.0), (0.01, 2.5, 5.0, 10.0)
#: What is compared: the constants of the first version, and others in their place.
FIRST = {"FRESH": 0.85, "LATEST": 32}
CHANGES: list[dict] = [
    FIRST,
    *(FIRST | {"FRESH": fresh} for fresh in (0.6, 0.7, 0.75, 0.8, 0.9)),
    *(FIRST | {"LATEST": latest} for latest in (4, 8, 16)),
    *({"FRESH": fresh, "LATEST": latest} for fresh in (0.6, 0.7, 0.75, 0.8) for latest in (8, 16)),
    *(FIRST | {"LATELY": lately} for lately in (500.0, 2000.0)),
    *(FIRST | {"WORTH": worth} for worth in ([0.01], [0.01, 1.0, 3.0], [0.01, 5.0, 20.0])),
    FIRST | {"PRESENT": [0.0]},
]


def recall(X, first):
    """The share of all events from the first on whose item was among the ten best."""
    import onlinefw as ofw

    ranks = ofw.FrankWolfeRecommender().learn(X)
    return float(np.mean(ranks[first:] <= TOP))


def recalls(change):
    """Recall on the warm-up, on ratings of 4 and of 3, and on what is scored."""
    from onlinefw.datasets import fetch_movielens
    from onlinefw.factors import clicks as model
    from onlinefw.native import _build

    known = _build.this_platform  # one library is enough, for the processor that is here
    _build.this_platform = lambda zig=True: dataclasses.replace(known(zig), levels=("",))
    _build.build()
    for name, value in change.items():
        if hasattr(model, name):
            setattr(model, name, value)
    model.ARMS = len(change.get("PRESENT", PRESENT)) * len(change.get("WORTH", WORTH))
    data = fetch_movielens("100k")
    order = np.argsort(data.timestamps, kind="stable")

    def clicks(stars):
        which = order[data.values[order] == stars]
        return np.column_stack((data.rows[which], data.cols[which])).astype(np.int64)

    fives, fours, threes = clicks(5), clicks(4), clicks(3)
    warm = round(WARM * len(fives))
    return (
        recall(fives[:warm], warm // 2),
        recall(fours, round(WARM * len(fours))),
        recall(threes, round(WARM * len(threes))),
        recall(fives, warm),
    )


def in_its_own_process(change, folder):
    """Return what ``recalls`` does, with a copy of the package whose constants are others."""
    skipped = shutil.ignore_patterns("__pycache__", "loops.*.*", "loops.built")
    package = Path(shutil.copytree(PACKAGE, folder / "onlinefw", ignore=skipped))
    header = package / "native" / "clicks.hpp"
    header.write_text(with_constants(header.read_text(encoding="utf-8"), change), encoding="utf-8")
    flags = {"PYTHONPATH": str(folder), "CXXFLAGS": "-s -march=native"}
    command = [sys.executable, __file__, "--one", json.dumps(change)]
    run = subprocess.run(
        command, env=os.environ | flags, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def with_constants(code, change):
    """Return C++ with other constants."""
    more = {"WORTHS": len(change["WORTH"])} if "WORTH" in change else {}
    if "PRESENT" in change:
        more["ARMS"] = f"{len(change['PRESENT'])} * WORTHS"
    for name, value in {**change, **more}.items():
        found = rf"\b{name}(\[\])? = (\{{[^}}]*\}}|[^;,]+)"
        text = "{" + ", ".join(map(str, value)) + "}" if isinstance(value, list) else str(value)
        code, times = re.subn(found, rf"{name}\1 = {text}", code)
        if times != 1:
            raise ValueError(f"{name} is {times} times in clicks.hpp")
    return code


def words(change):
    return ", ".join(f"{name} {value}" for name, value in change.items())


def compare():
    """Return the table."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for k, change in enumerate(CHANGES):
            found.append(in_its_own_process(change, Path(folder) / str(k)))
            print(words(change), *(f"{one:.4f}" for one in found[-1]), flush=True)
    chosen = [float(np.mean(np.divide(some[:3], found[0][:3]))) for some in found]
    best = int(np.argmax(chosen))
    return [
        "MovieLens 100k in the order of time, recall at 10 of `FrankWolfeRecommender()` with other "
        "constants of `native/clicks.hpp`: on the second half of the warm-up of "
        "[stream.md](stream.md) (where its peers were tuned), and on the last 70% of the ratings "
        "of 4 and of 3. These three choose: the mean of their ratios to the first line. The last "
        "column, which stream.md scores, chooses nothing. The standard errors are about 0.007, "
        "0.002, 0.002 and 0.003. Which candidate is used (PRESENT and WORTH) is found while "
        "learning, in all lines.",
        "",
        f"Chosen: {words(CHANGES[best])}, with {found[best][3]:.4f} on the scored clicks.",
        "",
        "| constants | warm-up | ratings of 4 | ratings of 3 | mean ratio | scored in stream.md |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {words(change)} | {some[0]:.4f} | {some[1]:.4f} | {some[2]:.4f} | {ratio:.3f} "
            f"| {some[3]:.4f} |"
            for change, some, ratio in zip(CHANGES, found, chosen, strict=True)
        ),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace constants.md")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(recalls(json.loads(options.one))))
        return
    table = compare()
    print(*table, sep="\n")
    if options.write:
        write_table(HERE / "constants.md", "The constants of a taste", table)


if __name__ == "__main__":
    main()
