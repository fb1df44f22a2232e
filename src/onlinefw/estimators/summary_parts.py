"""What ``past="summary"`` asks of the parameters of a linear estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..losses import Loss
from ..objectives.summary import check_place_of_summary
from ..past.place import is_compiled
from ..sets import L1Ball

if TYPE_CHECKING:
    from .linear_model import LinearModel

__all__ = ["check_summary"]

#: Parameters that choose steps or rows, with the only value that they may have.
LEFT_OUT: dict[str, tuple[Any, str]] = {
    "max_past": (None, "it keeps no rows"),
    "away_steps": (False, "its steps are pairwise"),
    "step": (None, "the length of a step is that of the estimated curvature"),
    "inner_steps": ("auto", "there is one step for each row"),
    "corrective": ("auto", "there are no rows to correct with"),
    "epochs": (1, "there are no rows to go over again"),
    "coef_shape": (None, "its coefficients are a vector"),
}


def check_summary(model: LinearModel, loss: Loss) -> None:
    """Refuse parameters that do not go with a summary, with a line that names both."""
    constraint = model.constraint
    if constraint != "l1" and not isinstance(constraint, L1Ball):
        raise ValueError(f'past="summary" learns on the l1 ball, but constraint is {constraint!r}')
    check_place_of_summary(model.device, model.workers)
    for name, (only, why) in LEFT_OUT.items():
        value = getattr(model, name)
        if type(value) is not type(only) or value != only:
            raise ValueError(
                f'past="summary" takes no {name}={value!r}, since {why}: leave it at {only!r}'
            )
    if not is_compiled(loss):
        raise ValueError(
            f'past="summary" takes the built-in losses, but loss is {loss!r}: use one of '
            "onlinefw.losses, or keep rows"
        )
