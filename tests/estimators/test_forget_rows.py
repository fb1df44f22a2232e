"""Somebody's rows are forgotten: F_t, its certificate and the state are without them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import onlinefw as ofw
from onlinefw.algorithms import NewtonSteps
from onlinefw.files import load_checkpoint, save_checkpoint
from onlinefw.past.host.rows import HostRows

N = 600


def rows(seed=0):
    """Return rows, targets and whose they are: one of twenty people."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 8))
    y = 3.0 + X[:, 0] - 2.0 * X[:, 1] + 0.3 * rng.standard_normal(N)
    return X, y, np.array([f"p{k}" for k in rng.integers(20, size=N)])


PASTS = {
    "all": {"loss": "gaussian"},  # of the square loss there are sums
    "all, fading": {"loss": "gaussian", "half_life": 150.0},
    "recent": {"past": "recent", "max_past": 400},
    "recent, fading": {"past": "recent", "max_past": 400, "half_life": 150.0},
    "reservoir": {"past": "reservoir", "max_past": 250},
    "reservoir, fading": {"past": "reservoir", "max_past": 250, "half_life": 150.0},
}


def regressor(name, **more):
    return ofw.FrankWolfeRegressor(**{"radius": 2.5, **PASTS[name], **more})


def weights_left(name, gone):
    """Return what each row counts when some are gone, by the definition of F_t."""
    w = np.ones(N)
    if "recent" in name:
        w[: N - 400] = 0.0
    if "fading" in name:
        w *= 2.0 ** (-np.arange(N)[::-1] / 150.0)
    return np.where(gone, 0.0, w)


def dense_facts(model, X, y, w):
    """Return mean loss and gap of a model, computed plainly from all rows and their weights."""
    z, w = X @ model.coef_ + model.intercept_, w / w.sum()
    loss = ofw.losses.Gaussian() if model.loss == "gaussian" else ofw.losses.Square()
    gradient = X.T @ (w * loss.derivative(z, y))
    return w @ loss.value(z, y), model.coef_ @ gradient + 2.5 * np.abs(gradient).max()


def arrays_and_texts(state):
    """Yield all that a state holds."""
    if isinstance(state, dict):
        for name, value in state.items():
            yield str(name)
            yield from arrays_and_texts(value)
    elif isinstance(state, (list, tuple)):
        for value in state:
            yield from arrays_and_texts(value)
    else:
        yield state


def holds(state, what):
    for one in arrays_and_texts(state):
        if isinstance(what, str):
            text = one.tobytes() if isinstance(one, np.ndarray) else str(one).encode()
            if what.encode() in text:
                return True
        elif isinstance(one, (np.ndarray, int, float)) and np.any(np.asarray(one) == what):
            return True
    return False


# F_t without them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PASTS if "reservoir" not in name])
def test_mean_loss_and_certificate_are_those_of_the_rows_left(name):
    X, y, who = rows()
    model = regressor(name)
    model.learn(X, y, ids=who)
    assert model.forget(["p3", "p11"]) is model
    w = weights_left(name, np.isin(who, ["p3", "p11"]))
    loss, gap = dense_facts(model, X, y, w)
    assert model.mean_loss_ == pytest.approx(loss, rel=1e-9)
    assert model.gap_ == pytest.approx(gap, abs=1e-9)
    assert model.gap_ <= 0.01 * abs(loss)  # corrected
    assert model.objective_.n_kept == np.count_nonzero(w)
    newest = model.objective_.total_weight / w.sum()  # what a row of weight 1 counts
    assert newest == pytest.approx(1.0 if "fading" not in name else 2.0 ** (N / 150), rel=1e-9)


