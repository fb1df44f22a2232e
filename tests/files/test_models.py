"""A model file predicts as the estimator did, bit for bit, and does nothing else."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import onlinefw as ofw
from onlinefw.estimators import completion_run, linear_run
from onlinefw.files import ModelFileError, container, models, save_checkpoint
from onlinefw.files.container import read_tree, write_tree
from onlinefw.files.labels import labels_to_tree
from onlinefw.losses import Square

from .make_golden import GOLDEN
from .zoo import ZOO, assert_same_answers, stream, zoo

NAMES = list(ZOO)


def fitted(name, seed=0, rounds=12):
    model = ZOO[name]()
    batches = stream(name, seed)
    for batch in batches[:rounds]:
        model.partial_fit(**batch)
    return model, batches[0]["X"]


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=() if seed == k % 2 else pytest.mark.slow)
        for k, name in enumerate(NAMES)
        for seed in (0, 1)
    ],
)
def test_a_loaded_model_answers_as_the_saved_one(name, seed, tmp_path, monkeypatch):
    monkeypatch.setattr(completion_run, "RACE_ROUNDS", 8)
    monkeypatch.setattr(linear_run, "RACE_ROWS", 60)
    model, X = fitted(name, seed, rounds=5 + 7 * seed)  # in the middle of a race, or after it
    ofw.save(model, tmp_path / "model.ofw")
    loaded = ofw.load(tmp_path / "model.ofw")
    assert type(loaded) is type(model)
    assert_same_answers(loaded, model, X)
    # What was loaded can be saved, pickled and asked again.
    ofw.save(loaded, tmp_path / "again.ofw")
    assert (tmp_path / "again.ofw").read_bytes() == (tmp_path / "model.ofw").read_bytes()
    assert_same_answers(pickle.loads(pickle.dumps(loaded)), model, X)


@pytest.mark.parametrize("name", zoo())
def test_saving_changes_nothing(name, tmp_path):
    batches = stream(name, 5)
    whole, saved = ZOO[name](), ZOO[name]()
    for batch in batches:
        whole.partial_fit(**batch)
        saved.partial_fit(**batch)
        ofw.save(saved, tmp_path / "model.ofw")
    assert_same_answers(saved, whole, batches[0]["X"])


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_the_saved_one(name, tmp_path):
    model, _ = fitted(name, rounds=2)
    ofw.save(model, tmp_path / "model.ofw")
    loaded = ofw.load(tmp_path / "model.ofw")
    one, other = clone(loaded).get_params(), clone(model).get_params()
    assert list(one) == list(other)
    for key, value in one.items():
        if isinstance(value, np.random.Generator):
            assert value.random() == other[key].random()
        elif key != "estimator":
            assert repr(value) == repr(other[key])


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
@pytest.mark.parametrize("name", zoo())
def test_a_loaded_model_refuses_to_go_on_but_can_begin_anew(name, tmp_path):
    model, X = fitted(name, rounds=3)
    ofw.save(model, tmp_path / "model.ofw")
    loaded = ofw.load(tmp_path / "model.ofw")
    batch = stream(name, 0)[3]
    with pytest.raises(ValueError, match="a model file only predicts; go on from a checkpoint"):
        loaded.partial_fit(**batch)
    assert_same_answers(loaded, model, X)
    batch.pop("classes", None)
    loaded.fit(**batch).partial_fit(**batch)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_the_precision_of_coefficients_is_kept(dtype, rng, tmp_path):
    X = rng.integers(0, 9, size=(50, 8)).astype(dtype)
    model = ofw.FrankWolfeRegressor(radius=2.0).fit(X, X[:, 0].astype(float))
    ofw.save(model, tmp_path / "model.ofw")
    assert_same_answers(ofw.load(tmp_path / "model.ofw"), model, X)


def test_sparse_coefficients_take_little_room(rng, tmp_path):
    X = rng.standard_normal((30, 20_000))
    model = ofw.FrankWolfeRegressor(radius=2.0, path_size=0).fit(X, X[:, 0])
    ofw.save(model, tmp_path / "model.ofw")
    assert (tmp_path / "model.ofw").stat().st_size < 20_000
    assert_same_answers_without_path(ofw.load(tmp_path / "model.ofw"), model, X)


def assert_same_answers_without_path(one, other, X):
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.path_["t"].size == 0


def test_names_of_features_and_labels_of_any_kind_are_kept(rng, tmp_path):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rng.standard_normal((40, 3)), columns=["höhe", "", "z"])
    for y in (
        np.array(["no", "yes\0"], object)[(X["z"] > 0).astype(int)],
        (X["z"] > 0).to_numpy(),
        np.where(X["z"] > 0, 7, -1),
        np.where(X["z"] > 0, "ja", "nein"),
    ):
        model = ofw.FrankWolfeClassifier(radius=2.0).fit(X, y)
        ofw.save(model, tmp_path / "model.ofw")
        loaded = ofw.load(tmp_path / "model.ofw")
        assert loaded.classes_.dtype == model.classes_.dtype
        assert loaded.classes_.tolist() == model.classes_.tolist()
        assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
        assert loaded.score(X, y) == model.score(X, y)
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(X[["z", "", "höhe"]])


@pytest.mark.parametrize("ids", [["ann", "bob", ""], [7, 8, 2**40], np.array(["x", "y", "zz"])])
def test_identifiers_travel_with_a_matrix(ids, tmp_path):
    X = [[0, 0], [2, 1]]
    model = ofw.FrankWolfeMatrixCompletion(3.0).fit(X, [1.0, 2.0])
    ofw.save(model, tmp_path / "model.ofw", row_ids=ids, col_ids=["u", "v"], notes={"test": 0.5})
    loaded = ofw.load(tmp_path / "model.ofw")
    assert loaded.row_ids_.tolist() == list(ids)
    assert loaded.col_ids_.tolist() == ["u", "v"]
    assert loaded.notes_ == {"test": 0.5}
    ofw.save(loaded, tmp_path / "again.ofw")
    assert ofw.load(tmp_path / "again.ofw").row_ids_.tolist() == list(ids)


@pytest.mark.parametrize(
    ("labels", "ids"),
    [
        (["ann", "bob", ""], ["ann", "bob", ""]),
        (np.array([7, 8, 9], np.uint8), [7, 8, 9]),
        (np.array([0.5, 1.5, 2.0]), ["0.5", "1.5", "2.0"]),
    ],
)
def test_identifiers_of_older_files_are_the_ids_of_the_model(labels, ids, tmp_path):
    """They were beside the state, and could be anything."""
    model = ofw.FrankWolfeMatrixCompletion(3.0).fit([[0, 0], [2, 1]], [1.0, 2.0])
    ofw.save(model, tmp_path / "model.ofw")
    _, tree = read_tree(tmp_path / "model.ofw", "model")
    del tree["state"]["run"]["ids"]
    write_tree(
        tmp_path / "older.ofw", "model", {**tree, "row_ids": labels_to_tree(labels, "row_ids")}
    )
    loaded = ofw.load(tmp_path / "older.ofw")
    assert loaded.row_ids_.tolist() == ids and loaded.col_ids_.tolist() == [0, 1]
    np.testing.assert_array_equal(loaded.predict([[ids[2], 1]]), model.predict([[2, 1]]))
    two = {**tree, "row_ids": labels_to_tree(labels[:2], "row_ids")}
    write_tree(tmp_path / "short.ofw", "model", two)
    with pytest.raises(ofw.files.ModelFileError, match="2 names for 3 rows"):
        ofw.load(tmp_path / "short.ofw")


def test_identifiers_must_differ(tmp_path):
    model = ofw.FrankWolfeMatrixCompletion(3.0).fit([[0, 0], [2, 1]], [1.0, 2.0])
    with pytest.raises(ValueError, match="row ids must differ from each other, got 'ann' twice"):
        ofw.save(model, tmp_path / "model.ofw", row_ids=["ann", "bob", "ann"])


def test_identifiers_must_name_every_row(tmp_path):
    model = ofw.FrankWolfeMatrixCompletion(3.0).fit([[0, 0], [2, 1]], [1.0, 2.0])
    with pytest.raises(ValueError, match="row_ids must name each of the 3 rows seen, got 1"):
        ofw.save(model, tmp_path / "model.ofw", row_ids=["ann"])
    with pytest.raises(ValueError, match="all text or all whole numbers"):
        ofw.save(model, tmp_path / "model.ofw", row_ids=[1, "two", None])
    with pytest.raises(ValueError, match="are for users and items"):
        ofw.save(fitted("regressor, sums")[0], tmp_path / "model.ofw", row_ids=["ann"])
    assert not list(tmp_path.iterdir())


class MyLoss(Square):
    """A loss of the user's own."""


