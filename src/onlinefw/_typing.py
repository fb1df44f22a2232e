"""Type names used throughout."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
#: An ndarray, a scipy sparse matrix or array, or (spectral sets only) a LinearOperator.
Direction: TypeAlias = Any
#: State: nested dicts of arrays and JSON-able values.
State: TypeAlias = dict[str, Any]
