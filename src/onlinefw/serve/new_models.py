"""Models that are begun by the server: their kinds and settings."""

from __future__ import annotations

import json
from typing import Any

from .. import estimators
from ..estimators import FrankWolfeClassifier, FrankWolfeMatrixCompletion, FrankWolfeRegressor

__all__ = ["KINDS", "new_model", "settings_of"]

KINDS: dict[str, Any] = {
    "matrix": FrankWolfeMatrixCompletion,
    "regression": FrankWolfeRegressor,
    "classification": FrankWolfeClassifier,
}
if hasattr(estimators, "FrankWolfeRecommender"):
    KINDS["clicks"] = estimators.FrankWolfeRecommender

#: Settings that make no sense in a server: the data come one by one, and stay in this process.
NOT_HERE = frozenset({"batch_size", "epochs", "shuffle", "verbose", "device", "workers"})


def settings_of(kind: str, given: list[str]) -> dict[str, Any]:
    """Return settings from ``name=value``, where the value is JSON or else text.

    Examples
    --------
    >>> from onlinefw.serve.new_models import settings_of
    >>> settings_of("matrix", ["half_life=5000", "loss=square"])
    {'half_life': 5000, 'loss': 'square'}
    """
    _check_kind(kind)
    names = sorted(set(KINDS[kind]._get_param_names()) - NOT_HERE)
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            raise ValueError(
                f"--set takes name=value, where the names are {', '.join(names)}; got {text!r:.60}"
            )
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


def new_model(kind: str, settings: dict[str, Any]) -> Any:
    """Return a model that has learned nothing yet."""
    _check_kind(kind)
    return KINDS[kind](**settings)


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"this version of onlinefw has no models of the kind {kind!r:.40}")