def own_step(t):
    return 2.0 / (t + 1.0)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ofw.FrankWolfeRegressor(loss=MyLoss()), "FrankWolfeRegressor.loss"),
        (lambda: ofw.FrankWolfeRegressor(step=own_step), "FrankWolfeRegressor.step"),
        (lambda: ofw.RadiusSearch(ofw.FrankWolfeRegressor(loss=MyLoss())), "Regressor.loss"),
    ],
)
def test_what_is_the_users_own_is_refused_when_saving(make, name, rng, tmp_path):
    X = rng.standard_normal((20, 3))
    model = make().partial_fit(X, X[:, 0])
    with pytest.raises(ValueError, match=f"{name}.*which is your own"):
        ofw.save(model, tmp_path / "model.ofw")
    with pytest.raises(ValueError, match=f"{name}.*which is your own"):
        save_checkpoint(model, tmp_path / "run.ckpt")
    assert not list(tmp_path.iterdir())


def test_what_is_not_fitted_or_not_ours_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        ofw.save(ofw.FrankWolfeRegressor(), tmp_path / "model.ofw")
    with pytest.raises(ValueError, match="a model file holds one of"):
        ofw.save({"coef": 1}, tmp_path / "model.ofw")


def test_a_model_file_holds_no_past(tmp_path):
    for name in ("regressor, sums", "completion, ridge", "search, sums"):
        ofw.save(fitted(name)[0], tmp_path / "model.ofw")
        loaded = ofw.load(tmp_path / "model.ofw")
        assert not loaded.can_learn_
        best = getattr(loaded, "best_estimator_", loaded)
        assert best.n_observations_ > 0
        with pytest.raises(AttributeError, match="holds no past"):
            best.objective_  # noqa: B018
        for act in ("refine", "state_dict"):
            with pytest.raises(ValueError, match="a model file only predicts"):
                getattr(loaded, act)()


