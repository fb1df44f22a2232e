"""``ofw demo``: from a file of ratings to a model and a page about it."""

from __future__ import annotations

import shlex
import shutil
import sys
from math import isqrt
from pathlib import Path

import numpy as np
import typer

from .._files import whole_file
from ..datasets import make_movielens_like
from . import typed
from .fit import FitOptions, run_fit
from .recommend import Wish, run_recommend
from .refuse import one_line_errors
from .report import run_report

__all__ = ["as_called", "folded", "run_demo"]

HELD_OUT = 0.1
TRY_NEXT = (
    "fit matrix YOUR.csv --user USER --item ITEM --rating RATING -o mine.ofw",
    "recommend mine.ofw --user SOMEONE",
    "report mine.ofw -o mine.html",
)


def run_demo(ratings: int, seed: int, out: Path) -> None:
    """Make ratings, learn them with the live display, recommend, and write the page."""
    ofw = as_called()
    with one_line_errors("demo"):
        if out.exists() and not out.is_dir():
            raise ValueError(f"{out} is a file; choose a folder with --out")
        data, model, page = (out / name for name in ("ratings.csv", "ratings.ofw", "report.html"))
        typer.echo(f"1. {ratings:,} made-up ratings, the way yours may look: {data}")
        user = _write_ratings(data, ratings, seed)
    words = ["fit", "matrix", str(data), "--test-fraction", str(HELD_OUT), "-o", str(model)]
    _say(f"2. {folded(f'{ofw} {shlex.join(words)}')}")
    typed.speak_for(words)
    settings = {"radius": "auto", "batch_size": "auto", "test_share": HELD_OUT, "seed": seed}
    columns = dict.fromkeys(("user", "item", "rating"))  # found by their names
    run_fit(FitOptions("matrix", [str(data)], columns, settings=settings), model)
    _say(f"3. {ofw} recommend {model} --user {user} -n 3")
    run_recommend(model, Wish(user), 3)
    _say(f"4. {ofw} report {model} -o {page}")
    run_report(model, page)
    _say(f"That took {typed.in_words(typed.seconds())}.")
    _say("Open the page in a browser. Then, on your own data:")
    for command in TRY_NEXT:
        typer.echo(f"  {folded(f'{ofw} {command}')}")


def as_called() -> str:
    """Return ``ofw``, or its path as it was typed where the shell would not find it by name."""
    called = sys.argv[0]
    if shutil.which("ofw") or Path(called).stem != "ofw":
        return "ofw"
    return shlex.quote(called)


def folded(command: str) -> str:
    r"""Return a command that can be copied, in two lines if it is too long for 80 columns.

    Examples
    --------
    >>> from onlinefw.cli.demo import folded
    >>> folded("ofw report a.ofw -o a.html")
    'ofw report a.ofw -o a.html'
    >>> print(folded(f"ofw fit matrix {'a' * 60} -o m.ofw").replace("a" * 60, "..."))
    ofw fit matrix ... \
         -o m.ofw
    """
    return command if len(command) <= 76 else " \\\n     -o ".join(command.rsplit(" -o ", 1))


def _say(line: str) -> None:
    typer.echo(f"\n{line}")


def _write_ratings(path: Path, n: int, seed: int) -> str:
    """Write ratings as a CSV file, and return the first user of it."""
    import pyarrow as pa
    from pyarrow import csv

    # About one entry in twelve is rated, near the share of MovieLens 100k (one in sixteen).
    n_users = 5 * isqrt(n)
    n_films = n_users // 2
    made = make_movielens_like(n_users, n_films, n, biases=True, seed=seed)
    users = np.char.add("user-", np.arange(1, n_users + 1).astype(str))
    films = np.char.add("film-", np.arange(1, n_films + 1).astype(str))
    table = {"user": users[made.rows], "item": films[made.cols], "rating": made.values}
    with whole_file(path) as file:
        csv.write_csv(pa.table({name: pa.array(column) for name, column in table.items()}), file)
    return str(table["user"][0])
