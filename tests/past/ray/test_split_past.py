"""Any past is spread by a table: splitting, joining, the log and recovery, with a toy past."""

import gc
import weakref

import numpy as np
import pytest

from onlinefw.past.ray import shards as shards_module
from onlinefw.past.ray.errors import ClusterLost, WorkerFailed

from .in_process import kill, ray_in_process
from .toy import numbers

ROWS = 10


@pytest.fixture(autouse=True)
def ray(monkeypatch):
    with ray_in_process(monkeypatch) as module:
        yield module


def batches(count=6):
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield rng.integers(ROWS, size=4), rng.standard_normal(4)


def filled(workers, count=6, **options):
    past, expected = numbers(ROWS, workers, **options), np.zeros(ROWS)
    for rows, values in batches(count):
        past.append(rows, values)
        np.add.at(expected, rows, values)
    return past, expected


@pytest.mark.parametrize("workers", [1, 2, 3, 9])  # nine add up in a tree
def test_answers_are_those_of_one_past(workers):
    past, expected = filled(workers)
    past.scale(0.5)
    expected *= 0.5
    np.testing.assert_allclose(past.values(), expected)
    np.testing.assert_allclose(past.total(), expected.sum())
    V = np.arange(2.0)
    left, right = past.products(V)
    np.testing.assert_allclose(left, np.outer(expected, V))
    np.testing.assert_allclose(right, np.outer(expected.sum(), V))
    assert past.twice() == past.doubled() == pytest.approx(2.0 * expected.sum())
    assert len(past) == past.appended == 24


def test_a_lost_shard_hears_the_log_and_what_was_begun():
    past, expected = filled(3)
    past.scale(3.0)
    past.begin(np.arange(10.0))
    for k in range(3):
        kill(past.shards, k)
        np.testing.assert_allclose(past.values(), 3.0 * expected)
        assert past.since() == pytest.approx(3.0 * expected.sum() - 45.0)
    assert past.shards.restarts == 3


def test_what_is_over_is_not_begun_again():
    past, _ = filled(2)
    past.begin(np.arange(10.0))
    past.scale(2.0)
    kill(past.shards, 1)
    with pytest.raises(AttributeError):
        past.since()


@pytest.mark.parametrize("number", [0, 63, 64])
def test_a_shard_lost_while_nobody_waits_misses_nothing(number):
    """A factor is noted before it is told, so one that is told while a shard is rebuilt counts."""
    past, expected = filled(2)
    for k in range(130):
        if k == number:
            kill(past.shards, 1)
        past.scale(1.01)
    np.testing.assert_allclose(past.values(), 1.01**130 * expected)


def test_a_lost_cluster_leaves_the_state(ray):
    past, expected = filled(2)
    past.scale(2.0)
    ray.shutdown()
    for ask in (past.total, lambda: past.append(np.array([0]), np.array([1.0]))):
        with pytest.raises(ClusterLost, match=r"state_dict\(\)"):
            ask()
    assert len(past) == 24
    np.testing.assert_allclose(past.state_dict()["values"], 2.0 * expected)


def test_a_cluster_lost_in_the_middle_of_a_message_has_the_message(ray, monkeypatch):
    past, expected = filled(2)
    tell = past.shards.tell

    def lost(*args):
        ray.shutdown()
        tell(*args)

    monkeypatch.setattr(past.shards, "tell", lost)
    past.append(np.array([0]), np.array([1.0]))
    with pytest.raises(ClusterLost):
        past.total()
    expected[0] += 1.0
    assert len(past) == 25
    np.testing.assert_allclose(past.state_dict()["values"], expected)


@pytest.mark.parametrize("moment", ["log.append", "shards._send"])
def test_an_interrupt_leaves_the_past_of_before_or_after(moment, monkeypatch):
    past, expected = filled(2)
    part, name = moment.split(".")
    method, calls = getattr(getattr(past, part), name), []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return method(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(getattr(past, part), name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            past.append(np.array([0, 1]), np.ones(2))
    if len(past) > 24:
        expected[:2] += 1.0
    np.testing.assert_allclose(past.values(), expected)
    np.testing.assert_allclose(past.state_dict()["values"], expected)


def test_what_a_shard_could_not_do_is_said():
    past, _ = filled(2)
    past.append(np.array([0, 1]), np.array([np.nan, 1.0]))
    with pytest.raises(WorkerFailed, match="not a number"):
        past.total()


def test_an_unknown_verb_is_an_attribute_error():
    past, _ = filled(1)
    with pytest.raises(AttributeError, match="no_such_verb"):
        past.no_such_verb()


def test_closed_workers_say_so(ray):
    past, _ = filled(2)
    past.close()
    with pytest.raises(RuntimeError, match=r"before close\(\)"):
        past.total()
    assert not ray.is_initialized()


def test_workers_go_with_the_past(ray):
    past, _ = filled(2)
    gc.disable()  # without a cycle there is nothing to collect
    try:
        gone = weakref.ref(past)
        del past
        assert gone() is None
        assert not ray.is_initialized()
    finally:
        gc.enable()


def test_many_workers_lose_one_in_a_tree(monkeypatch):
    monkeypatch.setattr(shards_module, "FAN_IN", 2)
    past, expected = filled(9)
    kill(past.shards, 4)
    np.testing.assert_allclose(past.total(), expected.sum())
    assert past.shards.restarts == 1


def test_a_log_where_the_user_says(tmp_path):
    past, _ = filled(2, log_dir=tmp_path / "log")
    assert len(list((tmp_path / "log").iterdir())) == 1
    past.close()
    assert list((tmp_path / "log").iterdir()) == []
