"""Where arrays are: in this process's memory, or on a CUDA device through CuPy.

CuPy is imported when a device is asked for, never before.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from ._typing import Array

__all__ = ["NoDevice", "check_device", "check_device_name", "cupy", "namespace", "to_host"]

DEVICES = ("cpu", "cuda", "auto")
INSTALL = "install it with: pip install 'onlinefw[gpu]'"


class NoDevice(RuntimeError):
    """The device that was asked for is not on this machine, or what it needs is not installed."""


def check_device(device: Any) -> str:
    """Return "cpu" or "cuda"; "auto" is "cuda" where that works."""
    device = check_device_name(device)
    reason = None if device == "cpu" else _why_not()
    if device == "cuda" and reason is not None:
        raise NoDevice(f'device="cuda" {reason}, or use device="cpu"')
    return "cpu" if device == "cpu" or reason is not None else "cuda"


def check_device_name(device: Any) -> str:
    """Return the name of a device, which need not be on this machine."""
    if not (isinstance(device, str) and device in DEVICES):
        raise ValueError(f'device must be one of "cpu", "cuda" or "auto", got {device!r}')
    return device


@cache
def _why_not() -> str | None:
    """Say why there is no CUDA device; None if there is one."""
    try:
        import cupy
    except ImportError:
        return f"needs CuPy; {INSTALL}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy's own classes, and whatever a broken driver raises
        return f"finds no usable GPU ({str(error).splitlines()[0]}); check the NVIDIA driver"
    return None if count else "finds no GPU on this machine; run it on one that has an NVIDIA GPU"


def cupy() -> Any:
    """Return the CuPy module, after ``check_device``."""
    import cupy

    return cupy


def namespace(array: Any) -> Any:
    """Return numpy or cupy, whichever the array belongs to."""
    loaded = sys.modules.get("cupy")
    return loaded if loaded is not None and isinstance(array, loaded.ndarray) else np


def to_host(array: Any) -> Array:
    """Return an array in this process's memory."""
    return np.asarray(array.get() if hasattr(array, "get") else array)
