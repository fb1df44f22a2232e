"""GPUs to test with: a real one, and the source of its kernels compiled for this machine."""

import pytest

from onlinefw.factors import on_gpu

from ..past.cuda.conftest import _device


@pytest.fixture(params=[pytest.param("gpu", marks=pytest.mark.gpu), "emulated"])
def gpu(request, monkeypatch):
    """Make device="cuda" work."""
    _forget_kernels()
    yield from _device(request.param, monkeypatch)
    _forget_kernels()


def _forget_kernels():
    on_gpu._kernel.cache_clear()
    on_gpu._module.cache_clear()
