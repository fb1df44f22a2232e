"""Projection-free online learning with certificates.

    import onlinefw as ofw

    objective = ofw.objectives.LinearObjective(ofw.losses.Logistic())
    learner = ofw.OnlineFrankWolfe(objective, ofw.sets.L1Ball(10.0))
    round = learner.observe(X, y)     # one batch, one step, one pass over the past
    learner.theta, learner.certificate()
    X_new @ learner.theta             # predictions; there is no intercept

Modules: ``losses``, ``sets``, ``steps``, ``objectives``, ``baselines``, ``theory``,
``datasets``, ``iterates``, ``atoms``, ``plots``, ``files``, ``distributed``. They are loaded when
first used, so that importing the package (and starting the command line) is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import (
        algorithms,
        atoms,
        baselines,
        datasets,
        distributed,
        estimators,
        evaluate,
        files,
        iterates,
        losses,
        objectives,
        plots,
        readers,
        sets,
        steps,
        theory,
    )
    from ._whole import BrokenModel
    from .algorithms import (
        NewtonSteps,
        OnlineAwayFrankWolfe,
        OnlineFrankWolfe,
        OnlinePairwiseFrankWolfe,
        RidgeSweeps,
        Round,
        SummaryFrankWolfe,
    )
    from .client import Client
    from .estimators import (
        FrankWolfeClassifier,
        FrankWolfeMatrixCompletion,
        FrankWolfeRecommender,
        FrankWolfeRegressor,
        RadiusSearch,
    )
    from .factors import OnlineFactors
    from .files import load, load_checkpoint, save, save_checkpoint

__all__ = [
    "BrokenModel",
    "Client",
    "FrankWolfeClassifier",
    "FrankWolfeMatrixCompletion",
    "FrankWolfeRecommender",
    "FrankWolfeRegressor",
    "NewtonSteps",
    "OnlineAwayFrankWolfe",
    "OnlineFactors",
    "OnlineFrankWolfe",
    "OnlinePairwiseFrankWolfe",
    "RadiusSearch",
    "RidgeSweeps",
    "Round",
    "SummaryFrankWolfe",
    "__version__",
    "algorithms",
    "atoms",
    "baselines",
    "datasets",
    "distributed",
    "estimators",
    "evaluate",
    "files",
    "iterates",
    "load",
    "load_checkpoint",
    "losses",
    "objectives",
    "plots",
    "readers",
    "save",
    "save_checkpoint",
    "sets",
    "steps",
    "theory",
]

_HOME = {
    "BrokenModel": "_whole",
    "Client": "client",
    "FrankWolfeClassifier": "estimators",
    "FrankWolfeMatrixCompletion": "estimators",
    "FrankWolfeRecommender": "estimators",
    "FrankWolfeRegressor": "estimators",
    "NewtonSteps": "algorithms",
    "OnlineAwayFrankWolfe": "algorithms",
    "OnlineFactors": "factors",
    "OnlineFrankWolfe": "algorithms",
    "OnlinePairwiseFrankWolfe": "algorithms",
    "RadiusSearch": "estimators",
    "RidgeSweeps": "algorithms",
    "Round": "algorithms",
    "SummaryFrankWolfe": "algorithms",
    "load": "files",
    "load_checkpoint": "files",
    "save": "files",
    "save_checkpoint": "files",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
