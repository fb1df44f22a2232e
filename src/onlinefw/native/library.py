"""The library of compiled loops, the one that suits the processor."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from . import _build

__all__ = ["library"]

#: ONLINEFW_CPU: what a level is called, and its library.
LEVELS = {"baseline": "x86_64", "v3": "x86_64_v3", "v4": "x86_64_v4"}


@cache
def library() -> ctypes.CDLL:
    """Load the compiled loops, once.

    On x86-64 there are three libraries: ``ONLINEFW_CPU`` (``baseline``, ``v3`` or ``v4``) chooses
    one, else the processor does. In a checkout they are compiled again when a source has changed.
    """
    _build_again()
    asked = os.environ.get("ONLINEFW_CPU")
    if asked and asked not in LEVELS:
        raise ValueError(f"ONLINEFW_CPU must be one of {', '.join(LEVELS)}, got {asked!r}")
    only = _file("")
    if only is not None:
        return ctypes.CDLL(str(only))
    lowest = _load(LEVELS["baseline"])
    best = int(lowest.processor_level())
    level = list(LEVELS).index(asked) if asked else best
    if level > best:
        has = list(LEVELS)[best]
        raise ValueError(f"ONLINEFW_CPU is {asked!r}, and this processor has no more than {has!r}")
    return lowest if level == 0 else _load(list(LEVELS.values())[level])


def _load(level: str) -> ctypes.CDLL:
    path = _file(level)
    if path is None:
        raise ImportError(
            f"the compiled loops of onlinefw are not in {_build.HERE}; install it again "
            "(pip install onlinefw), or build them in a checkout: pip install -e ."
        )
    return ctypes.CDLL(str(path))


def _file(level: str) -> Path | None:
    name = f"loops.{level or 'any'}"
    found = (_build.HERE / f"{name}{suffix}" for suffix in (".so", ".dylib", ".dll"))
    return next((path for path in found if path.is_file()), None)


def _build_again() -> None:
    """Compile in a checkout, if the libraries were made of other sources."""
    if (_build.HERE.parents[2] / "hatch_build.py").is_file() and not _build.is_built():
        try:
            _build.build()
        except (RuntimeError, OSError) as error:
            raise ImportError(str(error)) from None
