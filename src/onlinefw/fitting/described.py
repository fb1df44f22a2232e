"""What a model is, what it has seen, and how good it is, as values that JSON has."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from ..estimators import FrankWolfeRecommender, RadiusSearch
from .certificate import gap_facts
from .forgetting import forgetting_facts
from .notes import columns_seen, notes_of

__all__ = ["described"]


def described(model: Any, top: int = 10) -> dict[str, Any]:
    """Return facts about a fitted or loaded model, as values that JSON has."""
    notes = notes_of(model)
    summary = notes.get("summary", {})
    facts: dict[str, Any] = {"model": type(model).__name__}
    best = model.best_estimator_ if isinstance(model, RadiusSearch) else model
    facts["loss"] = str(best.loss)
    facts["rounds"] = int(model.n_rounds_)
    for name in ("rows learned", "progressive", "held out", "test file"):
        if name in summary:
            facts[name] = summary[name]
    facts |= gap_facts(best)
    if best.half_life is not None:
        facts["forgetting"] = forgetting_facts(best)
    if isinstance(model, FrankWolfeRecommender):
        facts |= {"users": len(model.users_), "items": len(model.items_), "rank": model.rank_}
        facts["unobserved"] = model.unobserved_
        popular = sorted(model.popularity_.items(), key=lambda one: -one[1])[:top]
        facts["most popular"] = {str(item): float(n) for item, n in popular}
        return facts
    if not hasattr(best, "n_features_in_"):  # pairs of rows and columns
        shape = model.shape_
        facts |= {"rows": shape[0], "columns": shape[1], "rank": model.rank_}
        facts["radius"] = model.radius_
        mood = model.mood_
        facts |= {} if mood is None else {"mood": mood._asdict()}
        return facts
    coef = np.reshape(best.coef_, (-1, best.n_features_in_))
    facts |= {"nonzeros": int(np.count_nonzero(coef)), "coefficients": coef.size}
    facts |= {"features": coef.shape[1], "features used": int(coef.any(axis=0).sum())}
    facts["radius"] = best.radius_
    if notes.get("columns are scaled"):
        facts["radius is for"] = (
            "columns on one scale (mean 0, deviation 1); coefficients are in the units of the file"
        )
    names = notes.get("features") or [f"feature {j + 1}" for j in range(coef.shape[1])]
    largest = [_largest(row, names, top) for row in coef]
    seen = columns_seen(notes)
    facts["seen in rows"] = {names[j]: seen[j] for j in seen if any(names[j] in r for r in largest)}
    if not hasattr(model, "classes_"):
        facts["largest coefficients"] = largest[0]
        return facts
    facts["classes"] = labels = model.classes_.tolist()
    # Two classes have one row of coefficients: positive ones favour the second class.
    favoured = labels if len(labels) > 2 else labels[1:]
    facts["largest coefficients"] = {
        str(label): row for label, row in zip(favoured, largest, strict=True)
    }
    return facts


def _largest(row: Array, names: list[str], top: int) -> dict[str, float]:
    order = np.argsort(-np.abs(row), kind="stable")[:top]
    return {names[j]: float(row[j]) for j in order if row[j] != 0.0}
