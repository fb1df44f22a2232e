"""``ofw serve`` and ``ofw replay`` on the command line: one line for what cannot be."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack

import numpy as np
import pytest
from typer.testing import CliRunner

import onlinefw as ofw
from onlinefw.cli.app import app
from onlinefw.files import digest, load_checkpoint, save_checkpoint
from onlinefw.serve.opening import ServeOptions, open_engine

from ..serve.helpers import facts, learn, ratings


@pytest.fixture
def log(tmp_path):
    """A log with 60 ratings, and the digest of what they teach."""
    path = tmp_path / "events.db"
    with ExitStack() as held:
        engine = open_engine(ServeOptions(log=path, new="matrix"), print, held)
        engine.start()
        learn(engine, ratings(0, 60))
        found = facts(engine)["digest"]
        engine.close()
    return path, found


def ofw_says(*args):
    """Run a command; return its exit code and what it says."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    return result.exit_code, result.output.strip()


def test_a_replay_prints_the_digest_and_writes_a_model(log, tmp_path):
    path, expected = log
    code, text = ofw_says("replay", path, "--json", "-o", tmp_path / "again.ckpt")
    assert code == 0 and json.loads(text)["digest"] == expected
    assert digest(load_checkpoint(tmp_path / "again.ckpt")["model"]) == expected
    code, text = ofw_says("replay", path, "-o", tmp_path / "again.ofw", "--set", "half_life=9")
    assert code == 0 and expected not in text and "events: 60" in text
    assert ofw.load(tmp_path / "again.ofw").half_life_ == 9
    before = path.read_bytes()
    code, text = ofw_says("replay", path, "-o", path)
    assert code == 2 and "the log itself" in text and path.read_bytes() == before


def test_a_replay_makes_a_checkpoint_that_a_server_goes_on_from(log):
    path, expected = log
    beside = path.with_name("events.db.ckpt")
    beside.unlink()
    assert ofw_says("replay", path, "-o", beside)[0] == 0
    with ExitStack() as held:
        engine = open_engine(ServeOptions(log=path), pytest.fail, held)
        engine.start()
        assert engine.learned.seq == 60 and facts(engine)["digest"] == expected
        engine.close()


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((), "--log is missing"),
        (("--log", "events.db"), "there is no such"),
        (("model.ofw", "--new", "matrix"), "give one of"),
        (("missing.ofw",), "there is no such file"),
        (("text.txt",), "is not an onlinefw file"),
        (("--log", "text.txt"), "no log of ofw serve"),
        (("--follow", "text.txt"), "no log of ofw serve"),
        (("--follow", "missing.db"), "there is no such file"),
        (("other.ckpt", "--log", "new.db"), "holds no model"),
        (("--new", "matrix", "--log", "."), "."),
        (("--new", "matrix", "--log", "no/such/folder.db"), "no/such"),
        (("--new", "matrix", "--log", "a.db", "--token", "empty"), "is empty"),
        (("--new", "matrix", "--log", "a.db", "--host", "256.1.1.1"), "256.1.1.1"),
    ],
)
def test_what_cannot_be_served_is_one_line(tmp_path, monkeypatch, args, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("no log, no model" * 100, encoding="utf-8")
    (tmp_path / "empty").write_text("", encoding="utf-8")
    save_checkpoint({"a": 1}, tmp_path / "other.ckpt")
    model = ofw.FrankWolfeRegressor(radius=1.0).fit(np.eye(3), [1.0, 2.0, 3.0])
    ofw.save(model, tmp_path / "model.ofw")
    code, text = ofw_says("serve", *args, "--port", "0")
    assert code == 2 and why in text and text.startswith("ofw serve: ")
    assert len(text.splitlines()) == 1
    assert not (tmp_path / "new.db").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_cannot_be_written_is_one_line_and_can_be_replayed(log):
    path, expected = log
    path.parent.chmod(0o555)
    try:
        code, text = ofw_says("serve", "--log", path)
        assert code == 2 and len(text.splitlines()) == 1 and "denied" in text
        assert expected in ofw_says("replay", path)[1]
    finally:
        path.parent.chmod(0o755)


def test_a_damaged_log_is_one_line_and_left_as_it_is(log):
    path, _ = log
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    for command in (("serve", "--log", path), ("replay", path)):
        code, text = ofw_says(*command)
        assert code == 2 and len(text.splitlines()) == 1 and "damaged" in text, text
    assert path.read_bytes() == content
