"""The CUDA source itself, compiled for a CPU: what it computes can be tested without a GPU."""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from .fake_cupy import ndarray

#: Kernels that are there only where something is defined.
NEEDED = {"fused_rows": "CHUNKS ", "slope_sums": "LANES "}
HEADER = Path(__file__).with_name("emulated_cuda.h")


def compiler():
    """Return a C++ compiler, or None."""
    return shutil.which("g++")


@cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="emulated-kernels-")


@cache
def _library(code):
    """Compile all kernels of a source that its definitions allow for."""
    names = [
        name
        for name in re.findall(r"__global__ void[^{;]*?(\w+)\(\n? *(?:const|int|long)", code)
        if f"#define {NEEDED.get(name, '')}" in code
    ]
    code = f'#include "{HEADER}"\n{code}\n' + "".join(
        f'extern "C" void launch_{name}(const unsigned* grid, const unsigned* threads, void** args)'
        f"{{ emulation::run({name}, grid, threads, args); }}\n"
        for name in names
    )
    stem = Path(_folder().name) / hashlib.sha1(code.encode()).hexdigest()
    source, library = stem.with_suffix(".cpp"), stem.with_suffix(".so")
    source.write_text(code)
    options = ("-std=c++17", "-O1", "-w", "-ffp-contract=off", "-shared", "-fPIC")
    subprocess.run([compiler(), *options, "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


class RawModule:
    """Like CuPy's."""

    def __init__(self, code):
        self._code = code

    def get_function(self, name):
        launcher = getattr(_library(self._code), f"launch_{name}")

        def launch(grid, block, args):
            values = []  # a pointer is passed as what it points to, a number as itself
            for one in args:
                if isinstance(one, ndarray):
                    assert one.array.flags.c_contiguous
                    values.append(np.array([one.array.ctypes.data], np.uint64))
                else:
                    assert isinstance(one, np.generic)
                    values.append(np.array([one]))
            pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
            sizes = [(ctypes.c_uint * 2)(*size, *[1] * (2 - len(size))) for size in (grid, block)]
            launcher(*sizes, pointers)

        return launch