@pytest.mark.parametrize("name", [name for name in PASTS if "reservoir" not in name])
def test_the_model_is_one_that_never_had_them(name):
    X, y, who = rows()
    y = np.where(who == "p3", y + 40.0, y)
    model = regressor(name)
    model.learn(X, y, ids=who)
    model.forget("p3")
    w = weights_left(name, who == "p3")
    never = ofw.FrankWolfeRegressor(radius=2.5).fit(X, y, w)  # with sums of the others' rows
    (found, gap), (best, other_gap) = (dense_facts(one, X, y, w) for one in (model, never))
    if model.loss == "gaussian":
        best -= 0.5 * w @ y**2 / w.sum()  # which the Gaussian loss leaves out
    assert abs(found - best) <= max(gap, other_gap) + 1e-9
    assert max(gap, other_gap) < 0.02
    np.testing.assert_allclose(model.coef_, never.coef_, atol=0.05)
    assert model.intercept_ == pytest.approx(never.intercept_, abs=0.05)


def test_the_certificate_does_not_grow_with_everybody_who_leaves():
    X, y, who = rows()
    model = regressor("recent", max_past=N).fit(X, y, ids=who)
    before = model.gap_
    for k in range(10):
        assert model.forget(f"p{k}").gap_ <= before + 1e-9


@pytest.mark.parametrize("name", ["reservoir", "reservoir, fading"])
def test_a_sample_keeps_all_its_others(name):
    X, y, who = rows()
    model = regressor(name, random_state=3)
    model.learn(X, y, ids=who)
    before = model.objective_.state_dict()["past"]
    model.forget("p3")
    after = model.objective_.state_dict()["past"]
    theirs = X[who == "p3", 0]
    kept = before["past"]["rows"]["data"][:, 0][before["past"]["w"] > 0.0]
    left = after["past"]["rows"]["data"][:, 0]
    np.testing.assert_array_equal(left, kept[~np.isin(kept, theirs)])
    assert len(left) == model.objective_.n_kept < len(kept)
    assert model.objective_.total_weight == after["past"]["w"].sum()
    model.learn(X, y, ids=who)  # its places fill again
    assert model.objective_.n_kept <= 250


# Nothing is left ----------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [2.5, "auto"])
@pytest.mark.parametrize("name", PASTS)
def test_no_value_and_no_id_of_theirs_is_in_the_state(name, radius):
    X, y, who = rows()
    for n in (80, N):  # the first rows of a race are kept beside the past
        X, y, who = X[:n].copy(), y[:n].copy(), who[:n].astype(object)
        theirs = who == "p3"
        y[theirs], who[theirs] = 7.125, "Rumpelstilzchen"
        model = regressor(name, radius=radius, scale=False)
        model.learn(X, y, ids=who)
        assert holds(model.state_dict(), "Rumpel") and holds(model.state_dict(), 7.125)
        model.forget("Rumpelstilzchen")
        state = model.state_dict()
        assert not holds(state, "Rumpel") and not holds(state, 7.125)
        assert not any(holds(state, value) for value in X[theirs, 0])
        assert holds(state, "p4")
        model.learn(X[:120], np.zeros(len(X[:120])), ids=np.full(len(X[:120]), "p4"))
        assert not holds(model.state_dict(), "Rumpel") and not holds(model.state_dict(), 7.125)
        X, y, who = rows()


def test_ids_may_be_whole_numbers():
    X, y, _ = rows()
    who = np.arange(N) % 7 + 987_654_000
    model = regressor("recent").fit(X, y, ids=who)
    assert holds(model.state_dict(), 987_654_003)
    model.forget(np.int64(987_654_003)).forget({987_654_001, 987_654_002})
    for one in (987_654_001, 987_654_002, 987_654_003):
        assert not holds(model.state_dict(), one)
    assert model.objective_.n_kept == np.count_nonzero(who[-400:] - 987_654_000 > 3) + sum(
        who[-400:] == 987_654_000
    )


def test_rows_that_left_the_window_take_their_ids_along():
    X, y, who = rows()
    model = regressor("recent", max_past=50)
    model.learn(X[:50], y[:50], ids=["early"] * 50)
    model.learn(X[50:300], y[50:300], ids=who[50:300])
    assert not holds(model.state_dict(), "early")
    with pytest.raises(ValueError, match=r"no rows are kept of the ids 'early': they were never"):
        model.forget("early")


