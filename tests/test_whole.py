"""Blocks that are not interrupted, turns of threads, and what stands for a broken model."""

import multiprocessing
import os
import signal
import threading

import numpy as np
import pytest

from onlinefw import _whole
from onlinefw._whole import Broken, BrokenModel, Turns, Uninterrupted

pytestmark = pytest.mark.usefixtures("interrupts")


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_waits_for_the_end_of_the_outermost_block():
    passed = []
    with pytest.raises(KeyboardInterrupt):
        with Uninterrupted():
            with Uninterrupted():
                interrupt()
                passed.append("inner")
            passed.append("outer")
        passed.append("after")
    assert passed == ["inner", "outer"]
    with pytest.raises(KeyboardInterrupt):  # as before
        interrupt()


def test_a_second_interrupt_does_not_wait():
    passed = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted():
        interrupt()
        passed.append("once")
        interrupt()
        passed.append("twice")
    assert passed == ["once"]
    with Uninterrupted():
        pass  # and the next block is as any other
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_an_error_ends_the_block_and_an_interrupt_that_waited_comes_instead():
    with pytest.raises(ZeroDivisionError), Uninterrupted():
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt) as caught, Uninterrupted():
        interrupt()
        raise ZeroDivisionError
    assert isinstance(caught.value.__context__, ZeroDivisionError)


def test_the_users_own_handler_is_called_at_the_end_and_stays():
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append("mine"))
    try:
        with Uninterrupted():
            interrupt()
            assert came == []
        assert came == ["mine"]
        interrupt()
        assert came == ["mine", "mine"]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with Uninterrupted():
            interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_gets_no_signals_and_changes_no_handler():
    before, found = signal.getsignal(signal.SIGINT), []

    def run():
        with Uninterrupted():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [before]


def test_whatever_is_asked_of_something_broken_says_what_to_do():
    broken = Broken(MemoryError("no more"))
    for act in (lambda: broken.team, lambda: setattr(broken, "team", 1)):
        with pytest.raises(
            BrokenModel, match=r"failed half-way \(MemoryError: no more\).*checkpoin"
        ):
            act()


def test_threads_take_turns():
    turns, held, seen = Turns(), threading.Event(), []

    def other():
        held.wait()
        with turns:
            seen.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with turns:
        held.set()
        thread.join(0.1)
        seen.append("first")
    thread.join()
    assert seen == ["first", "other"]


def _take(turns, queue):
    try:
        with turns:
            turns.check()
            queue.put("taken")
    except BrokenModel as error:
        queue.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("busy", [False, True])
def test_a_process_that_was_forked_in_the_middle_of_a_round_is_told(busy):
    turns, context = Turns(), multiprocessing.get_context("fork")
    queue, begun, end = context.SimpleQueue(), threading.Event(), threading.Event()

    def play():
        with turns:
            begun.set()
            end.wait()

    thread = threading.Thread(target=play)
    if busy:
        thread.start()
        begun.wait()
    child = context.Process(target=_take, args=(turns, queue))
    child.start()
    answer = queue.get()
    child.join()
    end.set()
    if busy:
        thread.join()
        assert "forked while another thread played it" in answer
    else:
        assert answer == "taken"


def test_pieces_cover_everything_and_last_about_as_long_as_they_may(monkeypatch):
    clock = iter(np.arange(0.0, 1000.0, 0.04))
    monkeypatch.setattr(_whole, "perf_counter", lambda: next(clock))
    found = list(_whole.pieces(1000))
    assert np.concatenate([np.arange(1000)[part] for part in found]).tolist() == list(range(1000))
