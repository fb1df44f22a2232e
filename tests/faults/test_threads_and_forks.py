"""Loops on several threads: from several threads at once, and in forked processes."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw import _threads


@pytest.fixture
def two_threads(monkeypatch):
    """Every loop is long enough for two threads, whatever the number of cores."""
    monkeypatch.setattr(_threads, "_wanted", 2)
    monkeypatch.setattr(_threads, "SMALL_LOOP", 0)


def matrix(rng, n=3000):
    X = np.column_stack((rng.integers(60, size=n), rng.integers(50, size=n)))
    return ofw.FrankWolfeMatrixCompletion(radius=100.0).fit(X, rng.standard_normal(n)), X


def classifier(rng, n=3000):
    X = rng.standard_normal((n, 70))
    return ofw.FrankWolfeClassifier(radius=3.0).fit(X, X[:, 0] > 0), X


def local(rng, n=3000):
    X = np.column_stack((rng.integers(60, size=n), rng.integers(50, size=n)))
    return ofw.FrankWolfeMatrixCompletion().fit(X, rng.standard_normal(n)), X


MODELS = pytest.mark.parametrize("make", [matrix, local, classifier])


@MODELS
def test_many_threads_predict_at_once(make, rng, two_threads):
    model, X = make(rng)
    expected = model.predict(X)
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda _: model.predict(X), range(64)):
            np.testing.assert_array_equal(answer, expected)


@MODELS
def test_threads_learn_models_of_their_own_as_one_thread_does(make, two_threads):
    expected = make(np.random.default_rng(0))
    with ThreadPoolExecutor(4) as pool:
        for model, X in pool.map(lambda _: make(np.random.default_rng(0)), range(8)):
            np.testing.assert_array_equal(model.predict(X), expected[0].predict(X))


def _in_child(model, X, queue):
    y = model.predict(X[:3])
    model.partial_fit(X[:500], model.predict(X[:500]))
    queue.put((y, model.predict(X), model.gap_))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@MODELS
def test_a_forked_process_predicts_and_learns_as_its_parent_does(make, rng, two_threads):
    model, X = make(rng)
    assert _threads._team is not None  # threads have been at work here
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    children = [context.Process(target=_in_child, args=(model, X, queue)) for _ in range(3)]
    for child in children:
        child.start()
    answers = [queue.get() for _ in children]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    _in_child(model, X, queue)
    expected = queue.get()
    for answer in answers:
        for one, other in zip(answer, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_the_number_of_threads_follows_the_cores_that_the_process_may_use():
    code = "from onlinefw._threads import n_threads; print(n_threads())"

    def threads(environment=None, before=""):
        code_ = textwrap.dedent(before) + "\n" + code
        environment = {**os.environ, **(environment or {})}
        out = subprocess.run([sys.executable, "-c", code_], capture_output=True, env=environment)
        return int(out.stdout)

    assert threads({"NUMBA_NUM_THREADS": "1"}) == 1
    assert threads({"LOKY_MAX_CPU_COUNT": "1"}) == 1
    if hasattr(os, "sched_setaffinity"):
        assert threads(before="import os; os.sched_setaffinity(0, [0])") == 1


def test_an_error_in_one_thread_is_raised_when_all_have_ended(monkeypatch):
    monkeypatch.setattr(_threads, "_wanted", 3)
    ended = []

    def kernel(from_block, to_block, blocks):
        if from_block == 2:
            raise MemoryError
        ended.append(from_block)

    with pytest.raises(MemoryError):
        _threads.share(kernel, np.arange(4))
    assert sorted(ended) == [0, 1]


def batches_of(make, rng, n=60):
    for _ in range(n):
        if make is not classifier:
            rows = np.column_stack((rng.integers(60, size=40), rng.integers(50, size=40)))
            yield rows, rng.standard_normal(40)
        else:
            rows = rng.standard_normal((40, 70))
            yield rows, rows[:, 1] > 0


@pytest.mark.slow
@MODELS
def test_who_predicts_while_another_thread_learns_sees_the_last_finished_round(make, rng):
    model, X = make(rng)
    ask = model.decision_function if make is classifier else model.predict
    X = X[:50]
    finished, seen, stop = {ask(X).tobytes()}, [], threading.Event()

    def predict():
        while not stop.is_set():
            seen.append(ask(X).tobytes())

    readers = [threading.Thread(target=predict) for _ in range(2)]
    for reader in readers:
        reader.start()
    for rows, y in batches_of(make, np.random.default_rng(1)):
        model.partial_fit(rows, y)
        finished.add(ask(X).tobytes())
    stop.set()
    for reader in readers:
        reader.join()
    assert len(seen) > 10 and set(seen) <= finished


@pytest.mark.parametrize("ids", [False, True])
def test_threads_that_learn_events_and_ids_at_once_lose_none(ids):
    def events(seed, k):
        rng = np.random.default_rng([seed, k])
        X = np.column_stack((rng.integers(20 + 5 * k, size=7), rng.integers(9 + k, size=7)))
        return X.astype(object) if ids else X, rng.standard_normal(7)

    model, saved, missed = ofw.FrankWolfeMatrixCompletion(), [], []
    model.learn(*events(0, 0))

    def learn(seed):
        for k in range(30):
            X, y = events(seed, k)
            model.learn(X, y)
            missed.extend(np.flatnonzero(~np.isfinite(model.predict(X))).tolist())

    threads = [threading.Thread(target=learn, args=(seed,)) for seed in (1, 2)]
    for one in threads:
        one.start()
    while any(one.is_alive() for one in threads):
        saved.append(model.state_dict())
    for one in threads:
        one.join()
    assert not missed and model.n_observations_ == model.objective_.n_observations == 7 * 61
    if ids:
        assert model.shape_ == (len(set(model.row_ids_)), len(set(model.col_ids_)))
    for state in saved[:: max(1, len(saved) // 10)]:
        again = ofw.FrankWolfeMatrixCompletion().load_state(state)
        assert again.n_observations_ == again.objective_.n_observations


def test_who_predicts_while_another_thread_begins_anew_gets_numbers(rng):
    model, X = local(rng, 500)
    y, seen, stop = rng.standard_normal(500), [], threading.Event()

    def predict():
        while not stop.is_set():
            seen.append(model.predict(X[:30], unknown="fallback"))

    reader = threading.Thread(target=predict)
    reader.start()
    for _ in range(20):
        model.fit(X, y)
    stop.set()
    reader.join()
    assert seen and np.isfinite(seen).all()


def search(rng, n=400):
    X = rng.standard_normal((n, 70))
    radii = [1.0, 2.0, 4.0]
    return ofw.RadiusSearch(ofw.FrankWolfeRegressor(loss="correntropy"), radii).fit(X, X[:, 0]), X


@pytest.mark.parametrize("make", [classifier, search])
def test_who_saves_while_another_thread_learns_saves_a_finished_round(make, rng):
    model, X = make(rng)
    X, rows = X[:50], rng.standard_normal((40, 40, 70))
    finished, saved = {model.n_rounds_: model.predict(X)}, []

    def learn():
        for some in rows:
            model.partial_fit(some, some[:, 1] > 0 if make is classifier else some[:, 1])
            finished[model.n_rounds_] = model.predict(X)

    learner = threading.Thread(target=learn)
    learner.start()
    while learner.is_alive():
        saved.append(model.state_dict())
    learner.join()
    assert len(saved) > 2
    for state in saved[:: max(1, len(saved) // 20)]:
        again = type(model)(**model.get_params(deep=False)).load_state(state)
        np.testing.assert_array_equal(again.predict(X), finished[again.n_rounds_])
