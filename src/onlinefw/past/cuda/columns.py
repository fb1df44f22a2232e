"""Several arrays of one length that grow together, on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._devices import cupy
from ..._typing import Array
from ..columns import Columns
from .growing import write

__all__ = ["CudaColumns"]


class CudaColumns(Columns):
    """Columns on the device, to which items from this process's memory can be added as well."""

    __slots__ = ()

    @classmethod
    def empty(cls, dtypes: Sequence[Any], xp: Any = None) -> Columns:
        return super().empty(dtypes, cupy() if xp is None else xp)

    def extended(self, *values: Any) -> Columns:
        longer, new = self.lengthened(len(values[0]))
        if len(values[0]):
            for part, items in zip(new, values, strict=True):
                write(part, items)
        return longer

    def kept(self, mask: Array) -> Columns:
        return super().kept(cupy().asarray(np.flatnonzero(mask)))
