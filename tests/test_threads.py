"""BLAS has one setting for the whole process: rounds use it, and leave it as they found it."""

from threading import Barrier, Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import onlinefw as ofw
from onlinefw import _threads
from onlinefw._threads import BlasThreads, blas_threads_for, one_blas_thread


def blas_threads():
    return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")


def let_blas_use(threads):
    for library in _threads._blas_libraries():
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)
        library.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch):
    # Tests that let everything fail may have left a block that never ended.
    monkeypatch.setattr(_threads, "_holder", None)
    monkeypatch.setattr(_threads, "_found", [])
    before = blas_threads()
    let_blas_use(2)
    if blas_threads() != 2:
        pytest.skip("this BLAS has one thread only")
    yield
    let_blas_use(before)


def test_a_block_within_another_has_its_own_number_of_threads():
    with one_blas_thread():
        assert blas_threads() == 1
        with BlasThreads(2):
            assert blas_threads() == 2
            with one_blas_thread():
                assert blas_threads() == 1
            assert blas_threads() == 2
        assert blas_threads() == 1
    assert blas_threads() == 2


def test_threads_that_overlap_leave_what_the_first_one_found():
    first_in, second_in, first_out = Barrier(2), Barrier(2), Barrier(2)

    def second():
        first_in.wait()
        with one_blas_thread():
            second_in.wait()
            first_out.wait()

    other = Thread(target=second)
    other.start()
    with one_blas_thread():
        first_in.wait()
        second_in.wait()
    first_out.wait()
    other.join()
    assert blas_threads() == 2


def test_any_thread_may_limit_blas():
    seen = []

    def limiting():
        with one_blas_thread():
            seen.append(blas_threads())

    with one_blas_thread():
        pass
    other = Thread(target=limiting)
    other.start()
    other.join()
    assert seen == [1]
    assert blas_threads() == 2


def test_what_could_not_be_put_back_is_put_back_by_the_next(monkeypatch):
    def failing(n):
        raise MemoryError

    block = one_blas_thread()
    block.__enter__()
    with monkeypatch.context() as patch:
        patch.setattr(BlasThreads, "_let", staticmethod(failing))
        with pytest.raises(MemoryError):
            block.__exit__()
    assert blas_threads() == 1
    with one_blas_thread():
        assert blas_threads() == 1
    assert blas_threads() == 2


def test_more_threads_than_the_user_allows_are_never_used():
    with threadpool_limits(1, "blas"), BlasThreads(2):
        assert blas_threads() == 1


def test_long_work_uses_the_cores_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(_threads, "_wanted", 1)
    with blas_threads_for(2**40):
        assert blas_threads() == 1


@pytest.mark.parametrize(("work", "threads"), [(10, 2), (2**20, 1), (2**40, 2)])
def test_how_many_threads_suit_how_much_work(monkeypatch, work, threads):
    monkeypatch.setattr(_threads, "_wanted", 2)
    with blas_threads_for(work):
        assert blas_threads() == threads  # for ten multiplications the setting is left alone


def test_factors_are_orthonormalised_on_one_thread(monkeypatch):
    """A QR of short factors spins on all cores otherwise, and waits for other programs there."""
    seen, qr = [], np.linalg.qr

    def looking(*args, **kwargs):
        seen.append(blas_threads())
        return qr(*args, **kwargs)

    monkeypatch.setattr(np.linalg, "qr", looking)
    rng = np.random.default_rng(0)
    objective = ofw.objectives.ObservedEntries((1500, 1200))
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.TraceNormBall(100.0))
    for _ in range(5):
        pairs = np.column_stack((rng.integers(0, 1500, 50), rng.integers(0, 1200, 50)))
        learner.observe(pairs, rng.standard_normal(50))
    learner.objective.iterate.recompress()
    learner.objective.iterate.svd()
    assert seen and set(seen) == {1}
    assert blas_threads() == 2
