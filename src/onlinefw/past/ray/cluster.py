"""The Ray cluster, and the workers on it that this process shares among its pasts.

A Ray that is running (``ray.init`` by the user, or ``RAY_ADDRESS``) is used. Otherwise a small
local one is started, and stopped when the last past that needs it is closed or garbage-collected.
"""

from __future__ import annotations

import atexit
import logging
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

from ..._devices import check_device_name
from .errors import ClusterLost
from .own_folder import OwnFolder

__all__ = ["INSTALL", "Cluster", "check_workers"]

INSTALL = "workers need Ray; install it with: pip install 'onlinefw[ray]', or use workers=None"
#: Shared memory of a local Ray: batches, vectors and sums pass through it, shards do not.
STORE_BYTES = 512 * 2**20
#: Arguments and results up to this size are part of the messages of a local Ray. On other clusters,
#: those above 100 KB (Ray's default) go through the object store, which takes longer.
MESSAGE_BYTES = 2**22
#: The address of a local Ray.
LOOPBACK = "127.0.0.1"
#: A folder's name of at most this many bytes leaves room for those of the sockets in it.
LONGEST = 22
#: How long workers may take to start or to come back, in seconds.
PATIENCE = 120.0


def import_ray() -> Any:
    """Return the module ``ray``, or say what to install."""
    try:
        import ray
    except ImportError as error:
        raise RuntimeError(INSTALL) from error
    return ray


def check_workers(workers: Any) -> int:
    """Return the number of workers; Ray must be installed."""
    from ..._validation import check_whole

    count = check_whole("workers", workers, otherwise=" or None")
    import_ray()
    return count


