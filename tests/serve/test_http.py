"""The endpoints: shapes, limits, who may ask, and sentences that name the field."""

from __future__ import annotations

import base64
import json
import socket
import time

import numpy as np
import pytest

import onlinefw as ofw

from .client import Server
from .helpers import rating, ratings


def asked(server, method, path, body=None, headers=(), status=None):
    """Ask with headers of one's own."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = server.connection()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(data)}"]
    head = "\r\n".join([*lines, *headers, "", ""])
    connection._socket.sendall(head.encode() + data)
    found, text = connection.receive()
    connection.close()
    assert status is None or found == status, text
    return found, json.loads(text) if text[:1] in b"{[" else text


def test_learning_answers_in_the_shape_that_is_described(server):
    event = {"id": "e1", "user": "u1", "item": "i9", "value": 4}
    assert server.ask("POST", "/learn", {"events": [event]}) == (
        200,
        {"learned": 1, "repeated": 0, "events": 1},
    )
    assert server.ask("POST", "/learn", {"events": [event]}) == (
        200,
        {"learned": 0, "repeated": 1, "events": 1},
    )
    status, said = server.ask("POST", "/predict", {"rows": [{"user": "u1", "item": "i9"}]})
    assert status == 200 and said["predictions"] == [4.0] and isinstance(said["id"], str)
    status, said = server.ask("GET", "/model")
    assert status == 200 and said["events"] == 1 and len(said["digest"]) == 64


def test_numbers_and_text_are_the_same_ids(server):
    events = [{"id": 1, "user": 5, "item": 7, "value": 2}]
    server.ask("POST", "/learn", {"events": events})
    events[0] = {"id": "1", "user": "5", "item": "7", "value": 2}
    assert server.ask("POST", "/learn", {"events": events})[1]["repeated"] == 1
    rows = [{"user": 5, "item": "7"}, {"user": "5", "item": 7}]
    one, other = server.ask("POST", "/predict", {"rows": rows})[1]["predictions"]
    assert one == other


def test_bad_events_are_refused_by_position_and_the_others_learned(server):
    events = ratings(0, 5)
    events[3]["value"] = "four"
    del events[4]["item"]
    status, said = server.ask("POST", "/learn", {"events": events})
    assert (status, said["learned"], said["events"]) == (200, 3, 3)
    assert [one["position"] for one in said["refused"]] == [3, 4]
    assert "value must be a number" in said["refused"][0]["error"]
    assert "'item' is missing" in said["refused"][1]["error"]


def test_an_atomic_request_is_learned_whole_or_not(server):
    events = ratings(0, 5)
    events[2]["user"] = None
    status, said = server.ask("POST", "/learn", {"events": events, "atomic": True})
    assert status == 422 and said["learned"] == 0 and said["refused"][0]["position"] == 2
    assert server.ask("GET", "/model")[1]["events"] == 0
    events[2]["user"] = "somebody"
    assert server.ask("POST", "/learn", {"events": events, "atomic": True})[1]["learned"] == 5


def test_json_lines_are_events_of_one_request(server):
    lines = b"\n".join([*(json.dumps(one).encode() for one in ratings(0, 3)), b"{no json", b""])
    header = ["Content-Type: application/x-ndjson"]
    _, said = asked(server, "POST", "/learn", lines, header, 200)
    assert said["learned"] == 3 and said["refused"][0]["position"] == 3
    rows = b'{"user":"u0","item":"i0"}\n{"user":"u7","item":"i5"}\n'
    assert len(asked(server, "POST", "/predict", rows, header, 200)[1]["predictions"]) == 2


def event_with(fields):
    return f'{{"events": [{{"user": "a", "item": "b", {fields}}}]}}'.encode()


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/learn", b"{", 400, "no JSON"),
        ("/learn", b"\xff\xfe{}", 400, "no JSON"),
        ("/learn", b'{"events": [NaN]}', 400, "NaN is not JSON"),
        ("/learn", b"[" * 100_000, 400, "nested too deeply"),
        ("/learn", b'{"events": ' + b"9" * 5000 + b"}", 400, "more digits than"),
        ("/learn", b"[]", 422, "must be an object"),
        ("/learn", b"{}", 422, "'events' is missing"),
        ("/learn", b'{"events": []}', 422, "empty"),
        ("/learn", b'{"events": 3}', 422, "must be a list"),
        ("/learn", b'{"events": [3]}', 422, "event 0: an event must be an object"),
        ("/learn", b'{"event": []}', 422, "'event' is no field"),
        ("/learn", event_with('"value": 1e16'), 422, "between -1e+15 and 1e+15"),
        ("/learn", event_with('"value": 1, "id": "forget:1"'), 422, "choose another"),
        ("/learn", event_with('"value": 1, "id": "label:1:0"'), 422, "choose another"),
        ("/learn", b'{"events": [], "atomic": 1}', 422, "empty"),
        ("/predict", b'{"rows": [{"user": "a"}]}', 422, "row 0: 'item' is missing"),
        ("/predict", b'{"rows": [{"user": "a", "item": "b"}]}', 409, "learned nothing yet"),
        ("/recommend", b"{}", 422, "'user'"),
        ("/recommend", b'{"user": "a", "n": 0}', 422, "'n' must be"),
        ("/forget", b"{}", 422, "'user' is missing"),
        ("/forget", b'{"user": "a"}', 404, "nothing is known of 'a'"),
        ("/label", b'{"id": "x"}', 422, "a label needs"),
        ("/label", b'{"id": "x", "value": 3}', 422, "no prediction 'x'"),
        ("/nothing", b"", 404, "no such endpoint"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(shared, path, body, status, says):
    found, said = asked(shared, "POST", path, body)
    assert found == status and says in said["error"], said
    assert "Traceback" not in said["error"] and "\n" not in said["error"]


@pytest.fixture(scope="module")
def shared(forks, tmp_path_factory):
    """A server that learns nothing."""
    path = tmp_path_factory.mktemp("shared") / "events.db"
    limits = ("--max-body", "200000", "--max-batch", "100")
    server = Server("--new", "matrix", "--log", path, *limits, forks=forks)
    yield server
    server.stop()


def test_values_that_no_model_can_hold_are_refused(shared):
    for value in ("1e400", "-1e400", "1e300", "true", "null", "[]", '"4"', "9" * 400):
        body = f'{{"events": [{{"user": "a", "item": "b", "value": {value}}}]}}'.encode()
        asked(shared, "POST", "/learn", body, status=422)
    for name in ('""', '"\\ud800"', "1.5", "true", "{}", '"' + "x" * 300 + '"'):
        body = f'{{"events": [{{"user": {name}, "item": "b", "value": 1}}]}}'.encode()
        asked(shared, "POST", "/learn", body, status=422)
    assert shared.ask("GET", "/model")[1]["events"] == 0


def test_limits_are_said(shared):
    assert asked(shared, "POST", "/learn", b" " * 300_000)[0] == 413
    many = {"events": ratings(0, 101)}
    status, said = shared.ask("POST", "/learn", many)
    assert status == 413 and "at most 100" in said["error"]
    several = {"users": ["a", "b"], "n": 501}  # answers that are not read stay in memory
    status, said = shared.ask("POST", "/recommend", several)
    assert status == 413 and "at most 1,000 items" in said["error"]
    assert asked(shared, "PUT", "/learn", b"{}")[0] == 405


def test_a_body_that_comes_in_chunks_has_the_same_limit(shared):
    connection = shared.connection()
    head = b"POST /learn HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection._socket.sendall(head)
    for _ in range(30):
        connection._socket.sendall(b"2710\r\n" + b" " * 10_000 + b"\r\n")
    connection._socket.sendall(b"0\r\n\r\n")
    assert connection.receive()[0] == 413
    connection.close()


def test_pages_of_other_sites_may_not_ask(shared):
    asked(shared, "GET", "/model", headers=["Origin: http://elsewhere.example"], status=403)
    asked(shared, "GET", "/model", headers=["Origin: http://127.0.0.1"], status=200)
    connection = shared.connection()
    connection._socket.sendall(b"GET /model HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n")
    assert connection.receive()[0] == 403
    connection.close()


def test_a_token_guards_everything_but_health(forks, tmp_path):
    (tmp_path / "token").write_text("open sesame\n", encoding="utf-8")
    args = ("--new", "matrix", "--log", tmp_path / "log", "--token", tmp_path / "token")
    server = Server(*args, forks=forks)
    basic = base64.b64encode(b"me:open sesame").decode()
    for path in ("/model", "/metrics", "/", "/openapi.json", "/events", "/nothing"):
        asked(server, "GET", path, status=401)
        asked(server, "GET", path, headers=["Authorization: Bearer guess"], status=401)
    asked(server, "POST", "/learn", {"events": ratings(0, 1)}, status=401)
    asked(server, "GET", "/health/live", status=200)
    asked(server, "GET", "/health/ready", status=200)
    asked(server, "GET", "/model", headers=["Authorization: Bearer open sesame"], status=200)
    asked(server, "GET", "/model", headers=[f"Authorization: Basic {basic}"], status=200)
    server.stop()


@pytest.mark.parametrize(
    ("scheme", "header", "status"),
    [
        ("Basic", "Origin: http://elsewhere.example", 403),
        ("Basic", "Sec-Fetch-Site: cross-site", 403),
        ("Basic", "Sec-Fetch-Site: same-site", 403),
        ("Basic", "Origin: http://127.0.0.1", 200),
        ("Basic", "Sec-Fetch-Site: same-origin", 200),
        ("Bearer", "Origin: http://elsewhere.example", 200),
    ],
)
def test_pages_of_other_sites_may_not_use_the_password_of_a_browser(
    guarded, scheme, header, status
):
    sent = {"Basic": base64.b64encode(b"me:sesame").decode(), "Bearer": "sesame"}[scheme]
    headers = [f"Authorization: {scheme} {sent}", header]
    asked(guarded, "POST", "/learn", {"events": ratings(0, 1)}, headers, status)
    asked(guarded, "GET", "/model", None, headers, 200)  # a link; its page cannot read the answer


@pytest.fixture(scope="module")
def guarded(forks, tmp_path_factory):
    """A server with a token."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text("sesame\n", encoding="utf-8")
    server = Server(
        "--new", "matrix", "--log", folder / "log", "--token", folder / "token", forks=forks
    )
    yield server
    server.stop()


