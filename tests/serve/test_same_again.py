"""Every kind of model: the log makes it again bit for bit, and what goes wrong leaves no trace."""

from __future__ import annotations

import sqlite3
import time

import numpy as np
import pytest

from onlinefw.serve.engine import Refusal
from onlinefw.serve.log import EventLog
from onlinefw.serve.pending import Pending
from onlinefw.serve.replaying import replayed

from .helpers import batch_of, facts, learn, ratings

KINDS = [
    ("matrix", ["half_life=30"]),
    ("matrix", ["half_life=auto"]),
    ("clicks", ["half_life=30"]),
    ("regression", ["half_life=30"]),
    ("regression", ["half_life=auto"]),
    ("classification", ["half_life=30"]),
]


def events_of(kind, start, stop):
    if kind == "matrix":
        return ratings(start, stop)
    if kind == "clicks":
        return [{k: v for k, v in one.items() if k != "value"} for one in ratings(start, stop)]
    X = np.random.default_rng(3).standard_normal((stop, 3)).round(6)
    found = []
    for k in range(start, stop):
        y = float(X[k, 0] - X[k, 1])
        y = y if kind == "regression" else ("yes" if y > 0 else "no")
        found.append({"id": f"r{k}", "user": f"u{k % 5}", "x": X[k].tolist(), "y": y})
    return found


@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_a_replay_is_the_same_however_events_were_grouped(opened, tmp_path, kind, settings):
    options = {"new": kind, "settings": settings, "checkpoint_every": 20}
    if kind == "classification":
        options["classes"] = ["no", "yes"]
    engine = opened(tmp_path / "log", **options)
    start = 0
    for n in (1, 3, 1, 30, 2, 9, 40):
        learn(engine, events_of(kind, start, start + n))
        start += n
        assert replayed(tmp_path / "log", [], None)["digest"] == facts(engine)["digest"]
    engine.forget("u3", None).result(60)
    learn(engine, events_of(kind, start, start + 10))
    before = facts(engine)
    assert replayed(tmp_path / "log", [], None)["digest"] == before["digest"]
    engine.close()
    opened.release()
    again = facts(opened(tmp_path / "log"))
    assert (again["digest"], again["events"]) == (before["digest"], before["events"])


def test_followers_keep_up_with_a_log_that_is_pruned(opened, tmp_path):
    path = tmp_path / "log"
    engine = opened(path, new="matrix", checkpoint_every=10, prune=True)
    followers = [opened(follow=path), opened(follow=path)]
    for k in range(0, 400, 5):
        learn(engine, ratings(k, k + 5))
        if k == 200:
            engine.forget("u7", None).result(60)
    for follower in followers:
        end = time.monotonic() + 30
        while follower.learned.n_events < 400 and time.monotonic() < end:
            time.sleep(0.05)
        assert facts(follower)["digest"] == facts(engine)["digest"]


def test_whoever_reads_sees_one_time_whatever_is_erased_meanwhile(tmp_path):
    log = EventLog.create(tmp_path / "log", {"kind": "matrix", "settings": {}})
    log.append([(f"e{k}", "learn", f"u{k}", "{}") for k in range(4)])
    log.commit()
    reader = EventLog.read(tmp_path / "log")

    def whole():
        return [one.body for piece in reader.after(0) for one in piece]

    with reader.at_one_time():
        log.erase("u1", None, False, None)
        log.commit()
        log.prune(3, b"a checkpoint")
        assert whole() == ["{}"] * 4 and reader.base() is None and "pruned" not in reader.facts
        log._sql.execute("PRAGMA busy_timeout = 10")
        assert not log.tidy()  # what was erased is still being read
    assert log.tidy()
    assert whole()[:3] == [None] * 3 and reader.base() == b"a checkpoint"


# What goes wrong ----------------------------------------------------------------------------------


