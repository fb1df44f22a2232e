"""The door to compiled loops: what they get is checked here, and nowhere else."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar, Self

import numpy as np

from .._threads import share
from .._typing import Array
from .library import library

__all__ = ["BLOCKS", "Pointer", "Struct", "address", "in_threads", "loops", "struct"]

#: What a field of a struct can be besides an array.
NUMBERS = {int: ctypes.c_int64, float: ctypes.c_double}


class Pointer:
    """A field that is an array of one type; ``Pointer("real")`` has the type of its struct.

    An array that is only read may be read-only.
    """

    def __init__(self, dtype: Any, *, optional: bool = False, read: bool = False) -> None:
        self.dtype = None if isinstance(dtype, str) and dtype == "real" else np.dtype(dtype)
        self.optional, self.read = optional, read


#: As long as any array is at least.
NO_BYTES = ctypes.c_char * 0


def address(array: Any, dtype: Any, read: bool = False) -> int:
    """Return where an array begins, if it is one that a loop can take (``read``: only read).

    Examples
    --------
    >>> import numpy as np
    >>> address(np.zeros(3), np.float32)
    Traceback (most recent call last):
        ...
    TypeError: a compiled loop takes whole arrays of float32 in C order, got float64 of shape (3,)
    """
    if isinstance(array, np.ndarray) and array.dtype == dtype:
        flags = array.flags
        if flags.carray:  # five times as quick as asking the array
            return ctypes.addressof(NO_BYTES.from_buffer(array))  # type: ignore[arg-type]
        if read and flags.c_contiguous and flags.aligned:
            return int(array.__array_interface__["data"][0])
    what = f"{getattr(array, 'dtype', type(array).__name__)} of shape {np.shape(array)}"
    raise TypeError(
        f"a compiled loop takes whole arrays of {np.dtype(dtype)} in C order, got {what}"
    )


class Struct(ctypes.Structure):
    """Numbers and arrays as a loop reads them. It keeps the arrays that it points to.

    Subclasses are made with :func:`struct`. Arrays are given by name, and checked then.
    """

    parts: ClassVar[dict[str, Any]]

    def __init__(self, dtype: Any = float, **fields: Any) -> None:
        super().__init__()
        self.dtype = np.dtype(dtype)
        self.kept: dict[str, Any] = {}
        self.set(**fields)

    @property
    def pointer(self) -> Any:
        """What a loop gets."""
        return ctypes.byref(self)

    def set(self, **fields: Any) -> Self:
        """Let fields be these arrays and numbers; None where an array may be missing."""
        for name, value in fields.items():
            part = self.parts[name]
            if part is int or part is float:
                setattr(self, name, value)
                continue
            self.kept[name] = value
            if part is Struct:
                value = None if value is None else ctypes.addressof(value)
            elif not (value is None and part.optional):
                dtype = self.dtype if part.dtype is None else part.dtype
                value = address(value, dtype, part.read)
            setattr(self, name, value)
        return self


def struct(name: str, /, **parts: Any) -> type[Struct]:
    """Make the Python side of a struct of the loops; fields are in the order of the C++ one.

    A field is ``int``, ``float``, a :class:`Pointer` to an array, or ``Struct``, a pointer to one.

    Examples
    --------
    >>> import numpy as np
    >>> Pair = struct("Pair", values=Pointer("real"), n=int)
    >>> pair = Pair(np.float32, values=np.ones(4, np.float32), n=4)
    >>> pair.n
    4
    """
    fields = []
    for field, part in parts.items():
        fields.append((field, NUMBERS.get(part, ctypes.c_void_p)))
    return type(name, (Struct,), {"_fields_": fields, "parts": parts})


class Loops:
    """The compiled loops by their names: ``loops.append_all_f32(...)``; loaded when first asked."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(library(), name)
        function.restype = ctypes.c_int64
        setattr(self, name, function)
        return function

    def of(self, name: str, dtype: Any) -> Any:
        """Return a loop that there is for float32 and float64 (``name_f32``), and for others."""
        dtype = np.dtype(dtype)
        return getattr(self, f"{name}_{dtype.kind}{8 * dtype.itemsize}")


loops = Loops()

#: How the struct of a loop begins whose blocks threads can share.
BLOCKS = {"first": int, "last": int, "blocks": Pointer(np.int64, read=True)}


def in_threads(name: str, call: Struct) -> None:
    """Run a loop over all its blocks, which threads share; see ``_threads.share``."""
    share(_some_blocks, call.kept["blocks"], loops.of(name, call.dtype), call)


def _some_blocks(first: int, last: int, blocks: Array, loop: Any, call: Struct) -> None:
    part: Any = type(call).from_buffer_copy(call)  # each thread has its own
    part.first, part.last = first, last
    loop(part.pointer)
