"""Ids of rows and columns: text, whole numbers, frames; they grow, are saved, and are refused."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw.estimators import ids as ids_module
from onlinefw.estimators.pairs import pairs_of
from onlinefw.files import load_checkpoint, save_checkpoint

FRAMES = {
    "pandas": pd.DataFrame,
    "pandas, objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas, categories": lambda columns: pd.DataFrame(columns).astype("category"),
    "pandas, nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "Polars": pl.DataFrame,
    "Polars, categories": lambda columns: pl.DataFrame(columns).with_columns(
        pl.col("film").cast(pl.Categorical)
    ),
    "Arrow": pa.table,
    "Arrow, dictionaries": lambda columns: pa.table(
        {name: pa.array(values).dictionary_encode() for name, values in columns.items()}
    ),
}


def local(**more):
    return ofw.FrankWolfeMatrixCompletion(corrective="factors", **more)


def steps(**more):
    """Rounds of Frank-Wolfe steps, with all that such rounds carry along."""
    more = {"radius": 20.0, "offsets": "joint", "weighting": "smoothed", **more}
    return ofw.FrankWolfeMatrixCompletion(corrective=None, batch_size=20, **more)


MODELS = pytest.mark.parametrize("make", [local, steps])


def ratings(n=200, seed=0, shape=(25, 15)):
    """Ids in order (whole-number people and text films), the same as indices, and values."""
    rng = np.random.default_rng(seed)
    people, films = (rng.integers(0, m, n) for m in shape)
    columns = {"person": (1000 - people).tolist(), "film": [f"film {k}" for k in films]}
    numbers = np.column_stack([in_order(side) for side in columns.values()])
    return columns, numbers, 3.0 + people % 3 + films % 2 + 0.3 * rng.standard_normal(n)


def in_order(side):
    known = {}
    return [known.setdefault(one, len(known)) for one in side]


def listed(columns):
    return [list(pair) for pair in zip(*columns.values(), strict=True)]


def objects(columns):
    return np.array(listed(columns), dtype=object)


# A model of ids is a model of indices, with names -------------------------------------------------


@MODELS
@pytest.mark.parametrize("how", ["fit", "learn", "partial_fit"])
def test_ids_are_numbered_in_the_order_in_which_they_come(make, how):
    columns, X, y = ratings()
    one, two = make(), make()
    results = getattr(one, how)(objects(columns), y), getattr(two, how)(X, y)
    if how == "learn":
        np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(one.predict(objects(columns)), two.predict(X))
    assert one.shape_ == two.shape_ == (len(one.row_ids_), len(one.col_ids_))
    assert one.row_ids_.tolist() == list(dict.fromkeys(columns["person"]))
    assert one.col_ids_.tolist() == list(dict.fromkeys(columns["film"]))
    assert two.row_ids_ is None and two.col_ids_ is None


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.text(max_size=3), st.integers(-(2**63), 2**63 - 1)), min_size=1),
    st.lists(st.integers(1, 99)),
)
def test_whatever_the_ids_and_the_pieces_are(cells, cuts):
    numbers = np.column_stack([in_order(side) for side in zip(*cells, strict=True)])
    y = np.arange(len(cells)) % 5.0
    one, two = local(), local()
    expected = two.learn(numbers, y)
    parts = [part for part in np.split(np.arange(len(cells)), sorted(cuts)) if part.size]
    found = [one.learn([list(cells[k]) for k in part], y[part]) for part in parts]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert listed(
        {"rows": one.row_ids_[numbers[:, 0]], "columns": one.col_ids_[numbers[:, 1]]}
    ) == [list(cell) for cell in cells]
    X = [list(cell) for cell in cells]
    np.testing.assert_array_equal(one.predict(X), two.predict(numbers))


@pytest.mark.parametrize("library", FRAMES)
def test_frames_hold_ids(library):
    columns, X, y = ratings()
    frame = FRAMES[library](columns)
    expected = local().fit(X, y)
    for values in (y, pd.Series(y), pl.Series(y), pa.chunked_array([y])):
        model = local().fit(frame, values)
        np.testing.assert_array_equal(model.predict(frame), expected.predict(X))
        assert model.score(frame, values) == expected.score(X, y)
    assert model.row_ids_.dtype == np.int64 and model.row_ids_[0] == columns["person"][0]
    assert model.predict([[columns["person"][0], "film 3"]]).shape == (1,)


def test_whole_numbers_in_a_frame_are_ids_and_stay_so_in_arrays():
    frame = pd.DataFrame({"person": [2**60, -5], "film": [10**9, 7]})
    model = local().fit(frame, [1.0, 2.0])
    assert model.shape_ == (2, 2)
    np.testing.assert_array_equal(model.predict(frame.to_numpy()), model.predict(frame))
    model.partial_fit(np.array([[9, 7]]), [3.0])
    assert model.row_ids_.tolist() == [2**60, -5, 9]
    assert model.recommend(np.int64(9))[0].tolist() == [10**9]


@pytest.mark.parametrize("library", FRAMES)
def test_with_arrow_or_without_it_columns_are_read_alike(library, monkeypatch):
    columns, X, _ = ratings()
    frame = FRAMES[library](columns)

    def missing(self):
        raise ImportError

    found = [pairs_of(frame)]
    monkeypatch.setattr(narwhals.Series, "to_arrow", missing)
    for pairs in (*found, pairs_of(frame)):
        np.testing.assert_array_equal(np.column_stack([side.codes for side in pairs]), X)
        assert pairs.rows.ids.dtype == np.int64 and pairs.columns.ids.dtype == object


def test_objects_of_a_frame_are_looked_at_one_by_one():
    frame = pd.DataFrame({"p": pd.Series(["a"] * 200 + [7], dtype=object), "f": [1] * 201})
    with pytest.raises(ValueError, match="'a' in row 0 and 7 in row 200"):
        local().fit(frame, np.ones(201))


def test_a_few_pairs_and_many_are_looked_up_alike(monkeypatch):
    columns, _, y = ratings()
    model = local().fit(objects(columns), y)
    for X in (listed(columns)[:3], objects(columns)[:3], tuple(listed(columns)[:3])):
        few = model.predict(X)
        with monkeypatch.context() as patch:
            patch.setattr(ids_module, "FEW", 0)
            np.testing.assert_array_equal(few, model.predict(X))


def test_text_of_numpy_is_text():
    X = np.array([["ann", "b"], ["bob", "cc"]])
    model = local().fit(X, [1.0, 2.0])
    assert [type(one) for one in model.row_ids_] == [str, str]
    np.testing.assert_array_equal(model.predict([[np.str_("ann"), "b"]]), model.predict(X)[:1])
    assert model.recommend(np.str_("ann"))[0].tolist() == ["cc"]


# Growing ------------------------------------------------------------------------------------------


def test_new_ids_come_at_any_time():
    model = local()
    model.learn([["ann", "up"]], [4.0])
    model.partial_fit([["bob", "up"], ["ann", "jaws"]], [2.0, 5.0])
    assert model.row_ids_.tolist() == ["ann", "bob"]
    assert model.col_ids_.tolist() == ["up", "jaws"]
    films, values = model.recommend("bob")
    assert films.tolist() == ["jaws"]
    np.testing.assert_array_equal(values, model.predict([["bob", "jaws"]]))
    assert model.recommend("bob", exclude_seen=False)[0].size == 2


def test_ids_that_were_never_learned_get_the_fallback():
    columns, X, y = ratings()
    one, two = local().fit(objects(columns), y), local().fit(X, y)
    unknown = [[columns["person"][0], "new"], [-1, columns["film"][0]], [-1, "new"]]
    np.testing.assert_array_equal(
        one.predict(unknown, unknown="fallback"),
        two.predict([[0, 999], [999, 0], [999, 999]], unknown="fallback"),
    )
    with pytest.raises(ValueError, match=r"\(-1, 'new'\).*not learned that row.*fallback"):
        one.predict(unknown[2:])
    with pytest.raises(ValueError, match=r"'new'\).*not learned that column"):
        one.decision_function(unknown[:1])


def test_a_given_shape_leaves_room():
    model = steps(shape=(30, 20)).partial_fit([["ann", 7]], [1.0])
    assert model.shape_ == (30, 20) and model.row_ids_.tolist() == ["ann"]
    assert model.recommend("ann", exclude_seen=False)[0].tolist() == [7]
    model.partial_fit([["bob", 8]], [1.0])
    assert model.shape_ == (30, 20) and model.row_ids_.tolist() == ["ann", "bob"]


def test_what_is_prepared_is_not_learned():
    columns, X, y = ratings()
    one, two = steps().prepare(objects(columns), y), steps().prepare(X, y)
    assert one.row_ids_.size == 0
    one.partial_fit(objects(columns)[:50], y[:50])
    two.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(one.predict(objects(columns)[:50]), two.predict(X[:50]))


def test_fit_begins_anew_with_indices_or_other_ids():
    model = local().fit([["ann", "up"]], [1.0])
    model.fit([[3, 4]], [1.0])
    assert model.row_ids_ is None and model.shape_ == (4, 5)
    model.fit(pd.DataFrame({"a": [3], "b": ["x"]}), [1.0])
    assert model.row_ids_.tolist() == [3]


def test_observations_without_weight_bring_no_ids():
    X = [["ann", "up"], ["eve", "jaws"], ["bob", "up"]]
    model = local().fit(X, [1.0, 2.0, 3.0], sample_weight=[1.0, 0.0, 2.0])
    assert model.row_ids_.tolist() == ["ann", "bob"] and model.col_ids_.tolist() == ["up"]


def test_an_interrupted_fit_knows_the_ids_of_its_whole_rounds(monkeypatch):
    columns, _, y = ratings()
    model, played = steps(), []
    learn = type(model)._stream

    def stop(self, batch):
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(learn(self, batch))

    monkeypatch.setattr(type(model), "_stream", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(objects(columns), y)
    assert model.row_ids_.tolist() == list(dict.fromkeys(columns["person"][:40]))
    assert model.col_ids_.tolist() == list(dict.fromkeys(columns["film"][:40]))
    model.partial_fit([[5000, "film 1"]], [1.0])
    assert model.row_ids_[-1] == 5000


def test_threads_that_bring_new_ids_at_once():
    model = local().fit([["p", "f"]], [3.0])
    with ThreadPoolExecutor(4) as pool:
        work = [
            pool.submit(model.learn, [[f"p{k}", f"f{k}"], [f"p{k + 1}", "f"]], [1.0, 5.0])
            for k in range(200)
        ]
        for one in work:
            one.result()
    assert sorted(model.row_ids_) == sorted({"p", *(f"p{k}" for k in range(201))})
    assert model.shape_ == (len(model.row_ids_), len(model.col_ids_))
    rows = {row: k for k, row in enumerate(model.row_ids_)}
    for k in range(200):  # each person has seen exactly what they were taught
        seen = model._run.taken(np.array([rows[f"p{k}"]]))[1]
        films = {f"f{k}", "f"} if k else {"f0"}
        assert set(model.col_ids_[seen]) == films


def test_a_batch_that_was_numbered_before_others_learned_is_numbered_again():
    model = local().fit([["ann", "up"]], [3.0])
    batch = model._checked([["bob", "jaws"], ["ann", "jaws"]], [1.0, 2.0], None, False)
    model.partial_fit([["eve", "up"], ["bob", "tron"]], [4.0, 5.0])
    model._learn(batch)
    assert model.row_ids_.tolist() == ["ann", "eve", "bob"]
    assert model.col_ids_.tolist() == ["up", "tron", "jaws"]
    assert model.recommend("eve")[0].size == 2 and model.recommend("bob")[0].tolist() == ["up"]


# Saving -------------------------------------------------------------------------------------------


@MODELS
def test_ids_are_saved_and_learning_goes_on(make, tmp_path):
    columns, _, y = ratings()
    X = objects(columns)
    whole, model = make(), make()
    whole.learn(X[:100], y[:100], batch_size=20)
    model.learn(X[:100], y[:100], batch_size=20)
    save_checkpoint(model, tmp_path / "model.ckpt")
    ways = {
        "checkpoint": load_checkpoint(tmp_path / "model.ckpt"),
        "pickle": pickle.loads(pickle.dumps(model)),
        "copy": copy.deepcopy(model),
        "state": make().load_state(model.state_dict()),
    }
    expected = whole.learn(X[100:], y[100:], batch_size=20)
    for one in ways.values():
        np.testing.assert_array_equal(one.learn(X[100:], y[100:], batch_size=20), expected)
        np.testing.assert_array_equal(one.predict(X), whole.predict(X))
        assert one.row_ids_.tolist() == whole.row_ids_.tolist()
    assert model.n_observations_ == 100 and len(model.row_ids_) <= len(whole.row_ids_)


def test_a_model_file_speaks_ids(tmp_path):
    columns, _, y = ratings()
    X = objects(columns)
    model = local().fit(X, y)
    ofw.save(model, tmp_path / "model.ofw")
    loaded = ofw.load(tmp_path / "model.ofw")
    np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-5)
    assert loaded.recommend(X[0, 0], 3)[0].tolist() == model.recommend(X[0, 0], 3)[0].tolist()
    ofw.save(loaded, tmp_path / "again.ofw")
    assert ofw.load(tmp_path / "again.ofw").col_ids_.tolist() == model.col_ids_.tolist()
    with pytest.raises(ValueError, match="only predicts"):
        loaded.learn(X, y)


@pytest.mark.parametrize("text", ["\ud800", "a\0", "", "naïve 😀", "7", " 7"])
def test_text_comes_back_as_it_was(text, tmp_path):
    model = local().fit([[text, "a"], ["b", text]], [1.0, 2.0])
    ofw.save(model, tmp_path / "model.ofw")
    for one in (ofw.load(tmp_path / "model.ofw"), pickle.loads(pickle.dumps(model))):
        assert one.row_ids_.tolist() == [text, "b"]
        assert one.recommend("b")[0].tolist() == ["a"]


# Refusals -----------------------------------------------------------------------------------------

NO_IDS = {
    "none": ([["ann", 7], [None, 7]], r"row id must be text or a whole number.*None.*row 1"),
    "NaN": ([["ann", float("nan")]], "column id must be text or a whole number.*nan"),
    "a fraction": ([["ann", 1.5]], "column id must be .*1.5"),
    "a bool": ([["ann", True]], "column id must be .*True"),
    "bytes": ([["ann", b"7"]], "column id must be .*b'7'"),
    "a tuple": ([["ann", (1, 2)]], "(column id must be|X must have a row id)"),
    "two kinds": (
        [["ann", 7], ["bob", "7"]],
        "all text or all whole.* 7 in row 0 and '7' in row 1",
    ),
    "a huge number": ([["ann", 2**63]], f"fits 64 bits, got {2**63}"),
    "three columns": ([["ann", 7, 8]], r"row id and a column id.*\(1, 3\)"),
    "uneven": ([["ann", 7], ["bob"]], "row id and a column id"),
    "a missing cell": (pd.DataFrame({"p": ["a", None], "f": [1, 2]}), "missing, in row 1 .*'p'"),
    "nulls of Arrow": (pa.table({"p": ["a", "b"], "f": [1, None]}), "missing, in row 1 .*'f'"),
    "floats in a frame": (pl.DataFrame({"p": ["a"], "f": [1.5]}), "column id must be .*1.5"),
    "times": (pd.DataFrame({"p": pd.to_datetime(["2020-01-01"]), "f": [1]}), "row id must be"),
    "a wide frame": (
        pd.DataFrame({"p": ["a"], "f": [1], "stars": [5]}),
        "two columns.*3 .p, f, st",
    ),
    "an empty frame": (pd.DataFrame({"p": [], "f": []}, dtype=str), "empty"),
    "a lazy frame": (pl.LazyFrame({"p": ["a"], "f": [1]}), "collect"),
    "a column twice": (pd.DataFrame([["a", "b"]], columns=["p", "p"]), "unique column names"),
    "masked": (np.ma.masked_equal(np.array([["a", "b"]], dtype=object), "b"), "masked"),
}


@pytest.mark.parametrize("name", NO_IDS)
def test_what_is_no_id_is_refused_before_anything_changes(name):
    X, words = NO_IDS[name]
    y = np.ones(2 if name in ("none", "two kinds", "uneven") or "missing" in name else 1)
    model = local()
    for how in ("fit", "partial_fit", "learn"):
        with pytest.raises(ValueError, match=words):
            getattr(model, how)(X, y)
        assert not hasattr(model, "_run")
    model.learn([["ann", 7]], [3.0])
    before = pickle.dumps(model)
    for how in ("partial_fit", "learn"):
        with pytest.raises(ValueError, match=words):
            getattr(model, how)(X, y)
    with pytest.raises(ValueError, match=words):
        model.predict(X)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([["new", 8], ["ann", 9]], [1.0, np.nan], "y has nan in row 1"),
        ([["new", 8]], [1.0, 2.0], "1 rows but y has 2"),
        ([["new", "8"]], [1.0], "column ids of this model are whole numbers, and '8' is text"),
        ([[1, 8]], [1.0], "row ids of this model are text, and 1 is a whole number"),
        (np.array([[0, 0]]), [1.0], "row ids of this model are text"),
        ([["new", 8], ["newer", 9]], [1.0, 2.0], "3 row ids, but a matrix grows to 2 rows at most"),
    ],
)
def test_a_refused_batch_leaves_no_ids_behind(X, y, words):
    model = local(max_rows=2)
    model.learn([["ann", 7]], [3.0])
    before = pickle.dumps(model)
    for how in ("partial_fit", "learn"):
        with pytest.raises(ValueError, match=words):
            getattr(model, how)(X, y)
    assert pickle.dumps(model) == before


def test_a_fit_that_fails_keeps_the_model_with_its_ids():
    model = local().fit([["ann", "up"]], [3.0])
    with pytest.raises(ValueError, match="nan"):
        model.fit([[1, 2], [2, 3]], [1.0, np.nan])
    assert model.row_ids_.tolist() == ["ann"]


def test_a_round_that_fails_leaves_no_ids_behind(monkeypatch):
    model = local().fit([["ann", "up"]], [3.0])

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(type(model._run.learners[0]), "play", fail)
    with pytest.raises(MemoryError):
        model.partial_fit([["new", "jaws"]], [1.0])
    assert model.row_ids_.tolist() == ["ann"]


@pytest.mark.parametrize(
    "X", [[["ann", 7]], np.array([["a", "b"]]), pd.DataFrame({"p": [0], "f": [0]})]
)
def test_a_model_of_indices_refuses_ids(X):
    model = local().fit([[0, 0]], [1.0])
    for act in (
        model.predict,
        lambda X: model.learn(X, [1.0]),
        lambda X: model.partial_fit(X, [1.0]),
    ):
        with pytest.raises(ValueError, match=r"has learned indices.*fit with ids to begin anew"):
            act(X)


@pytest.mark.parametrize("row", ["eve", 7, None, True, ["ann", "eve"], 1.5])
def test_recommend_names_ids_that_it_knows(row):
    model = local().fit([["ann", "up"], ["bob", "up"]], [3.0, 1.0])
    with pytest.raises(ValueError, match="2 row ids that the model has learned, such as 'ann'"):
        model.recommend(row)


def test_without_narwhals_a_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match="pip install narwhals"):
        local().fit(pd.DataFrame({"p": ["a"], "f": ["b"]}), [1.0])
    assert local().fit([["a", "b"]], [1.0]).row_ids_.tolist() == ["a"]


# Forged states ------------------------------------------------------------------------------------


def forge(state, **change):
    state["run"]["ids"]["rows"].update(change)


FORGED = {
    "twice": (lambda s: forge(s, utf8=np.frombuffer(b"annann", np.uint8)), "twice"),
    "bytes that are no text": (lambda s: forge(s, utf8=np.full(6, 255, np.uint8)), "utf-8"),
    "ends beyond the text": (lambda s: forge(s, ends=np.array([3, 60])), "ends"),
    "ends that go back": (lambda s: forge(s, ends=np.array([7, 6])), "ends"),
    "ends that are no whole numbers": (
        lambda s: forge(s, ends=np.array([3.0, 6.0])),
        "end of each",
    ),
    "another kind": (lambda s: forge(s, kind="float"), "kind"),
    "numbers missing": (lambda s: forge(s, kind="int"), "missing"),
    "more than rows": (lambda s: forge(s, ends=np.array([2, 4, 6])), "3 row ids for 2 rows"),
    "one side": (lambda s: s["run"]["ids"].pop("columns"), "missing"),
    "no dict": (lambda s: s["run"].update(ids=[["ann"], ["up"]]), "dict"),
    "numbers twice": (
        lambda s: s["run"]["ids"]["columns"].update(ids=np.array([7, 7])),
        "twice",
    ),
    "numbers that are no whole numbers": (
        lambda s: s["run"]["ids"]["columns"].update(ids=np.array([7.0, 8.0])),
        "int64",
    ),
}


@pytest.mark.parametrize("past", [True, False])
@pytest.mark.parametrize("name", FORGED)
def test_forged_ids_are_refused(name, past):
    model = local().fit([["ann", 7], ["bob", 8]], [1.0, 2.0])
    state = model.state_dict(past=past)
    change, words = FORGED[name]
    change(state)
    with pytest.raises(ValueError, match=words):
        local().load_state(state)
