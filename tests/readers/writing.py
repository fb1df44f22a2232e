"""The same data written in every format."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TEXT_FORMATS = ("csv", "tsv", "jsonl")


def csv_text(columns, delimiter=",", header=True):
    lines = [delimiter.join(columns)] if header else []
    lines += [delimiter.join(map(_cell, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines) + "\n"


def _cell(value):
    text = str(value)
    special = any(c in text for c in ',"\n')
    return '"' + text.replace('"', '""') + '"' if special else text


def write(path, columns):
    """Write the columns in the format that the name says; return the path."""
    name = path.name
    if name.endswith(".parquet"):
        pq.write_table(pa.table(columns), path, row_group_size=3)
        return path
    if ".jsonl" in name:
        rows = zip(*columns.values(), strict=True)
        text = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    else:
        text = csv_text(columns, "\t" if ".tsv" in name else ",")
    data = text.encode()
    if name.endswith(".gz"):
        data = gzip.compress(data)
    elif name.endswith(".zst"):
        data = pa.Codec("zstd").compress(data, asbytes=True)
    path.write_bytes(data)
    return path


def ratings(n=11):
    return {
        "user": [f"u{k % 4}" for k in range(n)],
        "item": [k * k % 7 for k in range(n)],
        "rating": [0.5 + k % 5 for k in range(n)],
    }


def all_ratings(reader):
    """Users and items as text, values and row numbers of everything a reader gives."""
    chunks = list(reader)
    return [
        (c.file, int(row), str(u), str(i), float(v))
        for c in chunks
        for row, u, i, v in zip(c.rows, c.users, c.items, c.values, strict=True)
    ]


def without_file(ratings):
    return [rest for _, *rest in ratings]


def all_rows(reader):
    chunks = list(reader)
    X = [c.X if isinstance(c.X, np.ndarray) else c.X.toarray() for c in chunks]
    y = None if chunks[0].y is None else np.concatenate([c.y for c in chunks])
    return np.concatenate(X), y
