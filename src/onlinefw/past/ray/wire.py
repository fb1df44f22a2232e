"""How arguments are sent to workers: small ones in the message, large ones through Ray's store.

By default Ray puts every argument above 100 KB into its object store, and it takes a worker a few
more messages to get it from there. So arrays of medium size are sent in pieces below that size.
Larger ones are stored once, however many workers they are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["Parcel", "unpacked"]

#: Ray keeps arguments up to 100 KB in the message, headers included.
PIECE_BYTES = 90_000
#: Bytes for the other parts of a message.
SPARE = 10_000
#: Arrays of up to so many pieces are sent in the message.
MOST_PIECES = 12
#: Larger arrays are not copied out of the memory that workers share.
COPIED = 2**24


class Parcel:
    """Packs the arguments of calls that go out together.

    Parameters
    ----------
    in_message : int
        Arrays up to so many bytes are sent in messages whole, if Ray was started with that limit.
    in_pieces : bool
        Send arrays of medium size in pieces. For many workers it is faster to store them once,
        since Ray lets workers pass on what is stored.
    """

    def __init__(self, in_message: int = 0, *, in_pieces: bool = True) -> None:
        self._whole = max(PIECE_BYTES, in_message - SPARE)
        self._most = MOST_PIECES * PIECE_BYTES if in_pieces else 0
        self._stored: dict[int, tuple[Any, Any]] = {}  # with the array, so that its id stays in use

    def pack(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """Return how to put the arguments together, and the pieces."""
        pieces: list[Any] = []
        return [self._packed(value, pieces) for value in args], pieces

    def _packed(self, value: Any, pieces: list[Any]) -> Any:
        """Add an argument to the pieces; return how to join them, None if it is a single piece."""
        if sparse.issparse(value):
            rows = sparse.csr_array(value)
            parts = (rows.data, rows.indices, rows.indptr)
            return rows.shape, [self._packed(part, pieces) for part in parts]
        if not isinstance(value, np.ndarray) or value.nbytes <= self._whole:
            pieces.append(value)
        elif value.nbytes <= self._most:
            cut = _cut(np.ascontiguousarray(value))
            pieces.extend(cut)
            return value.shape, len(cut)
        else:
            pieces.append(self._store(value))
        return None

    def _store(self, array: Any) -> Any:
        import ray

        if id(array) not in self._stored:
            self._stored[id(array)] = (array, ray.put(array))
        return self._stored[id(array)][1]


def _cut(array: Any) -> list[Any]:
    flat = array.reshape(-1)
    size = PIECE_BYTES // array.itemsize
    return [flat[start : start + size] for start in range(0, flat.size, size)]


def unpacked(plan: list[Any], pieces: tuple[Any, ...]) -> list[Any]:
    """Return the arguments again.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.past.ray.wire import Parcel, unpacked
    >>> plan, pieces = Parcel().pack((1.0, np.zeros((30_000, 2))))
    >>> len(pieces), [np.shape(value) for value in unpacked(plan, pieces)]
    (7, [(), (30000, 2)])
    """
    left = iter(pieces)
    return [_joined(how, left) for how in plan]


def _joined(how: Any, pieces: Iterator[Any]) -> Any:
    if how is None:
        value = next(pieces)
        # Ray shares its memory read-only, for which numba would compile every kernel once more.
        shared = isinstance(value, np.ndarray) and not value.flags.writeable
        return value.copy() if shared and value.nbytes <= COPIED else value
    shape, parts = how
    if isinstance(parts, int):
        return np.concatenate([next(pieces) for _ in range(parts)]).reshape(shape)
    return sparse.csr_array(tuple(_joined(one, pieces) for one in parts), shape=shape)
