"""What the pictures of fitted estimators share: the horizontal axis, and how axes look."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .._typing import Array

__all__ = ["check_x", "dress", "fitted", "plain"]

HORIZONTAL = {"t": "round t", "seconds": "seconds of learning"}


def check_x(x: str) -> None:
    """Refuse a horizontal axis that does not exist."""
    if x not in HORIZONTAL:
        raise ValueError(f"x must be one of {', '.join(map(repr, HORIZONTAL))}, got {x!r}")


def fitted(estimator: Any, name: str) -> Any:
    """Return an attribute that fitting makes, or say what is missing."""
    kind = type(estimator).__name__
    if not hasattr(type(estimator), name):
        raise ValueError(
            f"{kind} has no {name}: pass a fitted FrankWolfe estimator (of a search its "
            "best_estimator_, of a pipeline its last step)"
        )
    try:
        return getattr(estimator, name)
    except AttributeError:
        raise NotFittedError(
            f"this {kind} has no {name} yet: call fit or partial_fit first"
        ) from None


def dress(axes: Any, x: str, at: Array, **labels: str) -> None:
    """Set the labels; a horizontal axis of positive numbers is logarithmic, as the history is."""
    axes.set(xlabel=HORIZONTAL[x], **labels)
    if at.size and np.min(at) > 0.0:
        axes.set_xscale("log")
    plain(axes)


def plain(axes: Any) -> None:
    """Show a faint grid, and lines at the left and below only."""
    axes.grid(True, which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