# Going on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("radius", "n"), [(2.5, N), ("auto", N), ("auto", 70)])
@pytest.mark.parametrize("name", PASTS)
def test_pieces_equal_all_at_once_afterwards(name, radius, n):
    X, y, who = (column[:n] for column in rows())
    more, targets, whose = rows(1)
    models = [regressor(name, radius=radius) for _ in range(3)]
    for one in models:
        one.learn(X, y, ids=who)
        one.forget(["p1", "p5"])
    models[1] = regressor(name, radius=radius).load_state(models[1].state_dict())
    models[2] = pickle.loads(pickle.dumps(models[2]))
    whole = models[0].learn(more, targets, ids=whose)
    for one in models[1:]:
        cuts = ((0, 7), (7, 200), (200, N))
        parts = [slice(*cut) for cut in cuts]
        found = [one.learn(more[part], targets[part], ids=whose[part]) for part in parts]
        np.testing.assert_array_equal(np.concatenate(found), whole)
    for one in models:
        one.forget("p3")
    np.testing.assert_array_equal(models[1].coef_, models[0].coef_)
    np.testing.assert_array_equal(models[2].coef_, models[0].coef_)


def test_a_checkpoint_goes_on_and_a_model_file_does_not(tmp_path):
    X, y, who = rows()
    model = regressor("reservoir")
    model.learn(X, y, ids=who)
    model.forget("p3")
    save_checkpoint(model, tmp_path / "run.ofw")
    resumed = load_checkpoint(tmp_path / "run.ofw")
    resumed = resumed[0] if isinstance(resumed, tuple) else resumed
    np.testing.assert_array_equal(resumed.forget("p4").coef_, model.forget("p4").coef_)
    ofw.save(model, tmp_path / "model.ofw")
    with pytest.raises(ValueError, match="only predicts"):
        ofw.load(tmp_path / "model.ofw").forget("p5")


def test_counts_are_of_all_that_came_and_weights_of_what_is_left():
    X, y, who = rows()
    model = regressor("all")
    model.learn(X, y, ids=who)
    model.forget("p3")
    left = np.count_nonzero(who != "p3")
    assert model.n_observations_ == model.objective_.n_observations == N
    assert model.objective_.seen_weight == model.objective_.total_weight == left


def test_rows_without_ids_stay():
    X, y, who = rows()
    model = regressor("all")
    model.partial_fit(X[:200], y[:200])
    model.partial_fit(X[200:400], y[200:400], ids=who[200:400])
    model.partial_fit(X[400:], y[400:])
    model.forget(np.unique(who[200:400]))
    assert model.objective_.n_kept == 400


def test_who_comes_back_is_new():
    X, y, who = rows()
    model = regressor("all").fit(X, y, ids=who)
    for _ in range(2):
        model.forget("p3")
        assert model.objective_.n_kept == np.count_nonzero(who != "p3")
        model.partial_fit(X[who == "p3"], y[who == "p3"], ids=who[who == "p3"])


# Kinds of models ----------------------------------------------------------------------------------

