"""Arrays of other libraries (CuPy, torch), as users pass them in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._devices import check_device, cupy, namespace, to_host

__all__ = ["here", "received", "received_here"]

#: DLPack's numbers for the memory of a CUDA device, plain and managed.
ON_A_GPU = (2, 13)


def _is_on_a_gpu(values: Any) -> bool:
    if values is None or isinstance(values, np.ndarray):
        return False
    if type(values).__module__.startswith("cupyx."):  # sparse matrices
        return True
    where = getattr(values, "__dlpack_device__", None)
    return where is not None and int(where()[0]) in ON_A_GPU


def here(rows: Any) -> Any:
    """Return checked rows (numpy's, scipy's or CuPy's) in this process's memory."""
    return rows if namespace(rows) is np else to_host(rows)


def received(name: str, values: Any, device: str) -> Any:
    """Return an array that is on a GPU as CuPy's (a sparse one as scipy's); others as they are."""
    if not _is_on_a_gpu(values):
        return values
    if device == "cpu":
        raise ValueError(
            f'{name} is on a GPU, but device="cpu": use device="cuda", or bring {name} to this '
            f"process's memory first ({name}.get() with CuPy, {name}.cpu() with torch)"
        )
    if type(values).__module__.startswith("cupyx."):
        return values.get()
    check_device("cuda")  # workers may have CuPy where this process has none
    xp = cupy()
    return values if isinstance(values, xp.ndarray) else xp.from_dlpack(values)


def received_here(name: str, values: Any, device: str) -> Any:
    """Return an array that is on a GPU as numpy's; others as they are."""
    if not _is_on_a_gpu(values):
        return values
    values = received(name, values, device)
    return to_host(values) if _is_on_a_gpu(values) else values
