"""Which Ray is used, and when it goes."""

import sys

import pytest

import onlinefw as ofw
from onlinefw.objectives import ObservedEntries

from .own_process import run


def test_importing_onlinefw_does_not_import_ray():
    run("""
        import sys
        import onlinefw, onlinefw.objectives, onlinefw.estimators, onlinefw.distributed
        assert "ray" not in sys.modules
    """)


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RuntimeError, match=r"pip install 'onlinefw\[ray\]'"):
        ObservedEntries((2, 2), workers=2)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two"])
def test_a_bad_number_of_workers_is_refused(workers):
    with pytest.raises(ValueError, match="workers must be a whole number"):
        ObservedEntries((2, 2), workers=workers)


def test_a_local_ray_is_started_and_stopped():
    pytest.importorskip("ray")
    run("""
        import gc, numpy as np, ray
        from onlinefw.objectives import ObservedEntries

        def observed():
            objective = ObservedEntries((3, 4), workers=3)
            objective.observe(np.array([[0, 1], [2, 3]]), np.ones(2))
            return objective

        one, other = observed(), observed()
        one.close()
        try:
            one.value()
        except RuntimeError as error:
            assert "closed" in str(error)
        else:
            raise AssertionError("closed workers have answered")
        assert ray.is_initialized(), "the other one still needs it"
        assert other.value() == 0.5
        del other
        assert not ray.is_initialized()

        # A Ray of the user's own is used, and left alone.
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            ObservedEntries((3, 4), workers=3)
        except ValueError as error:
            assert "3 workers need 3 CPUs, but the Ray cluster has 2" in str(error), error
        else:
            raise AssertionError("there are not that many CPUs")
        objective = ObservedEntries((3, 4), workers=2)
        objective.observe(np.array([[0, 1], [2, 3]]), np.ones(2))
        del objective
        assert ray.is_initialized()
        ray.shutdown()
    """)


def test_ray_address_is_used(cluster):
    import ray

    address = ray.get_runtime_context().gcs_address
    run(
        """
        import os, numpy as np, ray
        from onlinefw.objectives import ObservedEntries

        objective = ObservedEntries((3, 4), workers=2)
        assert ray.get_runtime_context().gcs_address == os.environ["RAY_ADDRESS"]
        objective.observe(np.array([[0, 1], [2, 3]]), np.ones(2))
        assert objective.value() == 0.5
        """,
        RAY_ADDRESS=address,
    )
    assert cluster.alive


def test_workers_are_shared_among_objectives(cluster):
    one, other = (ofw.objectives.ObservedEntries((3, 4), workers=2) for _ in range(2))
    assert one._past.shards.pids == other._past.shards.pids