KINDS = {
    "three classes": ofw.FrankWolfeClassifier(radius=3.0, loss="logistic"),
    "a race of radii": ofw.FrankWolfeClassifier(loss="logistic"),
    "away steps": ofw.FrankWolfeRegressor(radius=2.5, loss="gaussian", away_steps=True),
    "no corrective": ofw.FrankWolfeRegressor("l2", 2.5, loss="gaussian"),
    "one step a round": ofw.FrankWolfeRegressor.paper(2.5, loss="gaussian"),
    "matrices": ofw.FrankWolfeRegressor("trace", 3.0, coef_shape=(4, 2), loss="gaussian"),
    "a search": ofw.RadiusSearch(ofw.FrankWolfeRegressor(loss="gaussian"), [0.5, 2.5]),
    "a search of classes": ofw.RadiusSearch(ofw.FrankWolfeClassifier(loss="logistic"), [0.5, 2.5]),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_forgets_and_goes_on(name, sparse):
    X, y, who = rows()
    who = np.where(np.isin(who, ["p3", "p4"]), "Rumpelstilzchen", who)
    theirs = who == "Rumpelstilzchen"
    more = {}
    if "class" in name or "race" in name:
        y = np.digitize(y, [2.0, 4.0] if "three" in name else [3.0])
        more = {"classes": np.unique(y)}
    X = sp.csr_array(X) if sparse else X
    forgot, never = (pickle.loads(pickle.dumps(KINDS[name])) for _ in range(2))
    for part in np.array_split(np.arange(N), 10):
        forgot.partial_fit(X[part], y[part], ids=who[part], **more)
        part = part[~theirs[part]]
        never.partial_fit(X[part], y[part], **more)
    forgot.forget("Rumpelstilzchen")
    assert not holds(forgot.state_dict(), "Rumpel")
    forgot.correct(), never.correct()
    best = [getattr(one, "best_estimator_", one) for one in (forgot, never)]
    assert best[0].radius_ == pytest.approx(best[1].radius_, rel=0.05)  # the first rows suggest it
    for objective in np.ravel(best[0].objective_):
        assert objective.n_kept == np.count_nonzero(~theirs)
    if best[0].radius_ == best[1].radius_ and "three" not in name:  # one class's loss is told
        assert abs(best[0].mean_loss_ - best[1].mean_loss_) <= max(one.gap_ for one in best)
    predicted = forgot.learn(X, y, ids=who)
    assert np.isfinite(predicted).all()
    resumed = pickle.loads(pickle.dumps(forgot))
    forgot.forget("Rumpelstilzchen"), resumed.forget("Rumpelstilzchen")
    np.testing.assert_array_equal(resumed.predict(X), forgot.predict(X))


@pytest.mark.parametrize("name", ["away steps", "no corrective", "one step a round", "matrices"])
def test_without_a_corrective_a_round_is_played(name):
    X, y, who = rows()
    model = pickle.loads(pickle.dumps(KINDS[name])).partial_fit(X, y, ids=who)
    model.forget("p3")
    assert model.n_rounds_ == 2 and np.isnan(model.history_["loss"][-1])
    assert model.refine().n_rounds_ == 3


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["fit", "partial_fit", "learn"])
@pytest.mark.parametrize(
    ("more", "what"), [({}, "running sums"), ({"past": "summary"}, "a summary")]
)
def test_ids_are_refused_at_once_where_no_rows_are_kept(more, what, way):
    X, y, who = rows()
    model = ofw.FrankWolfeRegressor(radius=2.5, **more)
    refused = f'{what} of all rows cannot forget .* use past="recent" or past="reservoir" with'
    with pytest.raises(ValueError, match=refused):
        getattr(model, way)(X, y, ids=who)
    assert not hasattr(model, "coef_") and not hasattr(model, "n_features_in_")
    model.partial_fit(X, y)
    before = pickle.dumps(model.coef_)
    with pytest.raises(ValueError, match=refused):
        model.partial_fit(X, y, ids=who)
    with pytest.raises(ValueError, match=refused):
        model.forget("p3")
    assert model.n_observations_ == N and pickle.dumps(model.coef_) == before
    with pytest.raises(ValueError, match=refused):
        ofw.RadiusSearch(ofw.FrankWolfeRegressor(**more), [1.0, 2.0]).partial_fit(X, y, ids=who)


def test_unknown_ids_are_named_and_nothing_changes():
    X, y, who = rows()
    model = regressor("all").fit(X, y, ids=who)
    before, n = model.coef_, model.objective_.n_kept
    for ids, names in (
        (["p3", "eve"], "'eve'"),
        ([f"q{k}" for k in range(8)], "'q0', 'q1', 'q2', 'q3', 'q4' and 3 others"),
        (7, "7"),
    ):
        with pytest.raises(ValueError, match=f"no rows are kept of the ids {names}: "):
            model.forget(ids)
    for ids, why in (
        (np.unique(who), "no other rows would be left to learn from: call fit"),
        ([], "pass at least one"),
        (1.5, r"must be text or a whole number .* got 1\.5"),
        (None, "must be text or a whole number"),
        (["p3", 4], "all text or all whole numbers"),
    ):
        with pytest.raises(ValueError, match=why):
            model.forget(ids)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.objective_.n_kept == n
    with pytest.raises(ValueError, match="no rows with ids have been learned: pass ids="):
        regressor("all").fit(X, y).forget("p3")


