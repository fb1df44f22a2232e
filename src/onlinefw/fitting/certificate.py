"""What ``ofw fit``, ``ofw inspect`` and ``ofw report`` tell of a model's certificate."""

from __future__ import annotations

from math import isfinite, isnan
from typing import Any

from .._words import gap_in_words, is_informative

__all__ = ["gap_facts", "gap_said"]


def gap_facts(model: Any) -> dict[str, Any]:
    """Return the gap of a fitted or loaded model, the mean loss, and what the gap proves.

    "certificate is informative" is None where a gap cannot be compared with the loss: if values
    of the loss may be below 0, if it is not convex, or if an older file does not tell the loss.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> from onlinefw.fitting.certificate import gap_facts, gap_said
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> facts = gap_facts(ofw.FrankWolfeRegressor(radius=0.5).fit(X, X[:, 0]))
    >>> facts["gap is a certificate"], facts["certificate is informative"]
    (True, True)
    >>> gap_said({**facts, "gap": 0.0011, "mean loss": 0.11})
    'certificate: its mean loss is at most 0.0011 above the smallest of its radius (1% of the loss)'
    """
    gap, loss = float(model.gap_), float(model.mean_loss_)
    convex, comparable = bool(model.loss_.convex), bool(model.loss_.nonnegative)
    return {
        "gap": gap,
        "gap is a certificate": convex and not isnan(gap),
        "mean loss": loss if isfinite(loss) else None,
        "certificate is informative": is_informative(gap, loss) if convex and comparable else None,
    }


def gap_said(facts: dict[str, Any]) -> str:
    """Say in words what ``gap_facts`` returned."""
    compared = facts["certificate is informative"] is not None
    loss = facts["mean loss"] if compared else None
    return gap_in_words(facts["gap"], facts["gap is a certificate"], loss)
