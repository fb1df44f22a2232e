"""Whether an estimator can go on learning."""

from __future__ import annotations

from typing import Any

__all__ = ["CANNOT_LEARN", "check_can_learn"]

CANNOT_LEARN = (
    "a model file only predicts; go on from a checkpoint (onlinefw.files.load_checkpoint), "
    "or call fit to begin anew"
)


def check_can_learn(estimator: Any) -> None:
    """Refuse to teach an estimator that came from a model file: the past is not in it."""
    if vars(estimator).get("_only_predicts"):
        raise ValueError(CANNOT_LEARN)
