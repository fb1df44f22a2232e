"""One small local Ray for all tests of a process: starting workers takes longer than the tests."""

from pathlib import Path

import pytest

#: These start a Ray of their own.
OWN_RAY = ("test_cluster", "test_command_line", "test_gpus", "test_machines")


@pytest.fixture(scope="session")
def cluster():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'onlinefw[ray]'")
    from onlinefw.past.ray.cluster import Cluster

    held = Cluster.lease(3)
    yield held
    held.give_back()


def pytest_collection_modifyitems(items):
    """What starts Ray takes long; the stand-in (``in_process``) does not."""
    for item in items:
        if Path(__file__).parent in item.path.parents and (
            "cluster" in item.fixturenames or item.path.stem in OWN_RAY
        ):
            item.add_marker(pytest.mark.slow)