def test_a_label_that_comes_later_is_joined_and_scored(server):
    server.ask("POST", "/learn", {"events": ratings(0, 40)})
    rows = [{"user": "u1", "item": "i1"}, {"user": "u2", "item": "i2"}]
    said = server.ask("POST", "/predict", {"rows": rows})[1]
    label = {"id": said["id"], "row": 1, "value": 5}
    assert server.ask("POST", "/label", label)[1]["learned"] == 1
    assert server.ask("POST", "/label", label)[1] == {"learned": 0, "repeated": 1, "events": 41}
    model = server.ask("GET", "/model")[1]
    assert model["served"]["events"] == 1
    assert model["served"]["mean"] == pytest.approx((5 - said["predictions"][1]) ** 2)
    status, said = server.ask("POST", "/label", {"labels": [{**label, "row": 7}]})
    assert status == 422 and "/predict had 2 rows" in said["error"]


def test_recommendations_leave_out_what_was_seen(server):
    server.ask("POST", "/learn", {"events": ratings(0, 60)})
    seen = {one["item"] for one in ratings(0, 60) if one["user"] == "u1"}
    found = server.ask("POST", "/recommend", {"user": "u1", "n": 3})[1]["recommendations"]
    assert len(found) == 3 and not seen & {one["item"] for one in found}
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    many = server.ask("POST", "/recommend", {"users": ["u1", "u2"], "n": 3})[1]
    assert many["recommendations"][0] == found
    only = server.ask("POST", "/recommend", {"user": "u1", "candidates": [found[2]["item"]]})[1]
    assert [one["item"] for one in only["recommendations"]] == [found[2]["item"]]
    assert server.ask("POST", "/recommend", {"user": "nobody"})[0] == 404


