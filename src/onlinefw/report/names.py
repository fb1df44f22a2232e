"""Names beside points, none upon another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import Array

__all__ = ["put_names"]

#: Points (1/72 inch) of the letters, and how wide and high one is, about: the browser decides.
SIZE, WIDE, HIGH = 9.5, 0.62, 1.25
#: Letters of a name, at most, and points between a name and its point.
LONGEST, APART = 20, 3.0


def put_names(axes: Any, points: Array, names: Sequence[str]) -> None:
    """Write names beside points, the first ones first; one that has no room is left out.

    Each is tried above and below its point, first towards the middle of the picture, so that it
    does not run out of it.
    """
    axes.figure.draw_without_rendering()  # from now on it is known where the points are
    inches = axes.figure.dpi_scale_trans.inverted()
    places = 72.0 * inches.transform(axes.transData.transform(points))
    middle = 72.0 * inches.transform(axes.transAxes.transform((0.5, 0.5)))[0]
    taken: list[Array] = []
    for point, place, name in zip(points, places, names, strict=True):
        text = name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
        width, height = WIDE * SIZE * len(text), HIGH * SIZE
        inwards = 1 if place[0] < middle else -1
        for side, level in ((inwards, 1), (inwards, -1), (-inwards, 1), (-inwards, -1)):
            x, y = place + APART * np.array([side, level])
            box = np.array([min(x, x + side * width), min(y, y + level * height), width, height])
            if not any(_overlap(box, other) for other in taken):
                taken.append(box)
                axes.annotate(
                    text,
                    point,
                    xytext=(APART * side, APART * level),
                    textcoords="offset points",
                    fontsize=SIZE,
                    ha="left" if side > 0 else "right",
                    va="bottom" if level > 0 else "top",
                    parse_math=False,
                )
                break


def _overlap(one: Array, other: Array) -> bool:
    """Whether two boxes (left, bottom, width, height) have a point in common."""
    return bool(np.all(one[:2] < other[:2] + other[2:]) and np.all(other[:2] < one[:2] + one[2:]))
