"""Parameters of estimators as plain values, and back, from a fixed list of classes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._randomness import generator_from_state, generator_state
from .._state import describe, rebuild
from .._typing import State
from ..algorithms import NewtonSteps, RidgeSweeps
from ..estimators import (
    FrankWolfeClassifier,
    FrankWolfeMatrixCompletion,
    FrankWolfeRecommender,
    FrankWolfeRegressor,
    RadiusSearch,
)
from ..objectives import RunningBiases

__all__ = ["ESTIMATORS", "parameters_from_tree", "parameters_to_tree"]

ESTIMATORS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        FrankWolfeClassifier,
        FrankWolfeMatrixCompletion,
        FrankWolfeRecommender,
        FrankWolfeRegressor,
        RadiusSearch,
    )
}
#: Parts that are made from their public fields.
CORRECTIVES: dict[str, type[Any]] = {cls.__name__: cls for cls in (NewtonSteps, RidgeSweeps)}
#: Parameters of older files that no estimator has any more. They were about learning only.
REMOVED = frozenset({"atoms_per_round"})


def parameters_to_tree(estimator: BaseEstimator) -> State:
    """Return the constructor's parameters; parts of the user's own are refused.

    Examples
    --------
    >>> import onlinefw as ofw
    >>> from onlinefw.files.parameters import parameters_to_tree
    >>> parameters_to_tree(ofw.FrankWolfeRegressor(ofw.sets.L1Ball(2.0)))["constraint"]
    {'part': 'L1Ball', 'radius': 2.0}
    """
    owner = type(estimator).__name__
    parameters = estimator.get_params(deep=False)
    return {name: _to_tree(value, f"{owner}.{name}") for name, value in parameters.items()}


def _to_tree(value: Any, name: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return value
    if isinstance(value, np.ndarray):
        return {"array": value}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_to_tree(item, name) for item in value]}
    if isinstance(value, np.random.Generator):
        return {"generator": generator_state(value)}
    if type(value) is RunningBiases:
        return {"biases": {"shrinkage": value.shrinkage, "joint": value.joint}}
    cls = type(value)
    if CORRECTIVES.get(cls.__name__) is cls:
        fields = [f.name for f in dataclasses.fields(value) if not f.name.startswith("_")]
        return {"corrective": cls.__name__, "fields": {f: getattr(value, f) for f in fields}}
    if ESTIMATORS.get(cls.__name__) is cls:
        return {"estimator": cls.__name__, "parameters": parameters_to_tree(value)}
    described = describe(value)
    if "custom" in described:
        raise ValueError(
            f"a file cannot hold {name}={value!r}, which is your own: only onlinefw's own losses, "
            "sets and step rules can be saved"
        )
    return described


def parameters_from_tree(tree: State) -> dict[str, Any]:
    """Return the parameters that were described."""
    return {name: _from_tree(value) for name, value in tree.items() if name not in REMOVED}


def _from_tree(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return tree["array"]
    if "list" in tree:
        return [_from_tree(item) for item in tree["list"]]
    if "tuple" in tree:
        return tuple(_from_tree(item) for item in tree["tuple"])
    if "generator" in tree:
        return generator_from_state(tree["generator"])
    if "biases" in tree:
        return RunningBiases(tree["biases"]["shrinkage"], joint=tree["biases"]["joint"])
    if "corrective" in tree:
        return CORRECTIVES[tree["corrective"]](**tree["fields"])
    if "estimator" in tree:
        return ESTIMATORS[tree["estimator"]](**parameters_from_tree(tree["parameters"]))
    return rebuild(tree, "part")