def test_reasons_name_the_user_or_the_item_that_is_not_known(server):
    asked(server, "POST", "/learn", {"events": ratings(0, 60)}, status=200)
    for query, why in [
        ("user=nobody&item=i5", "user must be one of the 11 user ids"),
        ("user=u7&item=nothing", "item must be one that"),
    ]:
        said = asked(server, "GET", f"/because?{query}", status=422)[1]
        assert said["error"].startswith(why)


def test_a_label_does_not_bring_back_whom_the_model_has_forgotten(server):
    asked(server, "POST", "/learn", {"events": ratings(0, 60)}, status=200)
    rows = [{"user": "u7", "item": "i5"}, {"user": "u1", "item": "i5"}]
    id_ = asked(server, "POST", "/predict", {"rows": rows}, status=200)[1]["id"]
    asked(server, "POST", "/forget", {"user": "u7"}, status=200)
    labels = {"labels": [{"id": id_, "row": k, "value": 3} for k in (0, 1)]}
    said = asked(server, "POST", "/label", labels, status=200)[1]
    assert said["learned"] == 1 and said["refused"][0]["position"] == 0
    assert "forgotten" in said["refused"][0]["error"]


def test_rows_by_column_name_are_refused_while_nothing_is_learned(forks, tmp_path):
    server = Server("--new", "regression", "--log", tmp_path / "log", forks=forks)
    said = asked(server, "POST", "/predict", {"rows": [{"x": {"a": 1}}]}, status=409)[1]
    assert "learned nothing yet" in said["error"]
    assert server.stop() == 0


