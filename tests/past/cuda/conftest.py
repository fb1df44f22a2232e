"""Devices to test with: a real GPU, and stand-ins that run anywhere."""

import sys

import pytest

from onlinefw import _devices
from onlinefw.past.cuda import row_kernels

from . import emulation, fake_cupy


def _forget_devices():
    _devices._why_not.cache_clear()
    row_kernels._kernel.cache_clear()


def _missing():
    try:
        _devices.check_device("cuda")
    except RuntimeError as error:
        return str(error)
    return None


@pytest.fixture(params=[pytest.param("gpu", marks=pytest.mark.gpu), "stand-in"])
def cuda(request, monkeypatch):
    """Make device="cuda" work, and return what is (or stands in for) the module cupy."""
    yield from _device(request.param, monkeypatch)


@pytest.fixture(
    params=[
        pytest.param("gpu", marks=pytest.mark.gpu),
        "stand-in",
        pytest.param("emulated", marks=pytest.mark.slow),  # compiles C++ for every kernel
    ]
)
def any_cuda(request, monkeypatch):
    """Do the same, and run the source of the kernels on this machine as well."""
    yield from _device(request.param, monkeypatch)


def _device(kind, monkeypatch):
    _forget_devices()
    if kind == "gpu":
        if _missing():
            pytest.skip(_missing())
        yield _devices.cupy()
    else:
        module = fake_cupy.make()
        if kind == "emulated":
            if emulation.compiler() is None:
                pytest.skip("there is no C++ compiler")
            module.RawModule = emulation.RawModule
        monkeypatch.setitem(sys.modules, "cupy", module)
        monkeypatch.setattr(_devices, "_why_not", lambda: None)
        yield module
    monkeypatch.undo()
    _forget_devices()


@pytest.fixture
def in_process(monkeypatch):
    """Let workers be in this process; return what stands in for the module ray."""
    from ..ray.in_process import ray_in_process

    with ray_in_process(monkeypatch) as module:
        yield module


@pytest.fixture
def no_cupy(monkeypatch):
    """Make the import of cupy fail."""
    _forget_devices()
    monkeypatch.setitem(sys.modules, "cupy", None)
    yield
    monkeypatch.undo()
    _forget_devices()


def pytest_collection_modifyitems(items):
    """Tests of a whole file that carries the mark, too."""
    reason = _missing()
    for item in items:
        if item.get_closest_marker("gpu") is not None and reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
