"""Handles of batches in partitioned Parquet: where data are, who opens them, what travels."""

import pickle

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from onlinefw._batches import BatchHandle, naming  # noqa: E402
from onlinefw.readers import ParquetRatings, ParquetRows  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for part in range(2):
        table = {"user": rng.integers(9, size=50), "item": rng.integers(7, size=50)}
        table |= {"rating": rng.standard_normal(50), "target": rng.standard_normal(50)}
        pq.write_table(pa.table(table), tmp_path / f"part-{part}.parquet")
    return tmp_path


def test_a_handle_opens_to_data_targets_and_weights(folder):
    X, y, w = next(iter(ParquetRatings(folder, batch_size=20))).open()
    assert X.shape == (20, 2) and y.shape == (20,) and w is None
    rows = ParquetRows(folder, features=["user"], weight="item", batch_size=20)
    X, y, w = next(iter(rows)).open()
    assert X.shape == (20, 1) and y.shape == (20,) and w.shape == (20,)


def test_read_gives_what_it_always_gave(folder):
    ratings, rows = next(iter(ParquetRatings(folder))), next(iter(ParquetRows(folder)))
    assert len(ratings.read()) == 2
    assert len(rows.read()) == 3


def test_a_handle_says_what_it_holds_and_how_much(folder):
    ratings, rows = next(iter(ParquetRatings(folder))), next(iter(ParquetRows(folder)))
    assert isinstance(ratings, BatchHandle) and isinstance(rows, BatchHandle)
    assert (ratings.holds, rows.holds) == ("ratings", "rows")
    assert len(ratings) == len(rows) == 50


def test_handles_know_the_next_one_but_travel_alone(folder):
    first, second, *_ = ParquetRatings(folder, batch_size=20)
    assert first.following == second
    for same in (pickle.loads(pickle.dumps(first)), first.alone(), type(first)(*first.where)):
        assert same.following is None
        assert (same.where, same.open()[1].tolist()) == (first.where, first.open()[1].tolist())
    assert pickle.loads(pickle.dumps(second)).partition == second.partition == 1


def test_errors_name_file_and_rows(folder):
    second = list(ParquetRatings(folder, batch_size=20))[2]
    assert str(second).endswith("part-0.parquet, rows 21 to 40")
    with pytest.raises(ValueError, match=r"part-0.parquet, rows 21 to 40: no"), naming(second):
        raise ValueError("no")