def test_a_kind_of_model_without_a_verb_says_so(forks, tmp_path):
    model = ofw.FrankWolfeRegressor(radius=1.0).fit(np.eye(3), [1.0, 2.0, 3.0])
    ofw.save(model, tmp_path / "model.ofw")
    server = Server(tmp_path / "model.ofw", forks=forks)
    status, said = server.ask("POST", "/recommend", {"user": "a"})
    assert status == 404 and "of another kind" in said["error"]
    status, said = server.ask("POST", "/learn", {"events": [{"x": [1, 2, 3], "y": 1}]})
    assert status == 409 and "only predicts" in said["error"]
    found = server.ask("POST", "/predict", {"rows": [{"x": [1, 0, 0]}]})[1]["predictions"]
    assert found == model.predict(np.eye(3)[:1]).tolist()
    assert server.stop() == 0


def test_what_prometheus_is_told(server):
    server.ask("POST", "/learn", {"events": [*ratings(0, 30), {"user": 1}]})
    end, values = time.monotonic() + 20.0, {}
    while "ofw_certificate" not in values and time.monotonic() < end:  # nobody asks for it
        text = asked(server, "GET", "/metrics", status=200)[1].decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert float(values["ofw_events_total"]) == 30
    assert float(values["ofw_events_refused_total"]) == 1
    for name in ("progressive_loss", "progressive_loss_window", "certificate", "rank", "radius"):
        assert float(values[f"ofw_{name}"]) >= 0
    assert float(values["ofw_memory_bytes"]) > 1e7 and float(values["ofw_lag_events"]) == 0
    assert float(values['ofw_request_seconds_count{path="/learn"}']) == 1


