"""Streams of rows in partitioned Parquet."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onlinefw.distributed import ParquetRows

from .rows import BATCH, FEATURES, row_batches

NAMES = [f"x{j}" for j in range(FEATURES)]


def write(file, X, y, w=None):
    columns = {name: X[:, j] for j, name in enumerate(NAMES[: X.shape[1]])}
    weights = {} if w is None else {"weight": w}
    pq.write_table(pa.table({**columns, "target": y, **weights}), file, row_group_size=40)


def in_files(folder, name, n_files=3):
    """The stream of a problem in files: batch t is in file t % n_files, so the rounds are its."""
    batches = list(row_batches(name))
    for part in range(n_files):
        X, y, w = zip(*batches[part::n_files], strict=True)
        w = None if w[0] is None else np.concatenate(w)
        write(folder / f"part-{part}.parquet", np.concatenate(X), np.concatenate(y), w)
    weight = None if batches[0][2] is None else "weight"
    return ParquetRows(folder, weight=weight, batch_size=BATCH)
