"""A run that stops and goes on ends where one that never stopped ends, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import onlinefw as ofw
from onlinefw.estimators import matrix_completion
from onlinefw.files import (
    ModelFileError,
    container,
    load_checkpoint,
    read_header,
    save_checkpoint,
)
from onlinefw.files.container import read_tree, write_tree
from onlinefw.files.freeze import freeze, thaw

from .zoo import ROUNDS, ZOO, assert_same_answers, stream


@pytest.mark.parametrize("name", list(ZOO))
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), cuts=st.sets(st.integers(0, ROUNDS), max_size=2))
def test_wherever_it_stops_it_ends_the_same(name, seed, cuts, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.ckpt"
    batches = stream(name, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix_completion, "RACE_ROUNDS", 8)
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


def test_saving_changes_nothing(tmp_path):
    for name, make in ZOO.items():
        batches = stream(name, 5)
        whole, saved = make(), make()
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


def test_what_was_shared_is_shared_again(tmp_path):
    name = "search, rows"
    search = ZOO[name]()
    for batch in stream(name, 0):
        search.partial_fit(**batch)
    save_checkpoint({"search": search, "again": search}, tmp_path / "run.ckpt")
    run = load_checkpoint(tmp_path / "run.ckpt")
    assert run["search"] is run["again"]
    stores = {id(one._team.past) for one in run["search"].estimators_}
    assert stores == {id(run["search"]._team.past)}
    team = run["search"]._team
    for lane, learner in zip(team.past.lanes, team.learners, strict=True):
        assert lane is learner.objective


def test_a_generator_of_the_users_own_is_shared_with_the_reservoir(tmp_path):
    model = ZOO["regressor, reservoir"]().set_params(loss="correntropy")
    model.partial_fit(**stream("regressor, reservoir", 0)[0])
    save_checkpoint(model, tmp_path / "run.ckpt")
    loaded = load_checkpoint(tmp_path / "run.ckpt")
    assert loaded.objective_._store._rng is loaded.random_state
    assert loaded.random_state.random() == model.random_state.random()


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.builds(np.float32, st.floats(width=32, allow_nan=False))
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9))
    | st.builds(slice, st.integers(-9, 9), st.none()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.binary()), inner, max_size=3)
        | st.sets(st.integers() | st.text(), max_size=3)
        | st.frozensets(st.integers(), max_size=3)
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
    names = np.array(["a", None, "b"], object)
    csr = sparse.csr_array(np.eye(3))
    save_checkpoint([fortran, names, csr, np.dtype("f4"), fortran], tmp_path / "run.ckpt")
    first, second, third, dtype, again = load_checkpoint(tmp_path / "run.ckpt")
    assert first.flags.f_contiguous and first is again
    assert second.tolist() == ["a", None, "b"]
    np.testing.assert_array_equal(third.toarray(), np.eye(3))
    assert dtype == np.float32


def test_cycles_are_no_obstacle(tmp_path):
    ring = {"name": "ring", "items": []}
    ring["items"].append(ring)
    save_checkpoint(ring, tmp_path / "run.ckpt")
    loaded = load_checkpoint(tmp_path / "run.ckpt")
    assert loaded["items"][0] is loaded


# What a checkpoint refuses -----------------------------------------------------------------------


def test_a_checkpoint_of_another_version_is_refused_with_both(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "__version__", "0.0.1")
    save_checkpoint([1], tmp_path / "run.ckpt")
    monkeypatch.undo()
    assert read_header(tmp_path / "run.ckpt")["onlinefw"] == "0.0.1"
    with pytest.raises(ModelFileError, match=rf"made by onlinefw 0.0.1 .* {ofw.__version__}"):
        load_checkpoint(tmp_path / "run.ckpt")


def test_a_checkpoint_is_not_a_model_nor_the_other_way_round(tmp_path):
    model = ZOO["regressor, sums"]().partial_fit(**stream("regressor, sums", 0)[0])
    save_checkpoint(model, tmp_path / "run.ckpt")
    with pytest.raises(ModelFileError, match="is a checkpoint"):
        ofw.load(tmp_path / "run.ckpt")
    ofw.save(model, tmp_path / "model.ofw")
    with pytest.raises(ModelFileError, match="it only predicts"):
        load_checkpoint(tmp_path / "model.ofw")
    with pytest.raises(ValueError, match="a model file only predicts"):
        save_checkpoint({"model": ofw.load(tmp_path / "model.ofw")}, tmp_path / "run.ckpt")


@pytest.mark.parametrize("value", [print, np.sum, object(), type("Mine", (), {})(), dict, 1j])
def test_classes_and_functions_are_refused(value, tmp_path):
    with pytest.raises(ValueError, match=r"onlinefw's own parts only, but model\.part is"):
        save_checkpoint({"model": {"part": value}}, tmp_path / "run.ckpt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "node",
    [
        {"class": "os.system", "state": None},
        {"class": "builtins.object", "state": None},
        {"class": "estimators.matrix_completion.np", "state": None},
        {"class": "losses.Loss", "state": None},
        {"class": "files.freeze._Thawer", "state": None},
        {"class": "losses.Square", "state": 7},
        {"class": "atoms.SignedCoordinate", "state": {"tuple": [None, {"ref": 1}]}},
        {"type": "object"},
        {"call": "os.system"},
        {"ref": 0},
        {"generator": {"bit_generator": "default_rng"}},
        {"dtype": "O"},
        {"number": ["O", "00000000"]},
        {"sparse": "LinearOperator", "arrays": [], "shape": [1, 1]},
        {"sparse": "csr_array", "arrays": [1, 2, 3], "shape": [1, 1]},
        {"range": ["a"]},
        [],
        None,
        7,
    ],
)
def test_a_file_that_names_anything_else_is_refused(node, tmp_path):
    others = {"dict": [["shout", {"tuple": []}]]}
    write_tree(tmp_path / "run.ckpt", "checkpoint", {"root": {"ref": 0}, "objects": [node, others]})
    with pytest.raises(ModelFileError, match="does not hold a whole checkpoint"):
        load_checkpoint(tmp_path / "run.ckpt")


def test_indices_of_a_sparse_matrix_are_checked(tmp_path):
    tree = freeze(sparse.csr_array(np.eye(3)))
    for node in tree["objects"]:
        if "array" in node and node["array"].size == 3 and node["array"].dtype.kind == "i":
            node["array"] = node["array"] + 10**6
    with pytest.raises(ValueError):
        thaw(tree)


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
    rows = [
        node["array"].shape
        for node in read_tree(tmp_path / "run.ckpt", "checkpoint")["objects"]
        if "array" in node and node["array"].ndim == 2
    ]
    assert max(rows) == (65, 50)