def test_every_endpoint_is_described(server):
    described = asked(server, "GET", "/openapi.json", status=200)[1]["paths"]
    for path, methods in described.items():
        for method in methods:
            if path == "/events":
                continue
            status, said = asked(server, method.upper(), path, b"" if method == "get" else b"{}")
            assert status in (200, 422), (path, status, said)
    assert {"/learn", "/predict", "/label", "/recommend", "/recommend-for", "/because", "/forget",
            "/model", "/health/live", "/health/ready", "/metrics", "/events", "/openapi.json",
            "/"} == set(described)  # fmt: skip


def test_what_happens_is_told_every_second(server):
    server.ask("POST", "/learn", {"events": ratings(0, 10)})
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    connection.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    text = b""
    while text.count(b"data: ") < 4:  # how it went, how it is, what the model holds, how it is
        text += connection.recv(4096)
    told = dict(_message(one) for one in text.split(b"\n\n")[:3])
    assert told["message"]["events"] == 10 and told["message"]["progressive"] > 0
    assert told["model"]["facts"]["gap"] >= 0 and isinstance(told["course"], list)
    connection.close()


def _message(text):
    """Return name and content of a server-sent event, without the length of its chunk."""
    lines = [one for one in text.splitlines() if one.startswith((b"event: ", b"data: "))]
    name = lines[0].removeprefix(b"event: ").decode() if len(lines) > 1 else "message"
    return name, json.loads(lines[-1].removeprefix(b"data: "))


def test_the_end_finishes_what_was_asked_and_leaves_a_checkpoint(forks, tmp_path):
    path = tmp_path / "events.db"
    server = Server("--new", "matrix", "--log", path, forks=forks)
    connection = server.connection()
    connection.ask("POST", "/learn", {"events": ratings(0, 50)})
    listener = server.connection()
    listener.send("GET", "/events", b"")  # does not keep the server from ending
    connection.send("POST", "/learn", json.dumps({"events": ratings(50, 1050)}).encode())
    time.sleep(0.05)
    assert server.stop() == 0
    status, text = connection.receive()
    assert status == 200 and json.loads(text)["events"] == 1050
    assert path.with_name("events.db.ckpt").exists()
    again = Server("--log", path, forks=forks)
    assert again.ask("GET", "/model")[1]["events"] == 1050
    again.stop()


def test_ctrl_c_twice_loses_nothing_that_was_acknowledged(forks, tmp_path):
    import os
    import signal

    path = tmp_path / "events.db"
    server = Server("--new", "matrix", "--log", path, forks=forks)
    server.ask("POST", "/learn", {"events": ratings(0, 50)})
    digest = server.ask("GET", "/model")[1]["digest"]
    os.kill(server.pid, signal.SIGINT)
    time.sleep(0.02)
    os.kill(server.pid, signal.SIGINT)
    assert server.end() == 0
    again = Server("--log", path, forks=forks)
    said = again.ask("GET", "/model")[1]
    assert said["events"] == 50 and said["digest"] == digest
    again.stop()


def test_a_log_that_another_server_holds_is_refused_in_one_line(server, forks, tmp_path):
    with pytest.raises(RuntimeError, match="another process is writing it"):
        Server("--log", tmp_path / "events.db", forks=forks)
    assert server.ask("POST", "/learn", {"events": [rating(1)]})[0] == 200


@pytest.mark.parametrize(
    ("data", "status", "says"),
    [
        (b"GARBAGE\r\n\r\n", 400, "no HTTP"),
        (b"GET /model/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 404, "endpoint"),
    ],
)
def test_what_reaches_no_endpoint_is_answered_with_json(shared, data, status, says):
    with socket.create_connection(("127.0.0.1", shared.port), timeout=20) as connection:
        connection.sendall(data)
        answer = b"".join(iter(lambda: connection.recv(2**16), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status and b"content-type: application/json" in head.lower()
    assert says in json.loads(body)["error"]
