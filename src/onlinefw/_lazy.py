"""Packages whose names are imported when asked for, so that one does not load all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy"]


def lazy(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, from the module of each of its names.

    Examples
    --------
    >>> get, names = lazy("onlinefw", {"Harmonic": "steps"})
    >>> get("Harmonic").__name__, names()
    ('Harmonic', ['Harmonic'])
    """

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{home[name]}", package), name)

    return get, lambda: sorted(home)
