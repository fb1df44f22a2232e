"""Partitioned Parquet that workers read themselves: the same rounds whatever their number."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

import onlinefw as ofw  # noqa: E402
from onlinefw.distributed import ParquetRatings  # noqa: E402

from .killing import kill_before  # noqa: E402
from .problems import assert_same  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 25))
    for part, n in enumerate((210, 130, 300)):
        user, item = rng.integers(40, size=n), rng.integers(25, size=n)
        table = pa.table({"u": user, "i": item, "r": truth[user, item]})
        pq.write_table(table, tmp_path / f"part-{part}.parquet", row_group_size=70)
    return tmp_path


def ratings_in(folder):
    return ParquetRatings(folder, user="u", item="i", rating="r", batch_size=50)


def learner_for(ratings, workers, **options):
    options = {"dtype": float, **options}
    shape = (1, 1) if options.get("growing") else ratings.shape
    objective = ofw.objectives.ObservedEntries(shape, workers=workers, **options)
    return ofw.OnlineFrankWolfe(objective, ofw.sets.TraceNormBall(60.0))


def losses(learner, ratings):
    return [learner.observe(batch).loss for batch in ratings]


def test_every_rating_is_in_one_round(folder):
    ratings = ratings_in(folder)
    assert ratings.shape == (40, 25)
    assert len(ratings) == 5 + 3 + 6
    partitions = [batch.partition for batch in ratings]
    assert partitions[:7] == [0, 1, 2, 0, 1, 2, 0]
    sizes = [len(batch.read()[1]) for batch in ratings]
    assert sum(sizes) == 210 + 130 + 300
    table = pq.read_table(folder / "part-2.parquet")
    read = np.concatenate([batch.read()[1] for batch in ratings if batch.partition == 2])
    np.testing.assert_array_equal(read, table["r"].to_numpy())


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (1, {}),
        (2, {}),
        (3, {}),
        (2, {"growing": True}),
        (3, {"max_atoms": 6}),
        (2, {"offsets": "biases"}),
    ],
)
def test_the_trajectory_is_that_of_one_process(folder, workers, options):
    def learner(count):
        parts = dict(options)
        if "offsets" in parts:
            parts["offsets"] = ofw.objectives.RunningBiases()
        return learner_for(ratings, count, **parts)

    ratings = ratings_in(folder)
    alone, spread = learner(None), learner(workers)
    np.testing.assert_allclose(losses(spread, ratings), losses(alone, ratings), rtol=1e-8)
    assert_same(alone, spread)


@pytest.mark.usefixtures("cluster")
def test_a_restarted_worker_reads_the_files_again(folder):
    ratings = ratings_in(folder)
    alone, spread = learner_for(ratings, None), learner_for(ratings, 2)
    entries = spread.objective._past
    kill_before(entries.shards, {21})
    np.testing.assert_allclose(losses(spread, ratings), losses(alone, ratings), rtol=1e-8)
    assert entries.shards.restarts >= 1
    assert_same(alone, spread)
    assert sum(file.stat().st_size for file in entries.log.folder.iterdir()) < 10_000


@pytest.mark.usefixtures("cluster")
def test_a_bad_file_is_refused_before_anything_changes(folder):
    ratings = ratings_in(folder)
    learner = learner_for(ratings, 2)
    losses(learner, ratings)
    before = learner.objective.value()
    table = pa.table({"u": [1, -2], "i": [0, 0], "r": [1.0, 1.0]})
    pq.write_table(table, folder / "bad.parquet")
    (batch,) = ParquetRatings(folder / "bad.parquet", user="u", item="i", rating="r")
    with pytest.raises(ValueError, match=r"bad\.parquet.*negative index -2"):
        learner.observe(batch)
    assert learner.objective.value() == before


def test_what_is_not_there_is_named(folder, tmp_path):
    with pytest.raises(ValueError, match="no column 'user'"):
        ParquetRatings(folder)
    with pytest.raises(ValueError, match="no Parquet files"):
        ParquetRatings(tmp_path / "nowhere")


def in_arrays(ratings):
    """What the files hold, in the order of the rounds."""
    X, y = zip(*(batch.read() for batch in ratings), strict=True)
    return np.concatenate(X), np.concatenate(y)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"radius": 60.0, "clip": True},
        {"radius": "auto", "corrective": None},
        {"radius": 60.0, "offsets": "biases", "epochs": 2},
        {"radius": 60.0, "weighting": "smoothed"},
    ],
    ids=str,
)
def test_an_estimator_fits_files(tmp_path, workers, options):
    """Files of full batches: then arrays are cut into the same rounds."""
    rng = np.random.default_rng(0)
    for part in range(2):
        user, item = rng.integers(40, size=300), rng.integers(25, size=300)
        values = np.sin(user) * np.cos(item) + 0.1 * rng.standard_normal(300)
        table = pa.table({"user": user, "item": item, "rating": values})
        pq.write_table(table, tmp_path / f"part-{part}.parquet", row_group_size=70)
    ratings = ParquetRatings(tmp_path, batch_size=50)
    options = {"dtype": "float64", "batch_size": 50, **options}
    spread = ofw.FrankWolfeMatrixCompletion(**options, workers=workers).fit(ratings)
    X, y = in_arrays(ratings)
    alone = ofw.FrankWolfeMatrixCompletion(**options)
    if options["radius"] == "auto":  # radii fit the first batch of files, and all of arrays
        alone.fit(ratings)
    else:
        alone.fit(X, y)
    np.testing.assert_allclose(spread.predict(X), alone.predict(X), atol=1e-6)
    assert spread.radius_ == alone.radius_
    assert spread.n_rounds_ == alone.n_rounds_


@pytest.mark.usefixtures("cluster")
def test_an_estimator_takes_batches_of_files_and_of_arrays_in_turn(folder):
    ratings, options = ratings_in(folder), {"dtype": "float64", "clip": True}
    spread = ofw.FrankWolfeMatrixCompletion(60.0, workers=2, **options)
    alone = ofw.FrankWolfeMatrixCompletion(60.0, **options)
    for k, batch in enumerate(ratings):
        spread.partial_fit(*(batch.read() if k % 3 == 1 else (batch,)))
        alone.partial_fit(*batch.read())
    X, _ = in_arrays(ratings)
    np.testing.assert_allclose(spread.predict(X), alone.predict(X), atol=1e-6)


def test_bad_values_of_a_file_are_named(folder):
    table = pa.table({"u": [0, 1, 2], "i": [0, 1, 2], "r": [1.0, np.nan, 2.0]})
    pq.write_table(table, folder / "part-3.parquet")
    model = ofw.FrankWolfeMatrixCompletion(60.0)
    with pytest.raises(ValueError, match=r"part-3.parquet, rows 1 to 3: .*nan"):
        model.fit(ratings_in(folder))
    for file in folder.glob("*.parquet"):
        file.unlink()
    pq.write_table(table[:0], folder / "empty.parquet")
    with pytest.raises(ValueError, match="nothing to learn from"):
        model.fit(ratings_in(folder))
    with pytest.raises(ValueError, match="y is missing"):
        model.fit(np.zeros((3, 2), int))


@pytest.mark.usefixtures("cluster")
def test_what_cannot_go_with_files_is_refused(folder):
    model, ratings = ofw.FrankWolfeMatrixCompletion(60.0), ratings_in(folder)
    with pytest.raises(ValueError, match="leave y out"):
        model.fit(ratings, np.ones(3))
    with pytest.raises(ValueError, match="leave sample_weight out"):
        model.partial_fit(next(iter(ratings)), sample_weight=np.ones(50))
    with pytest.raises(ValueError, match="shuffle=False"):
        model.set_params(shuffle=True).fit(ratings)
    for workers in (None, 2):
        learner = learner_for(ratings, workers)
        with pytest.raises(ValueError, match="leave sample_weight out"):
            learner.observe(next(iter(ratings)), sample_weight=np.ones(50))
        assert learner.objective.n_observations == 0


def test_the_range_of_a_batch_is_known_without_reading_it(folder):
    for batch in ratings_in(folder):
        low, high = batch.value_range()
        _, y = batch.read()
        assert low <= y.min() <= y.max() <= high
    file = folder / "part-0.parquet"
    pq.write_table(pq.read_table(file), file, write_statistics=False)
    first = next(iter(ParquetRatings(file, user="u", item="i", rating="r", batch_size=50)))
    _, y = first.read()
    assert first.value_range() == (y.min(), y.max())


def test_columns_of_structures_do_not_mislead(tmp_path):
    user, item, values = np.array([3, 1]), np.array([0, 5]), np.array([-1.0, 2.0])
    place = pa.array([{"x": 100, "y": 200}, {"x": 300, "y": 400}])
    table = pa.table({"place": place, "user": user, "item": item, "rating": values})
    pq.write_table(table, tmp_path / "a.parquet")
    ratings = ParquetRatings(tmp_path)
    assert ratings.shape == (4, 6)
    assert next(iter(ratings)).value_range() == (-1.0, 2.0)


def test_rows_of_features_are_no_ratings(folder):
    rows = ofw.distributed.ParquetRows(folder, target="r")
    objective = ofw.objectives.ObservedEntries((40, 25))
    with pytest.raises(ValueError, match="batches of ParquetRatings"):
        objective.observe(next(iter(rows)))
    model = ofw.FrankWolfeMatrixCompletion(3.0)
    for learn, files in ((model.fit, rows), (model.partial_fit, next(iter(rows)))):
        with pytest.raises(ValueError, match="ParquetRatings"):
            learn(files)
    linear = ofw.objectives.LinearObjective(ofw.losses.Square())
    with pytest.raises(ValueError, match="batches of ParquetRows"):
        linear.observe(next(iter(ratings_in(folder))))
