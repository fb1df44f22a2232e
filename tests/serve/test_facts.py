"""What takes long to say about a model is found out on its own, now and then."""

from __future__ import annotations

import time

import pytest

from onlinefw.serve import engine as engines
from onlinefw.serve.replaying import replayed

from .helpers import facts, learn, ratings


def wait_until(is_so, seconds=20.0):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def counted(monkeypatch):
    """Let facts be due every tenth of a second; the list grows when they are found out."""
    found, described = [], engines.described
    monkeypatch.setattr(engines, "FACTS_FOR", 0.1)
    monkeypatch.setattr(engines, "described", lambda model: found.append(1) or described(model))
    return found


def test_the_certificate_follows_events_though_nobody_asks(opened, tmp_path, counted):
    engine = opened(tmp_path / "log", new="matrix")
    assert engine.newest_facts == {}
    learn(engine, ratings(0, 60))
    wait_until(lambda: engine.newest_facts.get("rounds"))
    first = engine.newest_facts
    learn(engine, ratings(60, 120))
    wait_until(lambda: engine.newest_facts["rounds"] > first["rounds"])
    assert engine.newest_facts["gap"] >= 0.0
    n = len(counted)
    time.sleep(0.4)
    assert len(counted) == n  # without events there is nothing new
    assert facts(engine)["digest"] == replayed(tmp_path / "log", [], None)["digest"]


def test_facts_that_take_long_are_found_out_less_often(opened, tmp_path, counted, monkeypatch):
    described = engines.described

    def slow(model):
        time.sleep(0.1)
        return described(model)

    monkeypatch.setattr(engines, "described", slow)
    engine = opened(tmp_path / "log", new="matrix")
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        learn(engine, [{"user": "a", "item": "b", "value": 1.0}])
    assert len(counted) == 1  # 0.1 s may be a twentieth of the time


def test_a_model_that_cannot_be_described_still_learns(opened, tmp_path, monkeypatch, capsys):
    def failing(model):
        raise FloatingPointError("no certificate")

    monkeypatch.setattr(engines, "described", failing)
    engine = opened(tmp_path / "log", new="matrix")
    for k in range(3):
        assert learn(engine, ratings(10 * k, 10 * k + 10))["learned"] == 10
    assert engine.is_alive and "no certificate" in capsys.readouterr().err


def test_a_follower_finds_out_as_well(opened, tmp_path, counted):
    writer = opened(tmp_path / "log", new="matrix")
    learn(writer, ratings(0, 60))
    follower = opened(follow=tmp_path / "log")
    wait_until(lambda: follower.newest_facts.get("rounds"))
    assert follower.newest_facts["gap"] == pytest.approx(facts(writer)["gap"])
