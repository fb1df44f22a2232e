"""Every real data set by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .mnist import fetch_mnist
from .movielens import fetch_movielens
from .rcv1 import fetch_rcv1_binary, fetch_rcv1v2_subset
from .single_pixel import fetch_single_pixel

__all__ = ["LOADERS", "fetch"]

LOADERS: dict[str, Callable[[], Any]] = {
    "movielens100k": lambda: fetch_movielens("100k"),
    "movielens1m": lambda: fetch_movielens("1m"),
    "movielens20m": lambda: fetch_movielens("20m"),
    "mnist": fetch_mnist,
    "rcv1": fetch_rcv1_binary,
    "rcv1v2-subset": fetch_rcv1v2_subset,
    "R64": lambda: fetch_single_pixel("R64"),
    "mug64": lambda: fetch_single_pixel("mug64"),
}


def fetch(name: str) -> Any:
    """Load a real data set by the name that ``ofw data`` lists.

    Parameters
    ----------
    name : str
        movielens100k, movielens1m, movielens20m, mnist, rcv1, rcv1v2-subset, R64 or mug64.

    Returns
    -------
    Ratings, Rows or SinglePixel

    Examples
    --------
    >>> from onlinefw.datasets import fetch
    >>> fetch("movielens")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: no data set 'movielens'; choose from movielens100k, movielens1m, movielens20m, ...
    """
    if name not in LOADERS:
        raise ValueError(f"no data set {name!r}; choose from {', '.join(LOADERS)}")
    return LOADERS[name]()
