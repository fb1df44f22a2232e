"""Loops that are compiled when the package is built: C++ with a plain C interface, and one door.

Every array is checked where it is made or comes in: :func:`address` looks at its type, order and
memory, and a :class:`Struct` keeps it together with the pointer that a loop gets. Indices are
checked by those who take them (``_validation``, states), since only they know what they point into.

A loop gets structs and numbers, allocates nothing, calls nothing back, and lets go of the GIL.
"""

from .door import BLOCKS, Pointer, Struct, address, in_threads, loops, struct
from .library import library

__all__ = [
    "BLOCKS",
    "Pointer",
    "Struct",
    "address",
    "in_threads",
    "library",
    "loops",
    "struct",
]
