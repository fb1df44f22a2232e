"""The command line in this process or in its own, and small data for it."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from onlinefw import FrankWolfeMatrixCompletion, load
from onlinefw.cli.app import app

from ..files.zoo import assert_same_answers

#: What ``ofw`` runs.
MAIN = "from onlinefw.cli import main; main()"


def ofw(*args):
    """Run a command in this process; anything but an orderly exit is raised."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def ofw_says(*args):
    """Run a command that must work; return what it printed."""
    result = ofw(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def ofw_json(*args):
    return json.loads(ofw_says(*args, "--json"), parse_constant=_refuse)


def _refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def refusal(*args):
    """Run a command that must be refused; return its one line."""
    result = ofw(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"ofw( \w+)*: .+\n", result.stderr), result.stderr
    return result.stderr.strip()


def ofw_process(*args, code=MAIN, **options):
    """Run a command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        **options,
    )


@contextmanager
def standard_input(descriptor):
    """Let readers in this process find this file descriptor as standard input."""
    stdin = SimpleNamespace(fileno=lambda: descriptor)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onlinefw.readers.streams.sys", SimpleNamespace(stdin=stdin))
        yield


@contextmanager
def piped(text):
    """Let readers in this process find a pipe with this (short) text as standard input."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    try:
        with standard_input(reading):
            yield
    finally:
        os.close(reading)


def ratings(n=240, seed=0, users="u{}", items="{}"):
    """Columns of ratings; names of users and items by these patterns."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(12, size=n), rng.integers(9, size=n)
    values = 1.0 + (rows * columns) % 5
    return {
        "user": [users.format(u) for u in rows],
        "item": [items.format(i) for i in columns],
        "rating": values.tolist(),
    }


def rows(n=240, seed=0, target="number"):
    """Columns a, b, c and a target that depends on the first two."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, 3)) * [1.0, 10.0, 1.0], 4)
    y = 2.0 * X[:, 0] - 0.1 * X[:, 1] + 3.0
    wanted = np.round(y, 4) if target == "number" else np.where(y > 3.0, "yes", "no")
    return {**dict(zip("abc", X.T.tolist(), strict=True)), "target": wanted.tolist()}


def all_pairs(model):
    """Every row with every column, as the model calls them."""
    sides = model.row_ids_, model.col_ids_
    if sides[0] is None:
        return np.argwhere(np.ones(model.shape_))
    return np.array([[r, c] for r in sides[0].tolist() for c in sides[1].tolist()], dtype=object)


def assert_same_models(one, other):
    """Two model files answer alike, bit for bit, and tell the same but for the time it took."""
    one, other = load(one), load(other)
    if isinstance(one, FrankWolfeMatrixCompletion):
        X = all_pairs(one)
        assert one.row_ids_.tolist() == other.row_ids_.tolist()
        assert one.col_ids_.tolist() == other.col_ids_.tolist()
    else:
        X = np.random.default_rng(1).standard_normal((30, one.n_features_in_))
        names = [vars(model).pop("feature_names_in_", np.empty(0)) for model in (one, other)]
        assert names[0].tolist() == names[1].tolist()
    assert_same_answers(one, other, X)
    told = [{k: v for k, v in m.notes_["summary"].items() if k != "ended"} for m in (one, other)]
    assert told[0] == told[1]
