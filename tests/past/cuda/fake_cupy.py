"""A stand-in for CuPy: arrays in host memory that refuse what CuPy refuses.

A mixture of device and host arrays is an error, and so is a silent conversion to numpy: what runs
with these arrays keeps its data apart as it must on a device. Kernels are numpy functions with the
arguments of the real ones (``reference_kernels``).
"""

from types import ModuleType

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .reference_kernels import KERNELS


def _bare(value):
    """Return the numpy array of a device array; refuse host arrays."""
    if isinstance(value, ndarray):
        return value.array
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (tuple, list)):
        return type(value)(_bare(item) for item in value)
    return value


def _device(value):
    """Return results as device arrays; numpy's scalars are 0-dimensional arrays there."""
    return ndarray(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


class ndarray(NDArrayOperatorsMixin):
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if out is not None:
            kwargs["out"] = tuple(_bare(one) for one in out)
        result = getattr(ufunc, method)(*(_bare(one) for one in inputs), **kwargs)
        return out[0] if out is not None else _device(result)

    def __getattr__(self, name):
        if name in ("shape", "dtype", "size", "ndim", "nbytes"):
            return getattr(self.array, name)
        if name in ("any", "astype", "copy", "max", "min", "reshape", "sum"):
            method = getattr(self.array, name)
            return lambda *args, **kwargs: _device(method(*args, **kwargs))
        raise AttributeError(name)

    @property
    def T(self):
        return ndarray(self.array.T)

    def __len__(self):
        return len(self.array)

    def __iter__(self):
        return (ndarray(row) for row in self.array)

    def __getitem__(self, key):
        return ndarray(np.asarray(self.array[_bare(key)]))

    def __setitem__(self, key, value):
        self.array[_bare(key)] = _bare(value)

    def __float__(self):
        return float(self.array)

    def __int__(self):
        return int(self.array)

    def __bool__(self):
        return bool(self.array)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self):
        return self

    def get(self, out=None):
        if out is None:
            return self.array.copy()
        assert out.flags.c_contiguous and out.shape == self.shape and out.dtype == self.dtype
        out[...] = self.array
        return out

    def set(self, values):
        assert type(values) is np.ndarray and values.flags.c_contiguous
        assert self.array.flags.c_contiguous and values.dtype == self.dtype
        if values.shape != self.shape:
            raise ValueError("Shape mismatch")
        self.array[...] = values


class RawModule:
    def __init__(self, code):
        self._defined = dict(
            line.split(maxsplit=2)[1:] for line in code.splitlines() if line.startswith("#define ")
        )
        self._code = code

    def get_function(self, name):
        assert f" {name}(" in self._code
        kernel = KERNELS[name]

        def launch(grid, block, args):
            assert all(size >= 1 for size in (*grid, *block)) and np.prod(block) <= 1024
            assert all(isinstance(one, (ndarray, np.generic)) for one in args)
            for one in args:  # kernels know nothing of strides
                assert not isinstance(one, ndarray) or one.array.flags.c_contiguous
            kernel(self._defined, grid, *(_bare(one) for one in args))

        return launch


def _asarray(value, dtype=None):
    return ndarray(np.array(value.array if isinstance(value, ndarray) else value, dtype))


def _wrapped(function):
    def call(*args, **kwargs):
        return _device(function(*(_bare(one) for one in args), **kwargs))

    return call


def make():
    """Return a module to stand in for ``cupy``."""
    module = ModuleType("cupy")
    module.ndarray, module.RawModule, module.asarray = ndarray, RawModule, _asarray
    module.from_dlpack = lambda value: _asarray(value.__dlpack__())
    for name in ("arange", "empty", "full", "zeros"):
        setattr(module, name, _wrapped(getattr(np, name)))
    for name in ("ascontiguousarray", "bincount", "column_stack", "cumsum", "searchsorted"):
        setattr(module, name, _wrapped(getattr(np, name)))
    module.concatenate = _wrapped(np.concatenate)
    module.argsort = _wrapped(lambda values: np.argsort(values, kind="stable"))
    return module