class Cluster:
    """A connection to Ray with a list of workers for each device; see :meth:`lease`."""

    _current: ClassVar[Cluster | None] = None
    _lock: ClassVar[Any] = threading.RLock()

    def __init__(self, workers: int) -> None:
        ray = import_ray()
        self.ours = self.local = False
        self._folder: OwnFolder | None = None
        if not ray.is_initialized():
            self.ours = True
            self.local = not os.environ.get("RAY_ADDRESS")
            if self.local:
                self._folder = OwnFolder("ofw-ray-", _place_for_sockets())
            _connect(ray, _local_settings(workers, self._folder) if self._folder else {})
            if self.local:
                atexit.register(self._end)
        self._session, self._maker = _session(ray), os.getpid()
        self._actors: dict[str, list[Any]] = {}
        self._leases = 0

    @classmethod
    def _connected(cls, workers: int) -> Cluster:
        if cls._current is None or not cls._current.alive:
            cls._current = cls(workers)
        return cls._current

    @classmethod
    def device_for(cls, workers: int, device: Any) -> str:
        """Return "cpu" or "cuda"; "auto" is "cuda" where each worker can have a GPU of its own.

        It is the workers' device, so it need not be on this machine.
        """
        device = check_device_name(device)
        if device != "auto":
            return device
        with cls._lock:
            cluster = cls._connected(workers)
            held = len(cluster._actors.get("cuda", ()))
            count = int(import_ray().cluster_resources().get("GPU", 0))
            return "cuda" if max(held, count) >= workers else "cpu"

    @classmethod
    def lease(cls, workers: int, device: str = "cpu") -> Cluster:
        """Return the cluster with at least so many workers; :meth:`give_back` ends the lease."""
        with cls._lock:
            cluster = cls._connected(workers)
            try:
                cluster._start_workers(workers, device)
            except BaseException:
                cluster._close_if_unused()
                raise
            cluster._leases += 1
            return cluster

    @property
    def alive(self) -> bool:
        """Whether this process is still connected to the same cluster."""
        ray = import_ray()
        return bool(ray.is_initialized()) and _session(ray) == self._session

    def workers(self, count: int, device: str) -> list[Any]:
        """Return the first ``count`` workers of a device."""
        return self._actors[device][:count]

    def give_back(self) -> None:
        """End a lease: a past no longer needs its workers."""
        with self._lock:
            self._leases -= 1
            self._close_if_unused()

    def threads(self, workers: int) -> int:
        """Return how many threads a worker may use, so that all together use every core once."""
        ray = import_ray()
        cores = os.cpu_count() or 1
        if not self.local:
            nodes = [node for node in ray.nodes() if node["Alive"]]
            cores = int(min(node["Resources"].get("CPU", 1) for node in nodes)) * len(nodes)
        return max(1, cores // workers)

    def _start_workers(self, workers: int, device: str) -> None:
        ray = import_ray()
        held = self._actors.setdefault(device, [])
        missing = workers - len(held)
        if missing <= 0:
            return
        self._check_resources(ray, missing, device)
        from .worker import Worker

        options: dict[str, Any] = {"max_restarts": -1, "num_cpus": 0 if self.local else 1}
        if device == "cuda":
            options["num_gpus"] = 1
        if not self.local:
            options["scheduling_strategy"] = "SPREAD"
        remote = ray.remote(Worker).options(**options)
        started = [remote.remote() for _ in range(missing)]
        try:
            ray.get([actor.ready.remote() for actor in started], timeout=PATIENCE)
        except ray.exceptions.RayError as error:
            for actor in started:
                ray.kill(actor)
            raise ClusterLost(
                f"{missing} more workers did not start within {PATIENCE:g} s "
                f"({_first_line(error)}); is the cluster busy, or is onlinefw missing there?"
            ) from error
        held.extend(started)

    def _check_resources(self, ray: Any, missing: int, device: str) -> None:
        if self.local and device == "cpu":
            return
        have = ray.cluster_resources()
        held = {"CPU": sum(map(len, self._actors.values())), "GPU": len(self._actors[device])}
        for resource, needed in (("CPU", not self.local), ("GPU", device == "cuda")):
            count, wanted = int(have.get(resource, 0)), missing + held[resource]
            if needed and count < wanted:
                raise ValueError(
                    f"{wanted} workers need {wanted} {resource}s, but the Ray cluster has {count}; "
                    "ask for fewer workers, or start Ray with more"
                )

    def _close_if_unused(self) -> None:
        if self._leases > 0:
            return
        if Cluster._current is self:
            Cluster._current = None
        if self.alive and self.ours:
            import_ray().shutdown()
        elif self.alive:
            for actor in (actor for actors in self._actors.values() for actor in actors):
                import_ray().kill(actor)
        self._actors.clear()
        if self._folder is not None:
            atexit.unregister(self._end)
            self._folder.close()

    def _end(self) -> None:
        """Stop the local Ray when the process that has started it ends; then its folder goes."""
        if self._maker == os.getpid():
            self._leases = 0
            self._close_if_unused()


def _local_settings(workers: int, folder: OwnFolder) -> dict[str, Any]:
    """Return how a local Ray is started: for this machine only, with files in our own folder."""
    return {
        "address": "local",
        "_node_ip_address": LOOPBACK,
        "_temp_dir": str(folder.path),
        "num_cpus": max(workers, os.cpu_count() or 1),
        "include_dashboard": False,
        "object_store_memory": STORE_BYTES,
        "_system_config": {
            "max_direct_call_object_size": MESSAGE_BYTES,
            "task_rpc_inlined_bytes_limit": 8 * MESSAGE_BYTES,
            "worker_niceness": 0,  # workers do the work, the driver waits for them
        },
    }


def _place_for_sockets() -> str:
    """Return where Ray's folder goes: the paths of its sockets may have about 100 bytes in all."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= LONGEST or not os.path.isdir("/tmp") else "/tmp"


@contextmanager
def _loopback_as_it_is() -> Iterator[None]:
    """Let ``ray.init`` take 127.0.0.1.

    On Linux it would put an address that others can reach in its place, for a cluster of several
    machines, and then listen at all addresses of this one. On other systems, where Ray has no such
    clusters, it does not; this constant is the difference.
    """
    try:
        from ray._private import ray_constants
    except ImportError:  # an address that is not local is told later
        yield
        return
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _warn_if_others_can_reach(ray: Any) -> None:
    address = str(getattr(ray.get_runtime_context(), "gcs_address", LOOPBACK))
    if not address.startswith(LOOPBACK):
        warnings.warn(
            f"this version of Ray listens at {address}, which other machines may reach",
            RuntimeWarning,
            stacklevel=2,
        )


def _connect(ray: Any, settings: dict[str, Any]) -> None:
    try:
        with _loopback_as_it_is() if settings else nullcontext():
            ray.init(logging_level=logging.ERROR, log_to_driver=False, **settings)
        if settings:
            _warn_if_others_can_reach(ray)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = f"the Ray at RAY_ADDRESS={os.environ.get('RAY_ADDRESS')}"
        where = "a local Ray" if settings else where
        raise ClusterLost(f"{where} could not be reached: {_first_line(error)}") from error


def _session(ray: Any) -> str:
    """Return an id that is different for every connection."""
    return str(ray.get_runtime_context().get_worker_id())


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
