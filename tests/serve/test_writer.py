"""The writer: learned once, on disk before it is said, and the same again from the log."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw.files import digest, load_checkpoint, save_checkpoint
from onlinefw.serve.engine import Refusal
from onlinefw.serve.log import checkpoint_beside
from onlinefw.serve.opening import ServeOptions, open_engine
from onlinefw.serve.replaying import replayed

from .helpers import batch_of, facts, learn, rating, ratings


def plainly_learned(events, model=None):
    """Learn events one at a time, without a server."""
    model = ofw.FrankWolfeMatrixCompletion() if model is None else model
    for one in events:
        model.learn([[one["user"], one["item"]]], np.array([one["value"]]))
    return digest(model)


def test_events_are_learned_as_the_estimator_does(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    said = learn(engine, ratings(0, 300))
    assert said == {"learned": 300, "repeated": 0, "events": 300}
    assert facts(engine)["digest"] == plainly_learned(ratings(0, 300))


def test_both_copies_are_the_same(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    for k in range(0, 60, 20):
        learn(engine, ratings(k, k + 20))
    back = engine.ask(digest).result(60)
    with engine.reading() as front:
        assert digest(front) == back


def test_an_event_sent_twice_is_learned_once(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    learn(engine, ratings(0, 20))
    assert learn(engine, ratings(10, 30)) == {"learned": 10, "repeated": 10, "events": 30}
    assert learn(engine, [rating(40), rating(40)]) == {"learned": 1, "repeated": 1, "events": 31}
    expected = plainly_learned([*ratings(0, 30), rating(40)])
    assert facts(engine)["digest"] == expected
    engine.close()
    opened.release()
    again = opened(tmp_path / "log")
    assert learn(again, ratings(0, 30)) == {"learned": 0, "repeated": 30, "events": 31}
    assert facts(again)["digest"] == expected


def test_events_without_id_are_never_repeated(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    one = rating(1, id_=False)
    assert learn(engine, [one, one]) == {"learned": 2, "repeated": 0, "events": 2}


@settings(max_examples=12)
@given(data=st.data())
def test_a_replay_equals_the_process_bit_for_bit(tmp_path_factory, data):
    """Whatever the groups, repeats, refusals, forgotten users, checkpoints and restarts."""
    path = tmp_path_factory.mktemp("log") / "events.db"
    every = data.draw(st.sampled_from([7, 40, 10_000]), "checkpoint every")
    prune = data.draw(st.booleans(), "prune")
    users = [f"u{k}" for k in range(11)]

    def begin(held):
        options = ServeOptions(log=path, new="matrix", checkpoint_every=every, prune=prune)
        engine = open_engine(options, lambda _: None, held)
        engine.start()
        return engine

    held = ExitStack()
    engine = begin(held)
    for _ in range(data.draw(st.integers(1, 6), "acts")):
        act = data.draw(st.sampled_from(["learn", "learn", "learn", "forget", "restart"]))
        if act == "learn":
            start = data.draw(st.integers(0, 80), "start")
            learn(engine, ratings(start, start + data.draw(st.integers(1, 40), "length")))
        elif act == "forget":
            who = data.draw(st.sampled_from(users), "who")
            with suppress(Refusal):  # nothing is known of them
                engine.forget(who, None).result(60)
        else:
            before = facts(engine)
            engine.close()
            held.close()
            engine = begin(held)
            after = facts(engine)
            same = ("events", "digest", "progressive")
            assert [after.get(name) for name in same] == [before.get(name) for name in same]
    before = facts(engine)
    found = replayed(path, [], None)  # while the writer has it open
    assert found["digest"] == before["digest"] and found["events"] == before["events"]
    engine.close()
    held.close()


def test_a_replay_with_other_settings_is_a_backtest(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    learn(engine, ratings(0, 200))
    other = replayed(tmp_path / "log", ["half_life=50"], None)
    same = plainly_learned(ratings(0, 200), ofw.FrankWolfeMatrixCompletion(half_life=50))
    assert other["digest"] == same != facts(engine)["digest"]
    with pytest.raises(ValueError, match="name=value"):
        replayed(tmp_path / "log", ["halflife=50"], None)


def test_a_checkpoint_is_written_every_so_often_and_used(opened, tmp_path):
    path = tmp_path / "log"
    engine = opened(path, new="matrix", checkpoint_every=50)
    learn(engine, ratings(0, 60))
    engine.ask(lambda _: None).result(60)
    engine._wait_for_background()
    kept = load_checkpoint(checkpoint_beside(path))
    assert kept["serve"]["seq"] == 60
    assert digest(kept["model"]) == facts(engine)["digest"]


def test_a_checkpoint_of_another_version_is_made_anew_from_the_log(opened, tmp_path, monkeypatch):
    path = tmp_path / "log"
    engine = opened(path, new="matrix")
    learn(engine, ratings(0, 30))
    before = facts(engine)["digest"]
    engine.close()
    opened.release()
    with monkeypatch.context() as patch:
        patch.setattr("onlinefw.files.container.__version__", "0.0.1")
        save_checkpoint({"model": ofw.FrankWolfeMatrixCompletion()}, checkpoint_beside(path))
    again = opened(path)
    assert "0.0.1" in again.said[0] and facts(again)["digest"] == before


# Refusals -----------------------------------------------------------------------------------------


def test_an_event_that_the_model_refuses_is_refused_by_its_position(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix", settings=["max_rows=2"])
    events = [rating(k, user=user) for k, user in enumerate(["a", "b", "c", "a"])]
    said = learn(engine, events)
    assert said["learned"] == 3 and [one["position"] for one in said["refused"]] == [2]
    assert "max_rows" in said["refused"][0]["error"]
    good = [events[0], events[1], events[3]]
    model = ofw.FrankWolfeMatrixCompletion(max_rows=2)
    assert facts(engine)["digest"] == plainly_learned(good, model)
    assert replayed(tmp_path / "log", [], None)["digest"] == facts(engine)["digest"]


def test_of_an_atomic_batch_all_or_none_is_learned(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix", settings=["max_rows=2"])
    events = [rating(k, user=user) for k, user in enumerate(["a", "b", "c", "a"])]
    said = learn(engine, events, atomic=True)
    assert said["learned"] == 0 and len(said["refused"]) == 4 and said["events"] == 0
    assert learn(engine, events[:2], atomic=True)["learned"] == 2


def test_too_many_waiting_events_are_refused(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix", most_waiting=10)
    from threading import Event as Signal

    began, go_on = Signal(), Signal()
    engine.ask(lambda _: (began.set(), go_on.wait(30)))
    began.wait(30)
    first = engine.learn(batch_of(engine, ratings(0, 10)))
    with pytest.raises(Refusal, match="10 events wait") as caught:
        engine.learn(batch_of(engine, ratings(10, 11)))
    assert caught.value.status == 429
    go_on.set()
    assert first.result(60)["learned"] == 10
    assert learn(engine, ratings(10, 11))["learned"] == 1


def test_a_full_disk_loses_nothing_and_is_said(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    learn(engine, ratings(0, 50))
    before = facts(engine)["digest"]

    def fill(_):
        (pages,) = engine.log._sql.execute("PRAGMA page_count").fetchone()
        engine.log._sql.execute(f"PRAGMA max_page_count = {pages}")

    engine.ask(fill).result(60)
    with pytest.raises(Refusal, match="make room on the disk") as caught:
        for k in range(50, 2000, 50):
            learn(engine, ratings(k, k + 50))
            before = facts(engine)["digest"]
    assert caught.value.status == 507
    n = engine.learned.n_events
    assert facts(engine)["digest"] == before == plainly_learned(ratings(0, n))
    engine.ask(lambda _: engine.log._sql.execute("PRAGMA max_page_count = 100000")).result(60)
    assert learn(engine, ratings(n, n + 50))["learned"] == 50  # there is room again
    assert facts(engine)["digest"] == plainly_learned(ratings(0, n + 50))


def test_a_checkpoint_that_cannot_be_written_stops_nothing(opened, tmp_path, monkeypatch, capfd):
    engine = opened(tmp_path / "log", new="matrix", checkpoint_every=10)

    def full(*_):
        raise OSError(28, "No space left on device", "events.db.ckpt")

    with monkeypatch.context() as patch:
        patch.setattr("onlinefw.serve.writer.save_learned", full)
        learn(engine, ratings(0, 20))
        engine.ask(lambda _: None).result(60)
        assert learn(engine, ratings(20, 40))["learned"] == 20
        engine._wait_for_background()
    assert "no checkpoint was written" in capfd.readouterr().err


# Forgetting ---------------------------------------------------------------------------------------


def test_whoever_is_forgotten_was_never_there(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix", checkpoint_every=40)
    learn(engine, ratings(0, 200))
    before = facts(engine)["digest"]
    gone = sum(one["user"] == "u7" for one in ratings(0, 200))
    assert engine.forget("u7", None).result(60) == {"forgotten": gone, "events": 200}
    others = [one for one in ratings(0, 200) if one["user"] != "u7"]
    assert facts(engine)["digest"] == plainly_learned(others) != before
    for file in tmp_path.iterdir():
        assert b'"user":"u7"' not in file.read_bytes()
    assert digest(load_checkpoint(checkpoint_beside(tmp_path / "log"))["model"]) == plainly_learned(
        others
    )


def test_a_forgetting_that_was_cut_off_is_finished_by_the_next_start(opened, tmp_path, monkeypatch):
    log = tmp_path / "log"
    engine = opened(log, new="matrix", checkpoint_every=40)
    learn(engine, ratings(0, 200))
    engine.ask(lambda _: engine._wait_for_background()).result(60)
    with monkeypatch.context() as cut:
        cut.setattr(engine.log, "tidy", lambda: True)
        cut.setattr("onlinefw.serve.writer.rebuilt", lambda *_: 1 / 0)
        with pytest.raises(Refusal, match="restart"):
            engine.forget("u7", None).result(60)
        (tmp_path / "killed").mkdir()
        for file in tmp_path.glob("log*"):
            shutil.copy(file, tmp_path / "killed")
    killed = list((tmp_path / "killed").iterdir())
    assert any(b'"user":"u7"' in file.read_bytes() for file in killed)
    again = opened(tmp_path / "killed" / "log")
    assert not any(b"u7" in file.read_bytes() for file in killed if file.exists())
    others = [one for one in ratings(0, 200) if one["user"] != "u7"]
    assert facts(again)["digest"] == plainly_learned(others)


def test_whom_nobody_knows_cannot_be_forgotten(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    learn(engine, ratings(0, 10))
    with pytest.raises(Refusal, match="nobody") as caught:
        engine.forget("nobody", None).result(60)
    assert caught.value.status == 404
    assert learn(engine, ratings(10, 20))["events"] == 20


def test_a_model_that_the_log_goes_on_from_forgets_as_well(opened, tmp_path):
    base = ofw.FrankWolfeMatrixCompletion()
    base.learn([[one["user"], one["item"]] for one in ratings(0, 100)], np.arange(100) % 5 + 1.0)
    save_checkpoint(base, tmp_path / "base.ckpt")
    engine = opened(tmp_path / "log", model=tmp_path / "base.ckpt")
    learn(engine, ratings(100, 150))
    engine.forget("u3", None).result(60)
    base.forget("u3")
    others = [one for one in ratings(100, 150) if one["user"] != "u3"]
    assert facts(engine)["digest"] == plainly_learned(others, base)
    assert replayed(tmp_path / "log", [], None)["digest"] == facts(engine)["digest"]


# Kinds of models ----------------------------------------------------------------------------------


def rows(start, stop, names=False):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((stop, 3)).round(6)
    for k in range(start, stop):
        x = X[k].tolist()
        given = dict(zip(("a", "b", "c"), x, strict=True)) if names else x
        yield {"id": f"r{k}", "x": given, "y": round(x[0] - x[1], 6)}


@pytest.mark.parametrize("names", [False, True])
def test_rows_are_learned_as_the_estimator_does(opened, tmp_path, names):
    engine = opened(tmp_path / "log", new="regression")
    for k in range(0, 120, 40):
        learn(engine, list(rows(k, k + 40, names)))
    model = ofw.FrankWolfeRegressor()
    plain = list(rows(0, 120))
    model.learn(np.array([one["x"] for one in plain]), np.array([one["y"] for one in plain]))
    assert facts(engine)["digest"] == digest(model)
    if names:  # in any order, but all of them
        event = engine.face.event({"x": {"c": 1, "a": 2, "b": 3}, "y": 0})
        assert event.values[0] == [2.0, 3.0, 1.0]
        with pytest.raises(ValueError, match="lacks the column 'b'"):
            engine.face.event({"x": {"c": 1, "a": 2}, "y": 0})
    engine.close()
    opened.release()
    again = opened(tmp_path / "log")
    assert facts(again)["digest"] == digest(model) == replayed(tmp_path / "log", [], None)["digest"]
    learn(again, list(rows(120, 130, names)))


def test_labels_are_learned_as_the_estimator_does(opened, tmp_path):
    engine = opened(tmp_path / "log", new="classification", classes=["no", "yes"])
    events = [{**one, "y": "yes" if one["y"] > 0 else "no"} for one in rows(0, 100)]
    learn(engine, events[:1])
    learn(engine, events[1:])
    model = ofw.FrankWolfeClassifier()
    labels = np.array([one["y"] for one in events])
    model.learn(np.array([one["x"] for one in events]), labels, classes=["no", "yes"])
    assert facts(engine)["digest"] == digest(model)
    assert facts(engine)["progressive"]["mean"] < 0.5
    with pytest.raises(ValueError, match="none of the classes no, yes"):
        engine.face.event({"x": [1.0, 2.0, 3.0], "y": "perhaps"})


@pytest.mark.parametrize("labels", [False, True])
def test_a_search_of_radii_goes_on_from_its_checkpoint(opened, tmp_path, labels):
    plain = list(rows(0, 80))
    X, y = np.array([one["x"] for one in plain]), np.array([one["y"] for one in plain])
    y = np.where(y > 0, "yes", "no") if labels else y
    kind = ofw.FrankWolfeClassifier if labels else ofw.FrankWolfeRegressor
    model = ofw.RadiusSearch(kind(), radii=[1.0, 2.0]).fit(X[:60], y[:60])
    save_checkpoint(model, tmp_path / "search.ckpt")
    engine = opened(tmp_path / "log", model=tmp_path / "search.ckpt")
    later = zip(X[60:].tolist(), y[60:].tolist(), strict=True)
    learn(engine, [{"x": x, "y": target} for x, target in later])
    model.learn(X[60:], y[60:])
    assert facts(engine)["digest"] == digest(model)
    assert replayed(tmp_path / "log", [], None)["digest"] == digest(model)
    with engine.reading() as served:
        assert engine.face.predict(served, [(X[0].tolist(),)]) == model.predict(X[:1]).tolist()


def test_a_model_file_only_predicts(opened, tmp_path):
    model = ofw.FrankWolfeRegressor(radius=1.0).fit(np.eye(3), [1.0, 2.0, 3.0])
    ofw.save(model, tmp_path / "model.ofw")
    engine = opened(model=tmp_path / "model.ofw")
    assert engine.no_learning and facts(engine)["digest"] == digest(
        ofw.load(tmp_path / "model.ofw")
    )
    with engine.reading() as served:
        assert engine.face.predict(served, [([1.0, 0.0, 0.0],)]) == model.predict(np.eye(3)[:1])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "there is no such log"),
        ({"new": "classification"}, "--classes"),
        ({"new": "matrix", "settings": ["radius=-1"]}, "radius"),
        ({"new": "matrix", "settings": ["speed=1"]}, "--set takes name=value"),
        ({"settings": ["radius=1"]}, "--set goes with --new"),
    ],
)
def test_what_cannot_be_served_is_refused_before_there_is_a_log(opened, tmp_path, options, why):
    with pytest.raises((ValueError, OSError), match=why):
        opened(tmp_path / "log", **options)
    assert not (tmp_path / "log").exists()


def test_an_empty_classifier_without_classes_is_refused_before_there_is_a_log(opened, tmp_path):
    save_checkpoint(ofw.FrankWolfeClassifier(), tmp_path / "empty.ckpt")
    with pytest.raises(ValueError, match="classes"):
        opened(tmp_path / "log", model=tmp_path / "empty.ckpt")
    (tmp_path / "log").touch()  # which holds nothing, so it says no classes either
    with pytest.raises(ValueError, match="--classes ham,spam"):
        opened(tmp_path / "log", new="classification")


def test_a_log_has_one_writer_and_keeps_its_model(opened, tmp_path):
    path = tmp_path / "log"
    engine = opened(path, new="matrix", settings=["half_life=100"])
    learn(engine, ratings(0, 5))
    with pytest.raises(BlockingIOError, match="another process is writing it"):
        opened(path)
    engine.close()
    opened.release()
    for options in ({"new": "regression"}, {"new": "matrix", "settings": ["half_life=9"]}):
        with pytest.raises(ValueError, match=r"log of a model of kind|began with the settings"):
            opened(path, **options)
        opened.release()
    assert opened(path, new="matrix").learned.n_events == 5


def test_a_follower_answers_from_the_same_log(opened, tmp_path):
    import time

    path = tmp_path / "log"
    engine = opened(path, new="matrix")
    learn(engine, ratings(0, 30))
    follower = opened(follow=path)
    assert follower.no_learning and follower.learned.n_events == 30

    def caught_up():
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if facts(follower)["digest"] == facts(engine)["digest"]:
                return True
            time.sleep(0.05)
        return False

    learn(engine, ratings(30, 90))
    assert caught_up() and follower.lag()["events"] == 0
    engine.forget("u7", None).result(60)
    assert caught_up()
    learn(engine, ratings(90, 100))
    assert caught_up() and facts(follower)["events"] == 100
