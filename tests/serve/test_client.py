"""The client: the estimators' verbs, and every event learned exactly once whatever happens."""

from __future__ import annotations

import http.server
import json
import random
import socket
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onlinefw as ofw
from onlinefw.client import NotAcknowledged
from onlinefw.files import digest
from onlinefw.serve.replaying import replayed

from .client import Server
from .helpers import ratings


def port_to_come_back_to():
    """Return a free port that no outgoing connection is given while the server is down."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


def pairs_of(events):
    return [[one["user"], one["item"]] for one in events], [one["value"] for one in events]


@pytest.fixture
def client(server):
    with ofw.Client(f"http://127.0.0.1:{server.port}", patience=10) as client:
        yield client


@pytest.fixture
def of_kind(forks, tmp_path):
    """Begin a server of some kind; return its client."""
    begun = []

    def begin(kind, *args):
        server = Server("--new", kind, "--log", tmp_path / kind, *args, forks=forks)
        begun.append(server)
        return ofw.Client(f"http://127.0.0.1:{server.port}", patience=10)

    yield begin
    for server in begun:
        server.stop()


# The verbs ----------------------------------------------------------------------------------------


def test_the_server_learns_what_the_estimator_would(client):
    X, y = pairs_of(ratings(0, 80))
    assert client.learn(X, y) == {"learned": 80, "repeated": 0, "events": 80}
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(X[:1], np.array(y[:1]))
    model.learn(X[1:], np.array(y[1:]))
    assert client.digest == digest(model) and client.model()["events"] == 80
    np.testing.assert_array_equal(client.predict(X[:5]), model.predict(X[:5]))
    items, scores = client.recommend("u1", 3)
    expected = model.recommend("u1", 3)
    assert items.tolist() == expected[0].tolist()
    np.testing.assert_array_equal(scores, expected[1])
    reasons, shares = client.because("u1", items[0])
    assert reasons[-1] is None and shares.sum() == pytest.approx(scores[0], rel=1e-4)
    other = client.recommend_for(["i1", "i2"], 2, values=[5, 1])[0]
    assert other.tolist() == model.recommend_for(["i1", "i2"], [5, 1], 2)[0].tolist()


def test_recommendations_for_many_are_padded_as_those_of_estimators(client):
    client.learn([["a", "x"], ["b", "y"], ["b", "z"], ["c", "x"]], [1, 2, 3, 4])
    items, scores = client.recommend(["a", "b"], 2, candidates=["x", "y", "z"])
    assert items.shape == scores.shape == (2, 2)
    assert set(items[0]) == {"y", "z"} and items[1].tolist() == ["x", None]
    assert scores[1, 1] == -np.inf


def test_names_of_events_make_them_idempotent(client):
    X, y = pairs_of(ratings(0, 20))
    ids = [f"mine-{k}" for k in range(20)]
    client.learn(X[:15], y[:15], ids[:15])
    assert client.learn(X, y, ids) == {"learned": 5, "repeated": 15, "events": 20}
    assert client.learn(X, y)["learned"] == 20  # new names: new events


def test_frames_arrays_and_lists_are_the_same(client):
    users, items, stars = [1, 2, 3], [7, 7, 8], [1.0, 2.0, 3.0]
    ids = ["a", "b", "c"]
    frame = {"user": users, "item": items}
    client.learn(np.column_stack((users, items)), np.array(stars), np.array(ids))
    for same in (pd.DataFrame(frame), pl.DataFrame(frame), np.column_stack((users, items)) * 1.0):
        assert client.learn(same, pd.Series(stars), ids)["repeated"] == 3
        assert (
            client.predict(same).tolist() == client.predict([["1", "7"], [2, 7], [3, "8"]]).tolist()
        )


def test_clicks_have_no_values(of_kind):
    client = of_kind("clicks")
    X, y = pairs_of(ratings(0, 60))
    assert client.learn(X)["learned"] == 60
    assert client.recommend_for(["i1"], 2)[0].shape == (2,)
    with pytest.raises(ValueError, match="clicks"):
        client.learn(X, y)


def test_rows_are_sent_by_column_name(of_kind):
    client = of_kind("regression")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.5, 0.25, 1.0]})
    assert client.learn(frame, [1.0, 2.0, 3.0])["learned"] == 3
    found = client.predict(frame[["b", "a"]])
    assert found.tolist() == client.predict(frame.to_numpy()).tolist()
    assert found.tolist() == client.predict(frame.to_dict("records")).tolist()
    with pytest.raises(ValueError, match="column 'c'"):
        client.predict([{"a": 1.0, "b": 2.0, "c": 3.0}])


def test_labels_that_come_later_are_learned_once(client):
    X, y = pairs_of(ratings(0, 30))
    client.learn(X, y)
    found, ids = client.predict(X[:4], return_ids=True)
    assert found.shape == (4,) and len(ids) == 4
    assert client.label(ids, y[:4]) == {"learned": 4, "repeated": 0, "events": 34}
    assert client.label(ids, y[:4]) == {"learned": 0, "repeated": 4, "events": 34}
    assert client.model()["served"]["events"] == 4
    with pytest.raises(ValueError, match="never made"):
        client.label([("nonsense", 0)], [1.0])


def test_somebody_is_forgotten(client):
    X, y = pairs_of(ratings(0, 30))
    client.learn(X, y)
    assert client.forget("u7")["forgotten"] == sum(user == "u7" for user, _ in X)
    with pytest.raises(ValueError, match="nothing is known"):
        client.forget("nobody")


# Errors -------------------------------------------------------------------------------------------


def test_what_is_wrong_is_said_before_anything_is_sent(client):
    for X, y, ids, why in [
        ([["a", "x"]], None, None, "y is missing"),
        ([["a", "x"]], [1, 2], None, "y has 2 values for 1 rows"),
        ([["a", "x"]], [1], ["e", "f"], "ids has 2 values"),
        ([["a", "x", "z"]], [1], None, "two columns"),
        ([["a", "x"]], [np.nan], None, "event 0 has NaN"),
        ([["a", {1}]], [1], None, "cannot be sent"),
        (np.ones(3), [1], None, "two dimensions"),
    ]:
        with pytest.raises(ValueError, match=why):
            client.learn(X, y, ids)
    assert client.model()["events"] == 0
    with pytest.raises(ValueError, match="url must be like"):
        ofw.Client("127.0.0.1:8080")


def test_refused_events_are_named_by_their_place_in_X(client):
    X, y = pairs_of(ratings(0, 30))
    y[17] = 1e30
    client._most = 10  # so that it comes in the second request
    with pytest.raises(ValueError, match=r"1 of 30 .* position 17: value must be between"):
        client.learn(X, y, range(30))
    said = client.learn(X, y, range(30), refused="return")
    assert said["repeated"] == 29 and [one["position"] for one in said["refused"]] == [17]
    said = client.learn(X[:1], [1e30], refused="return")
    assert said["learned"] == 0 and len(said["refused"]) == 1


def test_batches_are_cut_to_what_the_server_takes(of_kind):
    client = of_kind("matrix", "--max-batch", "16", "--max-body", "1024")
    X, y = pairs_of(ratings(0, 100))
    assert client.learn(X, y)["events"] == 100
    assert client.predict(X).shape == (100,)
    assert client.recommend([user for user, _ in X], 2)[0].shape == (100, 2)
    with pytest.raises(ValueError, match="1,024 bytes"):
        client.recommend("u1", candidates=["x" * 200] * 20)


def test_a_token_is_sent(of_kind, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    client = of_kind("clicks", "--token", tmp_path / "token")
    with pytest.raises(ValueError, match="send the token"):
        client.model()
    assert ofw.Client(client.url, "secret").learn([["a", "x"]])["learned"] == 1


def test_a_server_that_is_not_there_is_a_connection_error():
    began = time.monotonic()
    with pytest.raises(ConnectionError, match="http://127"):
        ofw.Client("http://127.0.0.1:9", patience=0.5).model()
    assert time.monotonic() - began < 10


# Trouble ------------------------------------------------------------------------------------------


class _Busy(http.server.BaseHTTPRequestHandler):
    """Says that it is busy, then breaks off, then answers."""

    asked: list[float]
    answers = iter(())

    def do_GET(self):
        self.asked.append(time.monotonic())
        status, headers, body = next(self.answers)
        if not status:
            self.connection.close()
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.slow
def test_a_busy_server_is_asked_again_when_it_said():
    good = json.dumps({"digest": "abc"}).encode()
    _Busy.asked = []
    _Busy.answers = iter([
        (429, {"Retry-After": "1"}, b'{"error": "too many"}'),
        (503, {}, b"no JSON"),
        (0, {}, b""),
        (200, {}, good),
    ])  # fmt: skip
    with http.server.HTTPServer(("127.0.0.1", 0), _Busy) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            client = ofw.Client(f"http://127.0.0.1:{served.server_port}")
            assert client.digest == "abc"
        finally:
            served.shutdown()
            thread.join()
    assert len(_Busy.asked) == 4 and _Busy.asked[1] - _Busy.asked[0] >= 1.0


@pytest.mark.slow
def test_a_server_killed_again_and_again_learns_everything_once(forks, tmp_path):
    path, chance = tmp_path / "events.db", random.Random(1)
    options, port = ("--log", path, "--checkpoint-every", "70"), port_to_come_back_to()
    server = Server("--new", "matrix", *options, forks=forks, port=port)
    over, kills, failed = threading.Event(), 0, []

    def kill_and_restart():
        nonlocal server, kills
        try:
            while not over.wait(chance.uniform(0.02, 0.3)):
                server.kill()
                kills += 1
                server = Server(*options, forks=forks, port=port)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=kill_and_restart)
    thread.start()
    client = ofw.Client(f"http://127.0.0.1:{port}")
    client._most = 7
    X, y = pairs_of(ratings(0, 4000))
    n = 0
    try:
        while n < 4000 and (kills < 8 or n < 1000) and not failed:
            said = client.learn(X[n : n + 200], y[n : n + 200])
            assert said["learned"] + said["repeated"] == 200
            n += 200
            assert said["events"] == n
    finally:
        over.set()
        thread.join()
    model = ofw.FrankWolfeMatrixCompletion()
    model.learn(X[:1], np.array(y[:1]))
    model.learn(X[1:n], np.array(y[1:n]))
    assert kills >= 5 and not failed
    assert client.digest == digest(model) == replayed(path, [], None)["digest"]
    server.stop()


def test_whoever_gave_up_can_send_the_same_again(forks, tmp_path):
    path = tmp_path / "events.db"
    port = port_to_come_back_to()
    server = Server("--new", "matrix", "--log", path, forks=forks, port=port)
    client = ofw.Client(f"http://127.0.0.1:{server.port}", patience=0.3)
    X, y = pairs_of(ratings(0, 40))
    client.learn(X[:10], y[:10], range(10))
    server.kill()
    with pytest.raises(NotAcknowledged, match="0 of 40 events are acknowledged") as caught:
        client.learn(X, y, range(40))
    server = Server("--log", path, forks=forks, port=port)
    said = client.learn(X, y, caught.value.ids)
    assert said == {"learned": 30, "repeated": 10, "events": 40}
    server.stop()