# Trees that somebody has made on purpose ---------------------------------------------------------


def places_of(tree):
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield (key,)
            yield from ((key, *rest) for rest in places_of(value))
    elif isinstance(tree, list):
        for key, value in enumerate(tree):
            yield (key,)
            yield from ((key, *rest) for rest in places_of(value))


def with_changed(tree, place, change):
    if not place:
        return change(tree)
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[place[0]] = with_changed(tree[place[0]], place[1:], change)
    return copy


def shorter(value):
    has_length = isinstance(value, (str, list)) or (isinstance(value, np.ndarray) and value.ndim)
    return value[:-1] if has_length else 9


def larger(value):
    if not isinstance(value, np.ndarray) or value.dtype.kind == "U":
        return "os.system"
    return (value.astype(float) + 100).astype(value.dtype)


CHANGES = [lambda value: None, lambda value: {"part": "nonsense"}, shorter, larger]


@pytest.mark.parametrize("name", ["classifier, three classes", "search, sums", "completion, ridge"])
@pytest.mark.parametrize("k", range(len(CHANGES)))
def test_a_model_with_anything_wrong_in_it_is_refused_or_harmless(name, k, tmp_path):
    """Whatever stands where: loading and predicting raise ordinary errors, or work."""
    model, X = fitted(name, rounds=4)
    ofw.save(model, tmp_path / "model.ofw")
    tree = read_tree(tmp_path / "model.ofw", "model")[1]
    for place in places_of(tree):
        changed = with_changed(tree, place, CHANGES[k])
        try:
            loaded = models._from_tree(changed)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            continue
        try:
            loaded.predict(X)
        except (AttributeError, LookupError, TypeError, ValueError):
            continue


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("estimator",), "os.system"),
        (("parameters", "loss"), {"part": "Loss"}),
        (("parameters", "nonsense"), 1),
        (("parameters", "corrective"), {"corrective": "RidgeSweeps", "fields": {"x": 1}}),
        (("state", "run", "matrix", "columns"), np.array([2**31], np.uint32)),
        (("state", "run", "matrix", "left"), np.zeros((1, 1))),
        (("state", "run", "matrix", "row_offsets"), np.zeros(1)),
    ],
)
def test_the_line_names_the_file(place, value, tmp_path):
    ofw.save(fitted("completion, ridge")[0], tmp_path / "model.ofw")
    tree = read_tree(tmp_path / "model.ofw", "model")[1]
    if place[-1] == "nonsense":
        tree["parameters"]["nonsense"] = value
    else:
        tree = with_changed(tree, place, lambda _: value)
    write_tree(tmp_path / "model.ofw", "model", tree)
    with pytest.raises(ModelFileError, match="does not hold a whole model") as refused:
        ofw.load(tmp_path / "model.ofw")
    assert str(tmp_path / "model.ofw") in str(refused.value)


def test_a_model_file_of_an_older_onlinefw_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "__version__", "0.0.1")
    model, X = fitted("regressor, sums")
    ofw.save(model, tmp_path / "model.ofw")
    monkeypatch.undo()
    assert_same_answers(ofw.load(tmp_path / "model.ofw"), model, X)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.ofw")), ids=lambda path: path.stem)
def test_model_files_of_every_format_version_are_read(path):
    model = ofw.load(path)
    predictions = np.array(model.notes_["predictions"])
    answer = model.predict(np.array(model.notes_["X"]))
    if predictions.dtype.kind == "U":
        assert answer.tolist() == predictions.tolist()
    else:
        np.testing.assert_allclose(answer, predictions, rtol=1e-5, atol=1e-6)


def test_there_are_model_files_of_this_format_version():
    assert list(GOLDEN.glob(f"*-v{container.FORMAT_VERSION}.ofw"))


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    model = ofw.FrankWolfeRegressor(radius=1.0).fit(np.eye(2), [0.0, 1.0])
    for write in (ofw.save, save_checkpoint):
        with pytest.raises(FileNotFoundError, match="the folder does not exist; create it first"):
            write(model, tmp_path / "no" / "r.ofw")
    assert not (tmp_path / "no").exists()


def test_load_reads_checkpoints_too_and_these_go_on(tmp_path, rng):
    X = rng.standard_normal((60, 4))
    model = ofw.FrankWolfeRegressor(radius=2.0).partial_fit(X[:30], X[:30, 0])
    ofw.save_checkpoint(model, tmp_path / "run.ckpt")
    loaded = ofw.load(tmp_path / "run.ckpt").partial_fit(X[30:], X[30:, 0])
    np.testing.assert_array_equal(loaded.coef_, model.partial_fit(X[30:], X[30:, 0]).coef_)
