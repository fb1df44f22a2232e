"""Clicks: users and items as they came together."""

from __future__ import annotations

import pytest

from onlinefw.files import digest
from onlinefw.serve.new_models import new_model
from onlinefw.serve.replaying import replayed

from .client import Server
from .helpers import facts, learn, ratings


def clicks(start, stop):
    return [{k: v for k, v in one.items() if k != "value"} for one in ratings(start, stop)]


def test_clicks_are_learned_as_the_estimator_does(opened, tmp_path):
    engine = opened(tmp_path / "log", new="clicks")
    for k in range(0, 90, 30):
        learn(engine, clicks(k, k + 30))
    model = new_model("clicks", {})
    for one in clicks(0, 90):
        model.learn([[one["user"], one["item"]]])
    assert facts(engine)["digest"] == digest(model)
    engine.forget("u7", None).result(60)
    assert replayed(tmp_path / "log", [], None)["digest"] == facts(engine)["digest"]
    engine.close()
    opened.release()
    again = opened(tmp_path / "log")
    assert replayed(tmp_path / "log", [], None)["digest"] == facts(again)["digest"]


def test_recommendations_and_their_reasons(forks, tmp_path):
    server = Server("--new", "clicks", "--log", tmp_path / "log", forks=forks)
    server.ask("POST", "/learn", {"events": clicks(0, 60)})
    found = server.ask("POST", "/recommend", {"user": "u1", "n": 3})[1]["recommendations"]
    assert len(found) == 3
    item = found[0]["item"]
    reasons = server.ask("GET", f"/because?user=u1&item={item}")[1]["because"]
    total = sum(one["contribution"] for one in reasons)
    assert reasons[-1]["item"] is None and total == pytest.approx(found[0]["score"], rel=1e-4)
    body = {"items": ["i1", "i2"], "n": 2}
    assert len(server.ask("POST", "/recommend-for", body)[1]["recommendations"]) == 2
    assert server.ask("POST", "/recommend", {"user": "nobody"})[0] == 200  # what is popular
    assert server.ask("POST", "/label", {"id": "x", "value": 1})[0] == 404
    assert server.stop() == 0
