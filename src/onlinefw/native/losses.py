"""How compiled loops know a loss: by a number and a parameter."""

from __future__ import annotations

from ..losses import (
    Bernoulli,
    Correntropy,
    Exponential,
    Gaussian,
    Logistic,
    Loss,
    Poisson,
    Sigmoid,
    Square,
)

__all__ = ["loss_code"]

#: As in ``losses.hpp``; a Gaussian differs from a square by a constant.
KINDS = (Square, Bernoulli, Poisson, Exponential, Logistic, Sigmoid, Correntropy)
PARAMETERS = {Exponential: "floor", Sigmoid: "sharpness", Correntropy: "sigma"}


def loss_code(loss: Loss) -> tuple[int, float] | None:
    """Return the kind and the parameter of a loss; None for one of the user's own.

    Examples
    --------
    >>> from onlinefw.losses import Sigmoid
    >>> loss_code(Sigmoid(sharpness=4.0))
    (5, 4.0)
    """
    kind = Square if type(loss) is Gaussian else type(loss)
    if kind not in KINDS:
        return None
    parameter = PARAMETERS.get(kind)
    return KINDS.index(kind), 0.0 if parameter is None else float(getattr(loss, parameter))
