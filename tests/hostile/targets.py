"""What is attacked: the doors through which files come in, and what may be seen there."""

import functools
import hashlib
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import onlinefw as ofw
from onlinefw.files import ModelFileError, load_checkpoint, save_checkpoint
from onlinefw.files.container import DIGEST_LENGTH, DIGEST_MARK, read_tree, write_tree
from onlinefw.readers import DataError, read_ratings, read_rows

from ..files.zoo import N_FEATURES, ZOO, stream
from .mutations import forged_bytes, forged_tree

#: Loading refuses with these; a model that was loaded may refuse to be used with any ValueError.
USING = (ValueError, ArithmeticError, NotImplementedError)


@functools.cache
def learned(name):
    """An estimator that has learned."""
    model = ZOO[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in stream(name, 0)[:5]:
            model.partial_fit(**batch)
    return model


@functools.cache
def saved(kind, name):
    """The tree and the bytes of a file that holds this estimator."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        if kind == "model":
            ofw.save(learned(name), path)
        else:
            save_checkpoint(learned(name), path)
        return read_tree(path, kind)[1], path.read_bytes()


def signed(data):
    """The bytes with a digest that fits them, as somebody who forges would have it."""
    body = data[:-DIGEST_LENGTH]
    return body + DIGEST_MARK + hashlib.sha256(body).hexdigest().encode()


def forge_file(kind, rng, path):
    names = sorted(ZOO)
    tree, data = saved(kind, names[rng.integers(len(names))])
    how = rng.integers(8)
    if how > 1:
        write_tree(path, kind, forged_tree(tree, rng), compress=bool(rng.integers(2)))
    else:
        forged = forged_bytes(data, rng)
        path.write_bytes(signed(forged) if how else forged)


def open_file(kind, path):
    try:
        model = ofw.load(path) if kind == "model" else load_checkpoint(path)
    except ModelFileError as error:
        return one_line(error)
    try:
        use(model)
    except USING:
        return "refused later"
    return "used"


def one_line(error):
    return "refused" if "\n" not in str(error) else "refused in several lines"


def use(model):
    """Ask everything of a model, and let it learn."""
    if not hasattr(model, "predict"):
        return
    if isinstance(model, ofw.FrankWolfeMatrixCompletion):
        X, y = np.array([[0, 0], [1, 1], [2, 0]]), np.array([1.0, -1.0, 1.0])
        if model.row_ids_ is not None and model.row_ids_.size and model.col_ids_.size:
            rows, columns = model.row_ids_.tolist(), model.col_ids_.tolist()
            X = [[rows[r % len(rows)], columns[c % len(columns)]] for r, c in X.tolist()]
        model.recommend(X[0][0], 3)
    else:
        X, y = np.eye(3, N_FEATURES), np.array([1.0, 0.0, 1.0])
    model.predict(X)
    repr(model.history_ if hasattr(model, "history_") else model)
    if getattr(model, "can_learn_", False):
        if hasattr(model, "classes_"):
            y = model.classes_[[0, -1, 0]]
        model.partial_fit(X, y)
        if isinstance(model, ofw.FrankWolfeMatrixCompletion):
            model.learn(X, y)  # a compiled loop of its own
        model.state_dict()
        float(model.gap_) if hasattr(model, "gap_") else None


# Data ---------------------------------------------------------------------------------------------


def table(rng):
    n = int(rng.integers(1, 30))
    return {
        "user": [f"u{k}" for k in rng.integers(9, size=n)],
        "item": rng.integers(7, size=n).tolist(),
        "rating": rng.integers(1, 6, size=n).astype(float).tolist(),
        "target": rng.choice(["a", "b", "01", "1"], size=n).tolist(),
    }


def text_of(suffix, rng):
    columns = table(rng)
    rows = list(zip(*columns.values(), strict=True))
    if suffix == ".jsonl":
        lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    elif suffix == ".svm":
        lines = [f"{row[1]} 1:{row[2]} {row[1] + 2}:0.5" for row in rows]
    else:
        mark = "\t" if suffix == ".tsv" else ","
        lines = [mark.join(map(str, row)) for row in [tuple(columns), *rows]]
    return "\n".join(lines).encode() + b"\n"


def forge_data(suffix, rng, path):
    if suffix == ".parquet":
        pq.write_table(pa.table(table(rng)), path, row_group_size=int(rng.integers(1, 20)))
        path.write_bytes(forged_bytes(path.read_bytes(), rng))
    else:
        path.write_bytes(forged_bytes(text_of(suffix, rng), rng))


def open_data(suffix, path):
    seen = []
    for read in (read_ratings, read_labels, read_numbers):
        for on_bad_row in ("raise", "skip"):
            try:
                for chunk in read(path, on_bad_row=on_bad_row, block_bytes=64):
                    check_chunk(chunk)
                seen.append("used")
            except DataError as error:
                seen.append(one_line(error))
    return max(seen)  # "used" rather than "refused"


def read_labels(path, **options):
    return read_rows(path, target=1 if path.suffix != ".svm" else None, labels=True, **options)


def read_numbers(path, **options):
    return read_rows(path, target=2 if path.suffix != ".svm" else None, **options)


def check_chunk(chunk):
    """Whatever comes through is finite and of one length."""
    if hasattr(chunk, "values"):
        assert len(chunk.users) == len(chunk.items) == len(chunk.values)
        assert np.isfinite(chunk.values).all()
        return
    values = chunk.X.data if not isinstance(chunk.X, np.ndarray) else chunk.X
    assert np.isfinite(values).all() and len(chunk.y) == chunk.X.shape[0]


TARGETS = {
    **{
        kind: (functools.partial(forge_file, kind), functools.partial(open_file, kind), ".ofw")
        for kind in ("model", "checkpoint")
    },
    **{
        suffix: (
            functools.partial(forge_data, suffix),
            functools.partial(open_data, suffix),
            suffix,
        )
        for suffix in (".csv", ".tsv", ".jsonl", ".svm", ".parquet")
    },
}
