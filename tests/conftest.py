"""Shared settings: hypothesis without deadlines (machines are shared), BLAS on one thread."""

import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from onlinefw._threads import use_threads

from .skipped import skipped_line

settings.register_profile(
    "default",
    max_examples=30,  # new ones in every run
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("default")


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread():
    # Two pytest workers on two cores: more BLAS threads would only wait for each other.
    use_threads(1)
    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_NUM_THREADS", "1")  # of the processes that tests start
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def interrupts():
    """Ctrl-C raises KeyboardInterrupt, also where whoever started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_terminal_summary(terminalreporter):
    line = skipped_line(terminalreporter.stats.get("skipped", []))
    if line is not None:
        terminalreporter.write_line(line)
