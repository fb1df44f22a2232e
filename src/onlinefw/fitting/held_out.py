"""Which rows are held out: decided by their number alone, whatever the chunks and restarts."""

from __future__ import annotations

import numpy as np

from .._typing import Array

__all__ = ["held_out"]


def held_out(first: int, n: int, share: float, seed: int = 0) -> Array:
    """Return which of the rows first, ..., first + n - 1 are held out: about a share of them."""
    if not 0.0 <= share < 1.0:
        raise ValueError(f"a share of rows to hold out is at least 0 and below 1, got {share}")
    # SplitMix64: a number from 0 to 2^64 - 1 for every row, as good as random.
    x = np.arange(first, first + n, dtype=np.uint64) + np.uint64((seed << 32) % 2**64)
    with np.errstate(over="ignore"):
        x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)) < np.uint64(share * 2**53)
