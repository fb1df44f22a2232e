"""The parts of a learner, made again from its state.

Built-in parts are found by name in the tables of this module: loading a state runs nothing else.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .._state import check_state
from .._typing import State
from .._validation import check_part
from ..objectives import (
    GradientOracle,
    LinearObjective,
    Objective,
    ObservedEntries,
    RunningLeastSquares,
    SummaryObjective,
)
from .correctives import Corrective
from .newton_steps import NewtonSteps
from .ridge_sweeps import RidgeSweeps

__all__ = ["describe_corrective", "rebuild_corrective", "rebuild_objective"]

OBJECTIVES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        GradientOracle,
        LinearObjective,
        ObservedEntries,
        RunningLeastSquares,
        SummaryObjective,
    )
}
CORRECTIVES: dict[str, type[Corrective]] = {cls.__name__: cls for cls in (NewtonSteps, RidgeSweeps)}


def rebuild_objective(state: State, given: Objective | None = None, **parts: Any) -> Objective:
    """Return the objective that was given, or else the built-in one that was described."""
    if given is not None:
        return given
    check_state(state, "objective", "shape", "iterate")
    unknown = set(parts) - {"loss", "fn", "value", "device", "workers", "log_dir"}
    if unknown:
        raise ValueError(
            f"from_state does not know the part {sorted(unknown)[0]!r}; the parts are constraint, "
            "step, loss, fn, value, device, workers, log_dir, objective and, of an "
            "OnlineFrankWolfe, corrective"
        )
    if state["objective"] not in OBJECTIVES:
        raise ValueError(
            f"this state was saved with an objective of your own ({state['objective']}): "
            "rebuild it and pass it as from_state(state, objective=...)"
        )
    return OBJECTIVES[state["objective"]].from_state(state, **parts)


def describe_corrective(corrective: Corrective | None) -> State | None:
    """Return the name of a corrective and its own state."""
    if corrective is None:
        return None
    return {"corrective": type(corrective).__name__, "state": corrective.state_dict()}


def rebuild_corrective(state: State | None, given: Corrective | None = None) -> Corrective | None:
    """Return the corrective that was described; one of the user's own is given again.

    What is given goes on from the state, if that is the state of its class.
    """
    if given is not None:
        check_part("corrective", given, Corrective, "RidgeSweeps() or NewtonSteps()")
    if state is None:
        return deepcopy(given)
    check_state(state, "corrective", "state")
    name = state["corrective"]
    if given is not None:
        corrective = deepcopy(given)
    elif name in CORRECTIVES:
        corrective = CORRECTIVES[name]()
    else:
        raise ValueError(
            f"this state was saved with a corrective of your own ({name}): "
            "pass it again as from_state(state, corrective=...)"
        )
    if type(corrective).__name__ == name:
        corrective.load_state(state["state"])
    return corrective
