"""Rows in partitioned Parquet that workers read themselves: the same rounds as with arrays."""

import pickle

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402
from scipy import sparse  # noqa: E402

import onlinefw as ofw  # noqa: E402
from onlinefw.distributed import ClusterLost, ParquetRatings, ParquetRows  # noqa: E402
from onlinefw.losses import Logistic, Square  # noqa: E402
from onlinefw.objectives import LinearObjective, RunningLeastSquares  # noqa: E402
from onlinefw.readers.partitioned_rows import ParquetRowsBatch  # noqa: E402

from . import killing  # noqa: E402
from .in_process import kill, kill_before, ray_in_process  # noqa: E402
from .parquet_problems import NAMES, in_files, write  # noqa: E402
from .problems import follow, past_of  # noqa: E402
from .rows import (  # noqa: E402
    BATCH,
    FEATURES,
    ROUNDS,
    assert_same_rows,
    make_row_learner,
    row_batches,
)


def alone(name, rounds=ROUNDS):
    """A learner in one process that was given arrays, and what its run showed."""
    learner = make_row_learner(name)
    return learner, follow(learner, list(row_batches(name))[:rounds])


def follow_files(learner, batches):
    return follow(learner, [(batch,) for batch in batches])


def assert_same_run(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.fixture
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


@pytest.fixture
def only_workers_read(monkeypatch):
    """Let the driver read nothing; workers are in processes of their own."""

    def read(self):
        raise AssertionError("the driver opens a batch")

    with monkeypatch.context() as patch:
        patch.setattr(ParquetRowsBatch, "open", read)
        yield patch


# The files ----------------------------------------------------------------------------------------


def test_every_row_is_in_one_round(tmp_path):
    rows, batches = in_files(tmp_path, "square"), list(row_batches("square"))
    assert (rows.n_features, rows.feature_names) == (FEATURES, NAMES)
    assert (len(rows), rows.shape, rows.dtype) == (ROUNDS, (ROUNDS * BATCH, FEATURES), float)
    for batch, (X, y, _) in zip(rows, batches, strict=True):
        assert batch.shape == X.shape
        for found, expected in zip(batch.read(), (X, y, None), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_features_are_the_numbers_unless_they_are_named(tmp_path):
    columns = {"name": ["a", "b"], "b": [1.0, 2.0], "w": [1, 2], "a": [3, 4], "target": [0, 1]}
    pq.write_table(pa.table(columns), tmp_path / "part.parquet")
    assert ParquetRows(tmp_path).feature_names == ["b", "w", "a"]
    assert ParquetRows(tmp_path, weight="w").feature_names == ["b", "a"]
    (batch,) = ParquetRows(tmp_path, features=["a", "b"], target="w", weight="target")
    X, y, w = batch.read()
    assert (X.tolist(), y.tolist(), w.tolist()) == ([[3.0, 1.0], [4.0, 2.0]], [1, 2], [0, 1])


@pytest.mark.parametrize(
    ("types", "kept"),
    [
        (("float32", "float32"), "float32"),
        (("float32", "float64"), "float64"),
        (("uint8", "uint8"), "uint8"),
        (("uint8", "float32"), "float32"),
        (("int32", "int16"), "float64"),
        (("bool", "float16"), "float64"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("ray")
def test_numbers_are_kept_in_the_type_of_the_columns(tmp_path, types, kept):
    columns = {name: np.array([0, 1], one) for name, one in zip("ab", types, strict=True)}
    pq.write_table(pa.table({**columns, "target": [0.0, 1.0]}), tmp_path / "part.parquet")
    rows = ParquetRows(tmp_path)
    (batch,) = rows
    for workers in (None, 2):
        objective = LinearObjective(Square(), workers=workers)
        objective.observe(batch)
        assert objective.state_dict()["past"]["past"]["rows"]["data"].dtype == kept
    assert batch.dtype == rows.dtype == kept


def test_what_is_wrong_with_the_columns_is_named(tmp_path):
    write(tmp_path / "a.parquet", np.ones((4, 3)), np.ones(4))
    with pytest.raises(ValueError, match=r"a\.parquet has no column 'y'; it has x0, x1"):
        ParquetRows(tmp_path, target="y")
    with pytest.raises(ValueError, match="no column 'x9'"):
        ParquetRows(tmp_path, features=["x0", "x9"])
    with pytest.raises(ValueError, match="'x1' is named twice"):
        ParquetRows(tmp_path, features=["x0", "x1"], weight="x1")
    with pytest.raises(ValueError, match="list of names of columns, got 'x1'"):
        ParquetRows(tmp_path, features="x1")
    with pytest.raises(ValueError, match="no columns of numbers"):
        ParquetRows(tmp_path, features=[])
    with pytest.raises(ValueError, match="no Parquet files"):
        ParquetRows(tmp_path / "nowhere")
    pq.write_table(pa.table({"x0": ["a"], "target": [1.0]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet and .*b\.parquet.*x0, x1, x2.*features="):
        ParquetRows(tmp_path)
    with pytest.raises(ValueError, match=r"column 'x0' of .*b\.parquet does not hold numbers"):
        ParquetRows(tmp_path, features=["x0"])


def test_a_batch_travels_without_those_that_follow(tmp_path):
    first = next(iter(in_files(tmp_path, "square")))
    assert first.following is not None
    copy = pickle.loads(pickle.dumps(first))
    assert (copy, copy.partition, copy.following) == (first, first.partition, None)


# The trajectory -----------------------------------------------------------------------------------

PROBLEMS = [
    "square, intercept",
    "logistic, intercept, weights",
    "sigmoid",
    "trace norm, logistic, line search",
    "away",
    "newton",
    "own loss, intercept",
    "recent",
    "fading",
    "fading sample",
    "reservoir",
    "sums",
    "sums, away",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers"),
    [(name, (k % 3) + 1) for k, name in enumerate(PROBLEMS)]
    + [("square", workers) for workers in (None, 1, 2, 3, 9)]
    + [("logistic, intercept, weights", workers) for workers in (None, 1, 3)]
    + [("recent", workers) for workers in (None, 1, 3)],
)
@pytest.mark.usefixtures("ray")
def test_the_trajectory_is_that_of_arrays(tmp_path, name, workers):
    expected, history = alone(name)
    learner = make_row_learner(name, workers)
    assert_same_run(follow_files(learner, in_files(tmp_path, name)), history)
    assert_same_rows(expected, learner)
    assert learner.objective.total_weight == expected.objective.total_weight


@pytest.mark.parametrize(("name", "workers"), [("logistic, intercept, weights", 2), ("recent", 3)])
@pytest.mark.usefixtures("cluster")
def test_rows_never_come_to_the_driver(tmp_path, only_workers_read, name, workers):
    expected, history = alone(name)
    learner = make_row_learner(name, workers)
    assert_same_run(follow_files(learner, in_files(tmp_path, name)), history)
    only_workers_read.undo()
    assert_same_rows(expected, learner)


@pytest.mark.parametrize("name", ["square", "sparse"])
@pytest.mark.usefixtures("ray")
def test_batches_of_files_and_arrays_in_turn(tmp_path, name):
    """Also where the first were sparse."""
    arrays = [
        (sparse.csr_array(X) if name == "sparse" else X, y, w) for X, y, w in row_batches("square")
    ]
    expected, learner = make_row_learner(name), make_row_learner(name, 2)
    history = follow(expected, arrays)
    batches = [
        (batch,) if k % 3 == 2 else array
        for k, (batch, array) in enumerate(zip(in_files(tmp_path, "square"), arrays, strict=True))
    ]
    assert_same_run(follow(learner, batches), history)
    assert_same_rows(expected, learner)


@pytest.mark.usefixtures("ray")
def test_the_files_of_a_stream_may_have_wider_numbers(tmp_path):
    name = "bytes, then doubles"
    arrays = list(row_batches(name))
    batches = []
    for t, (X, y, _) in enumerate(arrays):
        write(tmp_path / f"part-{t:02d}.parquet", X, y)
    batches = list(ParquetRows(tmp_path))
    assert [batch.dtype for batch in batches[8:10]] == [np.uint8, float]
    (expected, history), learner = alone(name), make_row_learner(name, 2)
    np.testing.assert_allclose(follow_files(learner, batches), history, rtol=1e-5, atol=1e-7)
    assert_same_rows(expected, learner, 1e-5)


@pytest.mark.usefixtures("ray")
def test_several_objectives_on_the_same_rows_get_the_same_targets(tmp_path):
    values = []
    for workers in (None, 2):
        first = LinearObjective(Square(), n_features=FEATURES, workers=workers)
        both = [first, second := first.beside(ofw.losses.Correntropy(4.0))]
        for batch in in_files(tmp_path, "square"):
            losses = first.add_together(both, first.check_together(both, batch, [None, None]))
        values.append([first.value(), second.value(), *losses])
    np.testing.assert_allclose(values[0], values[1])


# Faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moments", [{0}, {1, 2}, {7, 20, 41}, {30, 31, 32}], ids=str)
@pytest.mark.parametrize("name", ["logistic, intercept, weights", "reservoir"])
@pytest.mark.usefixtures("ray")
def test_a_restarted_worker_reads_the_files_again(tmp_path, name, moments):
    expected, _ = alone(name)
    batches = list(in_files(tmp_path, name))
    learner = make_row_learner(name, 2)
    follow_files(learner, batches[:1])
    shards = past_of(learner).shards
    kill_before(shards, moments)
    follow_files(learner, batches[1:])
    assert shards.restarts == len(moments)
    assert_same_rows(expected, learner)


@pytest.mark.usefixtures("ray")
def test_a_worker_may_die_between_reading_and_keeping(tmp_path):
    expected, _ = alone("square, intercept")
    learner = make_row_learner("square, intercept", 2)
    first, *batches = in_files(tmp_path, "square, intercept")
    learner.observe(first)
    shards, tell = past_of(learner).shards, past_of(learner).shards.tell
    deaths = []

    def dying(method, args):
        if getattr(method, "__name__", "") == "keep_staged" and len(deaths) < 2:
            kill(shards, next(k for k, one in enumerate(args) if one is not None))
            deaths.append(method)
        tell(method, args)

    shards.tell = dying
    follow_files(learner, batches)
    assert shards.restarts == 2
    assert_same_rows(expected, learner)


@pytest.mark.usefixtures("cluster")
def test_killed_workers_do_not_change_the_model(tmp_path, only_workers_read):
    name = "logistic, intercept, weights"
    expected, history = alone(name)
    learner, batches = make_row_learner(name, 2), list(in_files(tmp_path, name))
    found = [follow_files(learner, batches[:2])]
    past = past_of(learner)
    killing.kill_before(past.shards, {int(np.random.default_rng(5).integers(5, 25))})
    found.append(follow_files(learner, batches[2:]))
    assert past.shards.restarts >= 1
    assert_same_run(np.concatenate(found), history)
    only_workers_read.undo()
    assert_same_rows(expected, learner)
    log = past.log.folder
    assert sum(file.stat().st_size for file in log.iterdir()) < 10_000


@pytest.mark.parametrize("after", [None, 1, 3])
@pytest.mark.parametrize("name", ["logistic, intercept, weights", "reservoir", "away"])
@pytest.mark.usefixtures("ray")
def test_a_state_goes_on_elsewhere(tmp_path, name, after):
    expected, history = alone(name)
    learner, batches = make_row_learner(name, 2), list(in_files(tmp_path, name))
    follow_files(learner, batches[:10])
    state = pickle.loads(pickle.dumps(learner.state_dict()))
    learner = type(learner).from_state(state, workers=after)
    assert learner.objective.workers == after
    assert_same_run(follow_files(learner, batches[10:]), history[10:])
    assert_same_rows(expected, learner)


def test_a_lost_cluster_leaves_the_whole_past(tmp_path, ray):
    name = "recent"
    expected, history = alone(name)
    learner, batches = make_row_learner(name, 2), list(in_files(tmp_path, name))
    follow_files(learner, batches[:10])
    ray.shutdown()
    with pytest.raises(ClusterLost, match="state_dict"):
        learner.observe(batches[10])
    learner = type(learner).from_state(learner.state_dict())
    assert_same_run(follow_files(learner, batches[10:]), history[10:])
    assert_same_rows(expected, learner)


@pytest.mark.usefixtures("ray")
def test_a_pickle_holds_the_rows(tmp_path):
    learner, batches = make_row_learner("square", 2), list(in_files(tmp_path, "square"))
    follow_files(learner, batches[:7])
    pickled = pickle.dumps(learner)
    for file in tmp_path.iterdir():
        file.unlink()
    copy = pickle.loads(pickled)
    expected, history = alone("square")
    assert copy.objective.workers is None
    assert_same_run(follow(copy, list(row_batches("square"))[7:]), history[7:])
    assert_same_rows(expected, copy)


# Refusals -----------------------------------------------------------------------------------------

GOOD = np.arange(12.0).reshape(4, 3) / 12
BAD = {
    "nan": (np.where(GOOD == 0.5, np.nan, GOOD), np.ones(4), None, "X has nan in row 2, column 0"),
    "huge": (GOOD * 1e200, np.ones(4), None, "rescale the data"),
    "label 2": (GOOD, np.array([1.0, -1.0, 2.0, 1.0]), None, "2"),
    "no target": (GOOD, pa.array([1.0, None, 1.0, 1.0]), None, "y has nan in row 1"),
    "text": (GOOD, np.array(["a", "b", "c", "d"]), None, "y must be numeric"),
    "negative weight": (GOOD, np.ones(4), np.array([1, -1, 1, 1]), "must not be negative"),
    "no weight": (GOOD, np.ones(4), np.zeros(4), "zero for every row"),
    "other features": (np.ones((4, 2)), np.ones(4), None, "rows of shape"),
}


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("what", BAD)
@pytest.mark.usefixtures("ray")
def test_bad_values_are_refused_before_anything_changes(tmp_path, what, workers, begun):
    X, y, w, message = BAD[what]
    size = {} if begun or what != "other features" else {"n_features": 3}
    objective = LinearObjective(Logistic(), fit_intercept=True, workers=workers, **size)
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(1.0))
    write(tmp_path / "good.parquet", GOOD, np.array([1.0, -1.0, 1.0, 1.0]))
    (good,) = ParquetRows(tmp_path / "good.parquet")
    if begun:
        learner.observe(good)
        assert np.isfinite(objective.intercept)  # which a loss needs: now it is known
    before = objective.state_dict()
    write(tmp_path / "bad.parquet", X, y, w)
    (bad,) = ParquetRows(tmp_path / "bad.parquet", weight=None if w is None else "weight")
    with pytest.raises(ValueError, match=rf"bad\.parquet, rows 1 to 4: .*{message}") as said:
        learner.observe(bad)
    assert "\n" not in str(said.value)
    np.testing.assert_equal(objective.state_dict(), before)
    learner.observe(good)
    assert objective.n_observations == 4 * (1 + begun)


@pytest.mark.usefixtures("ray")
def test_after_a_refused_first_batch_another_may_have_other_features(tmp_path):
    write(tmp_path / "a.parquet", np.full((4, 3), np.nan), np.ones(4))
    write(tmp_path / "b.parquet", np.ones((4, 2), np.float32), np.ones(4))
    objective = LinearObjective(Square(), workers=2)
    with pytest.raises(ValueError, match=r"a\.parquet"):
        objective.observe(*ParquetRows(tmp_path / "a.parquet"))
    objective.observe(*ParquetRows(tmp_path / "b.parquet"))
    assert objective.shape == (2,)


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.usefixtures("ray")
def test_an_infinite_loss_is_refused(tmp_path, workers):
    objective = LinearObjective(ofw.losses.Poisson(), workers=workers)
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(100.0))
    learner.observe(np.ones((3, 1)), np.full(3, 9.0))
    write(tmp_path / "a.parquet", np.full((2, 1), 1e5), np.ones(2))
    said = r"a\.parquet, rows 1 to 2: .*infinite" if workers else "infinite"
    with pytest.raises(ValueError, match=said):
        learner.observe(*ParquetRows(tmp_path))
    assert objective.n_observations == 3


@pytest.mark.parametrize("make", [LinearObjective, lambda _, **k: RunningLeastSquares(3, **k)])
@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.usefixtures("ray")
def test_what_cannot_go_with_a_batch_is_refused(tmp_path, make, workers):
    write(tmp_path / "a.parquet", GOOD, np.ones(4))
    (batch,) = ParquetRows(tmp_path)
    (ratings,) = ParquetRatings(tmp_path, user="x0", item="x1", rating="target")
    objective = make(Square(), workers=workers)
    with pytest.raises(ValueError, match="leave y out"):
        objective.observe(batch, np.ones(4))
    with pytest.raises(ValueError, match="leave sample_weight out"):
        objective.observe(batch, None, np.ones(4))
    with pytest.raises(ValueError, match="batches of ParquetRows"):
        objective.observe(ratings)
    assert objective.n_observations == 0


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.usefixtures("ray")
def test_a_file_that_is_gone_or_shorter_is_named(tmp_path, workers):
    write(tmp_path / "a.parquet", GOOD, np.ones(4))
    objective = LinearObjective(Square(), workers=workers)
    (batch,) = ParquetRows(tmp_path)
    objective.observe(batch)
    write(tmp_path / "a.parquet", GOOD[:3], np.ones(3))
    with pytest.raises(ValueError, match=r"a\.parquet has only 3 rows now"):
        objective.observe(batch)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(ValueError, match=r"a\.parquet, rows 1 to 4: .*No such file"):
        objective.observe(batch)
    assert objective.n_observations == 4


# The estimator ------------------------------------------------------------------------------------

MODELS = {
    "sums": {},
    "robust": {"loss": "correntropy"},
    "recent": {"past": "recent", "max_past": 60, "epochs": 2},
}


def make_model(name, **options):
    return ofw.FrankWolfeRegressor(radius=3.0, batch_size=BATCH, **MODELS[name], **options)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("ray")
def test_an_estimator_fits_files(tmp_path, name, workers):
    X, y, _ = zip(*row_batches("square"), strict=True)
    X, y = np.concatenate(X), np.concatenate(y)
    expected = make_model(name).fit(X, y)
    rows = in_files(tmp_path, "square")
    for model in (make_model(name, workers=workers), make_model(name, workers=workers)):
        model.fit(rows)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-7)
        assert model.n_rounds_ == expected.n_rounds_
        assert model.n_features_in_ == FEATURES
        assert model.feature_names_in_.tolist() == NAMES


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.usefixtures("ray")
def test_an_estimator_takes_batches_of_files_and_of_arrays_in_turn(tmp_path, workers):
    expected, model = make_model("robust"), make_model("robust", workers=workers)
    for k, batch in enumerate(in_files(tmp_path, "square")):
        X, y, _ = batch.read()
        expected.partial_fit(X, y)
        model.partial_fit(batch) if k % 3 != 1 else model.partial_fit(X, y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-8)
    np.testing.assert_allclose(model.history_["loss"], expected.history_["loss"])


def test_an_estimator_says_what_cannot_go_with_files(tmp_path):
    rows, model = in_files(tmp_path / "", "square"), ofw.FrankWolfeRegressor()
    batch = next(iter(rows))
    with pytest.raises(ValueError, match="leave y out"):
        model.fit(rows, np.ones(3))
    with pytest.raises(ValueError, match="leave sample_weight out"):
        model.partial_fit(batch, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="shuffle=False"):
        ofw.FrankWolfeRegressor(shuffle=True).fit(rows)
    with pytest.raises(ValueError, match=r"FrankWolfeClassifier takes arrays.*batch\.read"):
        ofw.FrankWolfeClassifier().fit(rows, None)
    empty = tmp_path / "empty.parquet"
    write(empty, np.empty((0, 3)), np.empty(0))
    with pytest.raises(ValueError, match="nothing to learn from"):
        model.fit(ParquetRows(empty))
    write(empty, np.full((2, 3), np.nan), np.ones(2))
    bad = ParquetRows(empty)
    with pytest.raises(ValueError, match=r"empty\.parquet, rows 1 to 2: X has nan"):
        model.fit(bad)
    with pytest.raises(ValueError, match="X has nan"):
        model.partial_fit(*bad)
    assert not model.__sklearn_is_fitted__()


def test_an_estimator_wants_the_same_features_again(tmp_path):
    rows = in_files(tmp_path, "square")
    model = ofw.FrankWolfeRegressor().fit(rows)
    for features, message in {
        tuple(NAMES[:-1]): "19 features, but the model has learned from 20",
        (*NAMES[1:], NAMES[0]): "the feature 'x1' where the model has learned from 'x0'",
    }.items():
        batch = next(iter(ParquetRows(tmp_path, features=features)))
        with pytest.raises(ValueError, match=message):
            model.partial_fit(batch)
    assert model.n_rounds_ == ROUNDS
