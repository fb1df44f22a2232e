"""Ctrl-C at any moment leaves a whole number of rounds."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import onlinefw as ofw

from ..files.zoo import FEW, ZOO, assert_same_answers, stream

pytestmark = pytest.mark.usefixtures("interrupts")


def interrupted_rounds(model, batches, rng):
    """Learn from batches, each interrupted once; return those that were learned."""
    learned, seconds = [], 0.002
    for batch in batches:
        before = getattr(model, "n_rounds_", 0)
        delay = float(rng.uniform(0.0, 1.5 * seconds))
        sender = threading.Thread(target=lambda delay=delay: (time.sleep(delay), interrupt()))
        started = time.perf_counter()
        try:
            sender.start()
            model.partial_fit(**batch)
            sender.join()
        except KeyboardInterrupt:
            pass
        finally:
            sender.join()
        seconds = 0.5 * seconds + 0.5 * (time.perf_counter() - started)
        if getattr(model, "n_rounds_", 0) > before:
            learned.append(batch)
    return learned


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FEW else pytest.mark.slow) for n in ZOO]
)
def test_a_run_that_is_interrupted_again_and_again_equals_one_that_is_not(name):
    rng = np.random.default_rng(0)
    batches = [batch for seed in range(2) for batch in stream(name, seed)]
    ZOO[name]().partial_fit(**batches[0])  # compiles, which takes longer than all rounds together
    model, replayed = ZOO[name](), ZOO[name]()
    learned = interrupted_rounds(model, batches, rng)
    assert learned
    for batch in learned:
        replayed.partial_fit(**batch)
    X = batches[0]["X"] if not name.startswith("completion") else batches[0]["X"][:1]
    assert_same_answers(model, replayed, X)


@pytest.mark.parametrize("ids", [False, True])
def test_events_that_are_interrupted_are_learned_to_a_whole_number_of_them(ids, rng):
    X = np.column_stack((rng.integers(300, size=40_000), rng.integers(200, size=40_000)))
    X, y = X.astype(object) if ids else X, rng.standard_normal(len(X))
    model, replayed = (ofw.FrankWolfeMatrixCompletion().fit(X[:9], y[:9]) for _ in range(2))
    for delay in (0.002, 0.01, 0.03, 0.1):
        before = model.n_observations_
        sender = threading.Timer(delay, interrupt)
        try:
            sender.start()  # on a busy machine the interrupt may come before this returns
            while True:
                model.learn(X, y)
        except KeyboardInterrupt:
            sender.join()
        n = model.n_observations_ - before
        for first in range(0, n, len(X)):
            part = slice(0, min(len(X), n - first))
            replayed.learn(X[part], y[part])
        assert model.n_rounds_ == replayed.n_rounds_
        np.testing.assert_array_equal(model.predict(X[:9]), replayed.predict(X[:9]))


def test_a_fit_that_is_interrupted_has_played_whole_rounds_and_goes_on():
    name = "regressor, rows"
    X = np.random.default_rng(0).standard_normal((40_000, 6))
    y = X[:, 0] - X[:, 1]
    model = ZOO[name]()
    with pytest.raises(KeyboardInterrupt):
        sender = threading.Timer(0.3, interrupt)
        sender.start()
        while True:
            model.fit(X, y)
    sender.join()
    rounds = model.n_rounds_
    assert np.isfinite(model.gap_)
    model.partial_fit(X[:50], y[:50])
    assert model.n_rounds_ == rounds + 1
