"""In how many rows a column was seen, and that rare columns are marked."""

import numpy as np
import pytest
from scipy import sparse

from onlinefw.fitting.column_counts import ColumnCounts, is_rare
from onlinefw.fitting.loop import Checkpoint, learn, resume
from onlinefw.fitting.notes import columns_seen
from onlinefw.fitting.rows import RowsSession
from onlinefw.readers import read_rows

from ..cli.running import ofw_json, ofw_says


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_batches_of_any_form_count_as_all_rows_at_once(form, rng):
    X = rng.integers(-1, 2, size=(50, 6)).astype(float)
    counts = ColumnCounts()
    for start in (0, 20, 21):
        counts.add(form(X[start : {0: 20, 20: 21, 21: 50}[start]]))
    assert counts.seen.tolist() == [sum(value != 0 for value in column) for column in X.T]


def test_a_zero_that_a_sparse_matrix_stores_is_not_seen():
    counts = ColumnCounts()
    counts.add(sparse.csr_array(([0.0, 2.0], ([0, 1], [0, 1])), shape=(2, 3)))
    assert counts.seen.tolist() == [0, 1, 0]


def test_only_columns_with_a_coefficient_are_noted():
    counts = ColumnCounts([5, 6, 7])
    assert counts.of_used(np.array([[0.0, 1.0, 0.0]])) == {"columns": [1], "rows": [6]}
    assert columns_seen({"columns seen": counts.of_used(np.array([1.0, 0.0, 2.0]))}) == {0: 5, 2: 7}


@pytest.mark.parametrize("forged", [{"columns": 3}, {"columns": ["a"], "rows": [1]}, {}])
def test_notes_of_another_form_count_nothing(forged):
    assert columns_seen({"columns seen": forged}) == {}


@pytest.fixture
def data(tmp_path, rng):
    """Rows with a column of zeros and ones that is 1 in seven of them."""
    X = rng.standard_normal((900, 2))
    flag = np.zeros(900)
    flag[::140] = 1.0
    y = X[:, 0] - 60 * flag + 0.1 * rng.standard_normal(900)
    lines = (f"{a:.4f},{b:.4f},{f:.0f},{t:.4f}" for (a, b), f, t in zip(X, flag, y, strict=True))
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b,flag,y", *lines]))
    return path


def test_inspect_and_the_report_mark_a_column_that_was_seen_seven_times(data, tmp_path):
    out, page = tmp_path / "m.ofw", tmp_path / "page.html"
    ofw_says("fit", "regression", data, "--target", "y", "-o", out, "--quiet")
    facts = ofw_json("inspect", out)
    assert facts["seen in rows"]["flag"] == 7 and facts["seen in rows"]["a"] == 900
    lines = ofw_says("inspect", out).splitlines()
    (flag,) = (line for line in lines if line.startswith("  flag\t"))
    assert flag.endswith("seen in 7 of 900 rows: rare, so this rests on few rows")
    (a,) = (line for line in lines if line.startswith("  a\t"))
    assert a.endswith("seen in 900 of 900 rows")
    ofw_says("report", out, "-o", page)
    text = page.read_text(encoding="utf-8")
    assert text.count('<td class="seen rare">7 rows</td>') == 1
    assert '<td class="seen">900 rows</td>' in text
    assert "seen in few rows" in text


def test_rows_held_out_are_not_counted(data, tmp_path):
    out = tmp_path / "m.ofw"
    fit = "fit", "regression", data, "--target", "y", "-o", out, "--test-fraction", "0.5"
    learned = ofw_json(*fit)["rows learned"]
    assert ofw_json("inspect", out)["seen in rows"]["a"] == learned < 900


def test_a_resumed_run_counts_on(data, tmp_path):
    def reader(session):
        return read_rows([str(data)], target="y", position=session.position)

    whole = RowsSession("regression", radius=5.0, batch_size=100)
    learn(whole, reader(whole))
    halves, left = RowsSession("regression", radius=5.0, batch_size=100), [3]

    def stop():
        left[0] -= 1
        return left[0] < 0

    assert not learn(halves, reader(halves), checkpoint=Checkpoint(tmp_path / "c"), stop=stop)
    again, _ = resume(tmp_path / "c")
    assert 0 < again.rows_learned < 900
    learn(again, reader(again))
    assert again.counts.seen.tolist() == whole.counts.seen.tolist() == [900, 900, 7]


def test_what_is_rare_depends_on_the_rows():
    assert is_rare(7, 3000) and is_rare(29, 100_000)
    assert not is_rare(30, 100_000)
    assert not is_rare(7, 50)  # of so few rows nothing is rare
