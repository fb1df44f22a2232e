"""How fast a model forgets, and whether its data have changed."""

from __future__ import annotations

from typing import Any

__all__ = ["forgetting_facts"]


def forgetting_facts(model: Any) -> dict[str, Any]:
    """Return the half-life in use, and when the data looked as if they had changed.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> from onlinefw.fitting.forgetting import forgetting_facts
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> forgetting_facts(ofw.FrankWolfeRegressor(half_life=20).fit(X, X[:, 0]))
    {'half_life': 20.0, 'changes': []}
    """
    return {"half_life": model.half_life_, "changes": model.changes_.tolist()}
