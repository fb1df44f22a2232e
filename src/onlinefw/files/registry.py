"""The classes that a checkpoint may name: onlinefw's own, from a fixed list of modules."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import MappingProxyType

__all__ = ["class_name", "registry"]

#: Where everything lives that an estimator consists of.
MODULES = (
    "_growing",
    "algorithms.newton_steps",
    "algorithms.online_away",
    "algorithms.online_fw",
    "algorithms.ridge_sweeps",
    "algorithms.rounds",
    "algorithms.side_by_side",
    "atoms",
    "estimators.classifier",
    "estimators.history",
    "estimators.matrix_completion",
    "estimators.path",
    "estimators.race",
    "estimators.radius_search",
    "estimators.regressor",
    "estimators.smoothed_weights",
    "fitting.ratings",
    "fitting.row_queue",
    "fitting.rows",
    "fitting.scaling",
    "fitting.score_path",
    "fitting.scores",
    "iterates.active_set",
    "iterates.dense",
    "iterates.low_rank",
    "losses",
    "objectives.biases",
    "objectives.entries",
    "objectives.entry_store",
    "objectives.host_entries",
    "objectives.host_gram",
    "objectives.host_predictions",
    "objectives.least_squares",
    "objectives.linear",
    "objectives.row_loss",
    "objectives.row_store",
    "objectives.rows",
    "objectives.sorted_store",
    "objectives.tail",
    "readers.id_map",
    "readers.integer_table",
    "sets.birkhoff",
    "sets.box",
    "sets.group",
    "sets.ksparse",
    "sets.lp",
    "sets.polytope",
    "sets.product",
    "sets.simplex",
    "sets.spectral",
    "steps",
)


@cache
def registry() -> MappingProxyType[str, type]:
    """Return the classes by name, ``module.Class`` within onlinefw.

    Examples
    --------
    >>> from onlinefw.files.registry import registry
    >>> registry()["losses.Square"]
    <class 'onlinefw.losses.Square'>
    """
    package = __name__.split(".")[0]
    classes = {}
    for name in MODULES:
        module = import_module(f"{package}.{name}")
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__:
                classes[f"{name}.{value.__qualname__}"] = value
    return MappingProxyType(classes)


def class_name(cls: type) -> str | None:
    """Return the name of a class that a checkpoint may hold, or None."""
    name = f"{cls.__module__.partition('.')[2]}.{cls.__qualname__}"
    return name if registry().get(name) is cls else None
