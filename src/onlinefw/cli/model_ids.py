"""The ids of the rows and columns of a matrix model."""

from __future__ import annotations

import numpy as np

from .. import FrankWolfeMatrixCompletion
from .._typing import Array

__all__ = ["ids_of"]


def ids_of(model: FrankWolfeMatrixCompletion) -> tuple[Array, Array]:
    """Return the ids of users and items; numbers from 0 if the model was saved without ids.

    Examples
    --------
    >>> import onlinefw as ofw
    >>> from onlinefw.cli.model_ids import ids_of
    >>> model = ofw.FrankWolfeMatrixCompletion(radius=2.0).fit([[0, 0], [1, 2]], [1.0, 2.0])
    >>> ids_of(model)
    (array([0, 1]), array([0, 1, 2]))
    """
    rows, columns = model.shape_
    return (
        getattr(model, "row_ids_", np.arange(rows)),
        getattr(model, "col_ids_", np.arange(columns)),
    )
