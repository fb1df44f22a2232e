"""A run that stops and goes on ends where one that never stopped ends, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import onlinefw as ofw
from onlinefw.estimators import completion_run, linear_run
from onlinefw.files import (
    ModelFileError,
    container,
    load_checkpoint,
    read_header,
    save_checkpoint,
)
from onlinefw.files.container import read_tree, write_tree

from .zoo import ROUNDS, ZOO, assert_same_answers, stream, zoo


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo())
@settings(max_examples=2)
@given(seed=st.integers(0, 10**6), cuts=st.sets(st.integers(0, ROUNDS), max_size=2))
def test_wherever_it_stops_it_ends_the_same(name, seed, cuts, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.ckpt"
    batches = stream(name, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completion_run, "RACE_ROUNDS", 8)
        patch.setattr(linear_run, "RACE_ROWS", 60)
        whole, cut = ZOO[name](), ZOO[name]()
        for k, batch in enumerate(batches):
            if k in cuts:
                save_checkpoint(cut, path)
                cut = load_checkpoint(path)
            whole.partial_fit(**batch)
            cut.partial_fit(**batch)
    save_checkpoint(cut, path)
    for model in (cut, load_checkpoint(path)):
        _assert_same_run(model, whole, batches[0]["X"])


def _assert_same_run(model, whole, X):
    assert_same_answers(model, whole, X)
    if isinstance(whole, ofw.RadiusSearch):
        for one, other in zip(model.estimators_, whole.estimators_, strict=True):
            assert_same_answers(one, other, X)


@pytest.mark.parametrize("name", zoo())
def test_saving_changes_nothing(name, tmp_path):
    batches = stream(name, 5)
    whole, saved = ZOO[name](), ZOO[name]()
    for batch in batches:
        whole.partial_fit(**batch)
        saved.partial_fit(**batch)
        save_checkpoint(saved, tmp_path / "run.ckpt")
    assert_same_answers(saved, whole, batches[0]["X"])


def test_a_model_that_was_fitted_goes_on_by_partial_fit(tmp_path, rng):
    X = rng.standard_normal((200, 6))
    whole = ofw.FrankWolfeRegressor(radius=3.0, loss="correntropy", batch_size=20, epochs=2)
    whole.fit(X, X[:, 0])
    save_checkpoint(whole, tmp_path / "run.ckpt")
    other = load_checkpoint(tmp_path / "run.ckpt")
    for model in (whole, other):
        model.partial_fit(X[:30], X[:30, 1])
    assert_same_answers(other, whole, X)


def test_the_rows_of_a_search_are_kept_once(tmp_path):
    name = "search, rows"
    search = ZOO[name]()
    for batch in stream(name, 0):
        search.partial_fit(**batch)
    save_checkpoint(search, tmp_path / "run.ckpt")
    loaded = load_checkpoint(tmp_path / "run.ckpt")
    learners = [learner for one in loaded.estimators_ for learner in one._run.learners]
    assert len({id(learner.objective._shared) for learner in learners}) == 1
    state = search.state_dict()
    assert [model["run"]["team"] for model in state["models"]] == [None] * 3
    assert all("rows" not in one["objective"] for one in state["team"]["learners"])


def test_a_generator_of_the_users_own_goes_on_where_it_was(tmp_path):
    model = ZOO["regressor, reservoir"]().set_params(loss="correntropy")
    model.partial_fit(**stream("regressor, reservoir", 0)[0])
    save_checkpoint(model, tmp_path / "run.ckpt")
    loaded = load_checkpoint(tmp_path / "run.ckpt")
    assert loaded.random_state.random() == model.random_state.random()


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
)


@given(value=plain)
def test_plain_values_stand_beside_the_estimator(value, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.ckpt"
    save_checkpoint({"model": ofw.FrankWolfeRegressor(), "counters": value}, path)
    loaded = load_checkpoint(path)["counters"]
    assert repr(loaded) == repr(value) or loaded == value
    assert type(loaded) is type(value)


def test_arrays_stand_beside_the_estimator(tmp_path):
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    names = np.array(["a", "", "b"], object)
    csr = sparse.csr_array(np.eye(3))
    save_checkpoint([fortran, names, csr, np.float32(2.0)], tmp_path / "run.ckpt")
    first, second, third, number = load_checkpoint(tmp_path / "run.ckpt")
    np.testing.assert_array_equal(first, fortran)
    assert second.tolist() == ["a", "", "b"]
    np.testing.assert_array_equal(third.toarray(), np.eye(3))
    assert number == 2.0


# What a checkpoint refuses -----------------------------------------------------------------------


def test_a_checkpoint_of_another_version_is_refused_with_both(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "__version__", "0.0.1")
    save_checkpoint([1], tmp_path / "run.ckpt")
    monkeypatch.undo()
    assert read_header(tmp_path / "run.ckpt")["onlinefw"] == "0.0.1"
    with pytest.raises(ModelFileError, match=rf"made by onlinefw 0.0.1 .* {ofw.__version__}"):
        load_checkpoint(tmp_path / "run.ckpt")


def test_a_model_file_is_not_a_checkpoint(tmp_path):
    model = ZOO["regressor, sums"]().partial_fit(**stream("regressor, sums", 0)[0])
    ofw.save(model, tmp_path / "model.ofw")
    with pytest.raises(ModelFileError, match="it only predicts"):
        load_checkpoint(tmp_path / "model.ofw")
    with pytest.raises(ValueError, match="a model file only predicts"):
        save_checkpoint({"model": ofw.load(tmp_path / "model.ofw")}, tmp_path / "run.ckpt")


@pytest.mark.parametrize("value", [print, np.sum, object(), type("Mine", (), {})(), dict, {1, 2}])
def test_classes_and_functions_are_refused(value, tmp_path):
    with pytest.raises(ValueError, match=r"onlinefw's own parts only, but model\.part is"):
        save_checkpoint({"model": {"part": value}}, tmp_path / "run.ckpt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "tree",
    [
        {"estimator": "os.system", "parameters": {}, "state": None, "beside": {"dict": {}}},
        {"estimator": "FrankWolfeRegressor", "parameters": {"x": 1}, "state": None, "beside": {}},
        {
            "estimator": "FrankWolfeRegressor",
            "parameters": {},
            "state": {"estimator": "FrankWolfeRegressor", "run": {}},
            "beside": {"dict": {}},
        },
        {"estimator": "FrankWolfeRegressor", "parameters": {}, "state": None,
         "beside": {"dict": {"fit": 1}}},
        {"call": "os.system"},
        {"generator": {"bit_generator": "default_rng"}},
        {"csr": {"shape": [1, 1], "indptr": [0], "indices": [0], "data": [0]}},
        {"texts": [1, 2]},
        {},
        [],
    ],
)  # fmt: skip
def test_a_file_that_names_anything_else_is_refused(tree, tmp_path):
    write_tree(tmp_path / "run.ckpt", "checkpoint", tree)
    with pytest.raises(ModelFileError, match="does not hold a whole checkpoint"):
        load_checkpoint(tmp_path / "run.ckpt")


def test_a_checkpoint_of_the_format_before_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "FORMAT_VERSION", 1)
    save_checkpoint([1], tmp_path / "run.ckpt")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"\(format 1\) and this is .*begin anew"):
        load_checkpoint(tmp_path / "run.ckpt")


def test_indices_of_a_sparse_matrix_are_checked(tmp_path):
    save_checkpoint(sparse.csr_array(np.eye(3)), tmp_path / "run.ckpt")
    tree = read_tree(tmp_path / "run.ckpt", "checkpoint")[1]
    tree["csr"]["indices"] = tree["csr"]["indices"] + 10**6
    write_tree(tmp_path / "run.ckpt", "checkpoint", tree)
    with pytest.raises(ModelFileError, match="an index is outside 0 to 2"):
        load_checkpoint(tmp_path / "run.ckpt")


@settings(max_examples=50)
@given(data=st.data())
def test_a_damaged_checkpoint_is_refused(data, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    path = folder / "good.ckpt"
    if not path.exists():
        save_checkpoint(ZOO["completion, auto"]().partial_fit(**stream("completion", 0)[0]), path)
    content = path.read_bytes()
    k = data.draw(st.integers(0, len(content) - 1))
    cut = data.draw(st.booleans())
    bad = content[:k] if cut else content[:k] + bytes([content[k] ^ 8]) + content[k + 1 :]
    (folder / "bad.ckpt").write_bytes(bad)
    with pytest.raises(ModelFileError, match=r"bad\.ckpt"):
        load_checkpoint(folder / "bad.ckpt")


def test_a_checkpoint_holds_no_memory_that_is_not_in_use(tmp_path, rng):
    X = rng.standard_normal((65, 50))
    model = ofw.FrankWolfeRegressor(radius=3.0, loss="correntropy", path_size=0)
    for start in range(0, 65, 13):
        model.partial_fit(X[start : start + 13], X[start : start + 13, 0])
    save_checkpoint(model, tmp_path / "run.ckpt")
    assert X.nbytes < (tmp_path / "run.ckpt").stat().st_size < 1.5 * X.nbytes
