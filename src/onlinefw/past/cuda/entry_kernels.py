"""The CUDA kernels over the observed entries of a matrix, compiled for a precision."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import cupy as cp

__all__ = ["LANES", "SEGMENT", "THREADS", "kernels"]

#: Entries that one warp takes at most.
SEGMENT = 512
#: How many vectors a block has (``LANES`` in entries.cu).
LANES = 8
#: Threads of a block.
THREADS = 256


class Kernels:
    """The functions of entries.cu by name; the first argument is the number of threads."""

    def __init__(self, number_type: str) -> None:
        code = files(__package__).joinpath("entries.cu").read_text()
        self._module = cp.RawModule(code=code, options=("--std=c++14", f"-DREAL={number_type}"))

    def __getattr__(self, name: str) -> Any:
        function = self._module.get_function(name)

        def launch(threads: int, *arguments: Any) -> None:
            if threads:
                function((-(-threads // THREADS),), (THREADS,), arguments)

        setattr(self, name, launch)
        return launch


@cache
def kernels(dtype_name: str) -> Kernels:
    """Return the kernels for "float32" or "float64"."""
    return Kernels({"float32": "float", "float64": "double"}[dtype_name])
