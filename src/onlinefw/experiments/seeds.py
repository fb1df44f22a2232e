"""Which seeds an experiment plays.

Where a first run had shown which claims were undecided, and their number of seeds was raised for
that, a full run takes fresh seeds: with the first ones among them, one would go on sampling until
the claim is decided.
"""

from __future__ import annotations

__all__ = ["FRESH", "as_seeds", "fresh_seeds", "named_seeds"]

#: No first run has come as far as this seed.
FRESH = 100


def as_seeds(seeds: int | range) -> range:
    """Return the seeds: so many from 0, or those given."""
    return range(seeds) if isinstance(seeds, int) else seeds


def fresh_seeds(number: int) -> range:
    """Return so many seeds that no first run has played."""
    return range(FRESH, FRESH + number)


def named_seeds(seeds: range) -> dict[str, int]:
    """Return what settings say of seeds; a record is kept whatever they are, since it is of one."""
    return {"seeds": len(seeds), "seeds from": seeds.start}