def test_rows_that_no_longer_count_are_no_others():
    X, y, _ = rows()
    model = regressor("recent", max_past=50)
    model.learn(X[:40], y[:40], ids=["early"] * 40)
    model.learn(X[40:90], y[40:90], ids=["late"] * 50)
    with pytest.raises(ValueError, match="no other rows would be left"):
        model.forget("late")


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        (["p1"], "ids must have one id for each of the 5 rows, got shape"),
        ("p1", "ids must have one id for each of the 5 rows"),
        (["a", "b", 3, "c", "d"], "all text or all whole numbers"),
        ([1.5] * 5, "must be text or a whole number"),
        ([1, 2, 3, 4, 5], "the ids of this model are text, and 1 is not"),
    ],
)
def test_bad_ids_are_refused_before_anything_changes(ids, why):
    X, y, who = rows()
    model = regressor("all").fit(X, y, ids=who)
    for way in (model.partial_fit, model.learn):
        with pytest.raises(ValueError, match=why):
            way(X[:5], y[:5], ids=ids)
    assert model.n_observations_ == N == model.objective_.n_kept


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_ids_come_with_arrays_not_with_files(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y, who = rows()
    columns = {"y": y, **{f"x{k}": X[:, k] for k in range(8)}}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    files = ofw.distributed.ParquetRows([tmp_path / "rows.parquet"], target="y")
    with pytest.raises(ValueError, match="ids come with arrays, not with files"):
        regressor("all").fit(files, ids=who)
    model = regressor("all").fit(files)
    with pytest.raises(ValueError, match="ids come with arrays, not with files"):
        model.partial_fit(next(iter(files)), ids=who)
    model.partial_fit(X, y, ids=who).forget("p3")  # rows of files have no ids, and stay
    assert model.objective_.n_kept == N + np.count_nonzero(who != "p3")


def test_a_row_of_weight_zero_is_left_out_with_its_id():
    X, y, who = rows()
    model = regressor("all").fit(X, y, np.where(who == "p3", 0.0, 1.0), ids=who)
    with pytest.raises(ValueError, match="no rows are kept of the ids 'p3'"):
        model.forget("p3")


@pytest.mark.parametrize(
    ("owner", "verb"), [(NewtonSteps, "correct"), (HostRows, "keep"), (HostRows, "residuals")]
)
def test_a_failure_half_way_leaves_no_half_of_it(monkeypatch, owner, verb):
    X, y, who = rows()
    model = regressor("all").fit(X, y, ids=who)
    before = model.coef_

    def fails(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(owner, verb, fails)
        with pytest.raises(MemoryError):
            model.forget("p3")
    if verb == "keep":  # nothing had changed
        np.testing.assert_array_equal(model.coef_, before)
        assert model.forget("p3").gap_ >= 0.0
    else:
        with pytest.raises(ofw.BrokenModel):
            model.predict(X)


@pytest.mark.parametrize(
    ("max_past", "late"), [(400, False), (101, True)], ids=["somebody", "almost everybody"]
)
def test_with_several_half_lives_all_forget(max_past, late):
    X, y, ids = rows()
    somebody = "Rumpelstilzchen"
    ids = np.where(np.arange(N) >= N - 100 if late else ids == "p3", somebody, ids)
    X[ids == somebody, 4] = np.pi
    more = {"radius": 2.5, "past": "recent", "max_past": max_past}
    model = ofw.FrankWolfeRegressor(half_life="auto", **more)
    model.learn(X, y, ids=ids)
    assert holds(model.state_dict(), somebody)
    assert holds(model.state_dict(), np.pi)
    model.forget(somebody)
    assert not holds(model.state_dict(), somebody)
    assert not holds(model.state_dict(), np.pi)
    model.learn(X[:50], y[:50])
    assert np.isfinite(model.gap_)
    with pytest.raises(ValueError, match=f"no rows are kept of the ids '{somebody}'"):
        model.forget(somebody)
