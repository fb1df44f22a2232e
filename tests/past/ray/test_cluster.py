"""Which Ray is used, and when it goes."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import onlinefw as ofw
from onlinefw.objectives import ObservedEntries

from .own_process import run

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
#: Starts a local Ray, and says where its files are.
STARTS = textwrap.dedent("""
    import numpy as np
    from onlinefw.objectives import ObservedEntries
    from onlinefw.past.ray.cluster import Cluster
    objective = ObservedEntries((3, 4), workers=1)
    objective.observe(np.array([[0, 1], [2, 3]]), np.ones(2))
    print(Cluster._current._folder.path, objective._past.log.folder, flush=True)
""")


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
        # Otherwise Ray puts another address in place of the local one.
        RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
    )
    assert cluster.alive


def test_workers_are_shared_among_objectives(cluster):
    one, other = (ofw.objectives.ObservedEntries((3, 4), workers=2) for _ in range(2))
    assert one._past.shards.pids == other._past.shards.pids


@ON_LINUX
def test_a_local_ray_is_for_this_machine_only():
    """Every address at which it listens is one of 127.0.0.0/8."""
    pytest.importorskip("ray")
    run(
        STARTS
        + textwrap.dedent("""
        import os
        from pathlib import Path
        from tests.past.ray.listening import addresses, processes_with
        processes = processes_with(str(Cluster._current._folder.path))
        assert {*objective._past.shards.pids} < {int(one.name) for one in processes}
        heard = addresses([*processes, Path(f"/proc/{os.getpid()}")])
        assert len(heard) > 0 and all(one.endswith("7F") for one in heard), heard
        assert os.environ["RAY_AUTH_MODE"] == "token"  # and it answers to its own user only
        """)
    )


def test_what_a_local_ray_has_written_goes_with_it():
    pytest.importorskip("ray")
    at_the_end = run(STARTS).split()  # nothing is closed: the process just ends
    closed = run(STARTS + "objective.close()").split()
    assert not any(Path(path).exists() for path in (*at_the_end, *closed))


def test_what_a_killed_driver_has_left_goes_with_the_next_one():
    pytest.importorskip("ray")
    command = [sys.executable, "-c", STARTS + "input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as driver:
        left = [Path(path) for path in driver.stdout.readline().split()]
        run(STARTS)
        assert len(left) == 2 and all(path.exists() for path in left), "it was still running"
        driver.send_signal(signal.SIGKILL)
    assert all(path.exists() for path in left)
    run(STARTS)
    assert not any(path.exists() for path in left)


def test_a_long_name_of_the_temporary_folder_leaves_room_for_sockets(tmp_path, monkeypatch):
    from onlinefw.past.ray.cluster import _place_for_sockets

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("long" * 20)))
    assert _place_for_sockets() == "/tmp"
    monkeypatch.setattr("tempfile.tempdir", "/var/tmp")
    assert _place_for_sockets() == "/var/tmp"