def test_whoever_leaves_does_not_stop_the_one_who_learns(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    asked = engine.ask(lambda _: time.sleep(0.2))
    learned = engine.learn(batch_of(engine, ratings(0, 5)))
    assert not learned.cancel() and not asked.cancel()
    assert learn(engine, ratings(5, 10))["events"] == 10 and engine.is_alive


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_has_ended_is_said(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")

    def fails():
        raise SystemExit

    engine._turn = fails
    with pytest.raises(Refusal, match="restart the server"):
        for _ in range(500):
            engine.ask(lambda _: None)
            time.sleep(0.01)
    engine.log.close()


def test_a_row_that_is_refused_decides_no_columns(opened, tmp_path):
    engine = opened(tmp_path / "log", new="regression", settings=["loss=poisson"])
    said = learn(engine, [{"x": {"a": 1.0}, "y": -1.0}])
    assert said["learned"] == 0 and len(said["refused"]) == 1
    assert learn(engine, [{"x": {"b": 1.0, "c": 2.0}, "y": 1.0}])["learned"] == 1
    assert engine.face.columns == ["b", "c"] == EventLog.read(tmp_path / "log").facts["columns"]


def test_a_row_that_could_not_be_kept_decides_no_columns(opened, tmp_path, monkeypatch):
    engine = opened(tmp_path / "log", new="regression")

    def full():
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(engine.log, "commit", full)
        with pytest.raises(Refusal, match="nothing of this was learned"):
            learn(engine, [{"x": {"a": 1.0}, "y": 1.0}])
    assert learn(engine, [{"x": {"b": 1.0, "c": 2.0}, "y": 1.0}])["learned"] == 1
    assert engine.face.columns == ["b", "c"] == EventLog.read(tmp_path / "log").facts["columns"]


def test_columns_and_labels_that_come_later_are_refused_in_one_sentence(opened, tmp_path):
    engine = opened(tmp_path / "log", new="classification", classes=["ham", "spam"])
    learn(engine, [{"x": {"a": 1.0}, "y": "ham"}])
    for event, why in [
        ({"x": {"a": 1.0, "later": 2.0}, "y": "ham"}, "column 'later', .*: leave it out"),
        ({"x": {"a": 1.0}, "y": "egg"}, "'egg', which is none of the classes ham, spam"),
        ({"x": [1e300], "y": "ham"}, r"between -1e\+15 and 1e\+15"),
    ]:
        with pytest.raises(ValueError, match=why):
            engine.face.event(event)


def test_the_id_of_an_event_is_no_id_of_forgetting(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    learn(engine, ratings(0, 20))
    gone = engine.forget("u7", "e1").result(60)
    assert gone["forgotten"] > 0
    again = engine.forget("u7", "e1").result(60)
    assert again["forgotten"] == 0 and again["repeated"] == 1


def test_no_event_has_an_id_that_makes_a_forgetting_look_done(opened, tmp_path):
    engine = opened(tmp_path / "log", new="matrix")
    with pytest.raises(ValueError, match="'forget:1', as ids of the server begin"):
        engine.face.event({"id": "forget:1", "user": "u7", "item": "i1", "value": 1.0})


def test_rows_that_were_pruned_cannot_be_forgotten_and_that_is_said(opened, tmp_path):
    engine = opened(tmp_path / "log", new="regression", checkpoint_every=10, prune=True)
    learn(engine, events_of("regression", 0, 30))
    engine.ask(lambda _: None).result(60)
    engine._wait_for_background()
    learn(engine, events_of("regression", 30, 35))
    with pytest.raises(Refusal, match="serve without --prune") as caught:
        engine.forget("u3", None).result(60)
    assert caught.value.status == 409


def test_whoever_is_killed_while_making_a_log_can_make_it_again(opened, tmp_path):
    with sqlite3.connect(tmp_path / "log") as begun:
        begun.execute("PRAGMA journal_mode = WAL")
    begun.close()
    assert (tmp_path / "log").stat().st_size > 0
    assert learn(opened(tmp_path / "log", new="matrix"), ratings(0, 5))["events"] == 5


def test_rows_that_are_dropped_make_room_for_predictions():
    pending = Pending(most=9)
    one = pending.put([("ann", "Up"), ("bob", "Up")], [1.0, 2.0])
    pending.drop("ann")
    pending.put([("cid", "Up")], [3.0])
    assert pending.get(one, 0) is None and pending.get(one, 1) == (("bob", "Up"), 2.0)
    pending.put([("cid", "Up")], [3.0])
    assert pending.get(one, 1) is None and len(pending) == 2


def test_long_ids_leave_less_room_for_predictions():
    short, long = Pending(most=1000), Pending(most=1000)
    for _ in range(1000):
        short.put([("u", "i")], [1.0])
        long.put([("u" * 256, "i" * 256)], [1.0])
    assert len(long) * 3 < len(short) <= 334
