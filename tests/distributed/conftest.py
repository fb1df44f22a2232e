"""One small local Ray for all tests of a process: starting workers takes longer than the tests."""

import pytest


@pytest.fixture(scope="session")
def cluster():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'onlinefw[ray]'")
    from onlinefw.distributed.cluster import Cluster

    held = Cluster.lease(3)
    yield held
    held.give_back()
