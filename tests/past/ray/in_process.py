"""A stand-in for Ray: actors in this process that carry out every message at once.

What travels is copied as it would be on the wire, arrives read-only as it does from Ray, and may
not hold an array of a device. An actor that is killed loses the next message and what it held.
"""

import gc
import io
import pickle
import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

from onlinefw._threads import use_threads
from onlinefw.past.ray.cluster import Cluster

#: What this Ray has.
RESOURCES = {"CPU": 16.0, "GPU": 3.0}


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class RayActorError(RayError):
    pass


class GetTimeoutError(RayError):
    pass


class RaySystemError(RayError):
    pass


class ObjectLostError(RayError):
    pass


def _task_error(cause):
    """Return an error of both classes, as Ray does."""
    if isinstance(cause, RayTaskError):  # of what was passed on
        return cause

    class Both(RayTaskError, type(cause)):
        def __init__(self):
            Exception.__init__(self, f"{type(cause).__name__}: {cause}")

        def __getattr__(self, name):
            return getattr(cause, name)

    return Both()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
        cupy = sys.modules.get("cupy")
        if cupy is not None and isinstance(value, cupy.ndarray):
            raise AssertionError("an array of a device would travel between processes")
        return NotImplemented


def travelled(value):
    """Return what arrives: a copy whose arrays are read-only."""
    file, buffers = io.BytesIO(), []
    _Pickler(file, protocol=5, buffer_callback=buffers.append).dump(value)
    return pickle.loads(file.getvalue(), buffers=[bytes(buffer.raw()) for buffer in buffers])


class _Ref:
    """A result, or the error in its place."""

    def __init__(self, value=None, error=None):
        self._value, self._error = value, error

    def get(self):
        if self._error is not None:
            raise self._error
        return self._value


def _known(arguments):
    return [one.get() if isinstance(one, _Ref) else travelled(one) for one in arguments]


class _Actor:
    def __init__(self, make):
        self._make, self._worker, self._killed = make, make(), False

    def __getattr__(self, name):
        return _Method(self, name)

    def _die(self):
        self._killed = True

    def _carry_out(self, name, arguments, returns):
        if self._killed:
            self._killed, self._worker = False, self._make()
            return [_Ref(error=RayActorError("the actor died"))] * returns
        try:
            result = getattr(self._worker, name)(*_known(arguments))
        except Exception as error:
            return [_Ref(error=_task_error(error))] * returns
        if name in ("open", "ready"):
            result = None  # not the id of this process, which somebody might kill
        result = travelled(result)
        return [_Ref(one) for one in result] if returns > 1 else [_Ref(result)]


class _Method:
    def __init__(self, actor, name, returns=1):
        self._actor, self._name, self._returns = actor, name, returns

    def options(self, num_returns):
        return _Method(self._actor, self._name, num_returns)

    def remote(self, *arguments):
        refs = self._actor._carry_out(self._name, arguments, self._returns)
        return refs if self._returns > 1 else refs[0]


class _Remote:
    def __init__(self, make):
        self._make = make

    def options(self, **_):
        return self

    def remote(self):
        return _Actor(self._make)


def make(resources):
    """Return a module to stand in for ``ray``, with so many CPUs and GPUs."""
    module = ModuleType("ray")
    module.running = False
    module.is_initialized = lambda: module.running
    module.init = lambda **_: setattr(module, "running", True)
    module.shutdown = lambda: setattr(module, "running", False)
    module.cluster_resources = lambda: dict(resources)
    module.nodes = lambda: [{"Alive": True, "Resources": resources}]
    module.get_runtime_context = lambda: SimpleNamespace(get_worker_id=lambda: id(module))
    module.remote, module.kill = _Remote, _Actor._die
    module.put = lambda value: _Ref(travelled(value))
    module.get = lambda refs, timeout=None: (
        [one.get() for one in refs] if isinstance(refs, list) else refs.get()
    )
    errors = (RayError, RayTaskError, RayActorError, GetTimeoutError, RaySystemError)
    module.exceptions = SimpleNamespace(**{e.__name__: e for e in (*errors, ObjectLostError)})
    return module


@contextmanager
def ray_in_process(monkeypatch, **resources):
    """Let ``workers=N`` be in this process, whether Ray is installed or not."""
    threads = use_threads(None)
    gc.freeze()  # only what is made from here on is looked through at the end
    with monkeypatch.context() as patch:
        patch.setattr(Cluster, "_current", None)
        patch.setitem(sys.modules, "ray", module := make({**RESOURCES, **resources}))
        yield module
        gc.collect()  # what is left over must not meet another Ray
    gc.unfreeze()
    use_threads(threads)


def kill(shards, k):
    """Lose shard k, and the next message to it."""
    shards._workers[k]._die()


def kill_before(shards, moments):
    """Lose a shard just before the questions with these numbers, each in turn."""
    ask, asked = shards.ask, iter(range(10**9))

    def wrapped(method, args):
        number = next(asked)
        if number in moments:
            kill(shards, number % shards.n)
        return ask(method, args)

    shards.ask = wrapped
