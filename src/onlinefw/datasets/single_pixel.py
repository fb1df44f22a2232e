"""Readings of the single-pixel camera of Rice University."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .._typing import Array
from .errors import DataFileError
from .registry import Entry
from .store import load_arrays, reading
from .synthetic import SinglePixel

__all__ = ["fetch_single_pixel"]

NAMES = ("R64", "mug64")


def fetch_single_pixel(name: str = "R64") -> SinglePixel:
    """Load real readings of a single-pixel camera: the paper's letter R, or a mug.

    The camera's page publishes the files without lasting addresses: put ``R64.mat``, or
    ``Mug_64.mat`` and ``Phi_64.mat``, into the data folder by hand.

    Parameters
    ----------
    name : {"R64", "mug64"}
        Two objects in front of the same camera; one is no substitute for the other.

    Returns
    -------
    SinglePixel
        ``masks`` of bytes 0 and 1, one row per reading ``y``, with the pixels in the order of the
        picture's rows; ``image`` is None, as the truth is not known.

    Examples
    --------
    >>> from onlinefw.datasets import fetch_single_pixel
    >>> camera = fetch_single_pixel("mug64")  # doctest: +SKIP
    >>> camera.masks.shape, camera.y.shape  # doctest: +SKIP
    ((4170, 4096), (4170,))
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}, got {name!r}")
    arrays = load_arrays(name, _parse)
    masks, y = arrays["Phi"], arrays["y"].reshape(-1)
    side = math.isqrt(masks.shape[1])
    # The camera numbers pixels by columns from the bottom; renumber them by rows from the top.
    order = np.flipud(np.arange(side * side).reshape(side, side, order="F")).reshape(-1)
    return SinglePixel(masks[: y.size, order], y, None)


def _parse(entry: Entry, paths: dict[str, Path]) -> dict[str, Array]:
    from scipy.io import loadmat

    readings, *apart = paths.values()
    with reading(readings):
        content = loadmat(readings)
        y = np.asarray(content["y"], dtype=np.float64).reshape(-1)
    if "Phi" not in content and not apart:
        raise DataFileError(
            f"{readings} has no masks Phi; put Phi_64.mat of {entry.page} beside it"
        )
    masks = readings if "Phi" in content else apart[0]
    with reading(masks):
        Phi = np.asarray(content["Phi"] if masks == readings else loadmat(masks)["Phi"])
        if Phi.ndim != 2 or Phi.shape[1] != entry.counts["pixels"] or len(Phi) < y.size:
            raise ValueError(f"Phi is {Phi.shape}, for {y.size} readings")
        if not ((Phi == 0) | (Phi == 1)).all():
            raise ValueError("Phi has values other than 0 and 1")
    return {"y": y, "Phi": Phi[: y.size].astype(np.uint8)}
