"""Reading models and checkpoints; for a file of the other kind, name the right command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .. import FrankWolfeMatrixCompletion, FrankWolfeRecommender
from .._typing import Array
from ..files import ModelFileError, load, read_header

__all__ = ["check_checkpoint", "ids_of", "load_model", "nobody"]


def load_model(path: Path) -> Any:
    """Return the estimator of a model file; refuse a checkpoint."""
    if read_header(path)["kind"] == "checkpoint":
        raise ModelFileError(
            f"{path} is a checkpoint, from which ofw fit --resume goes on; the model is the file "
            "that ofw fit has written with -o"
        )
    return load(path)


def check_checkpoint(path: Path) -> None:
    """Refuse to go on from a model file."""
    if read_header(path)["kind"] == "model":
        raise ModelFileError(
            f"{path} is a model file, which only predicts (ofw predict); --resume needs the file "
            "that ofw fit has written with --checkpoint"
        )


def ids_of(
    model: FrankWolfeMatrixCompletion | FrankWolfeRecommender,
) -> tuple[Array, Array]:
    """Return the ids of users and items; numbers from 0 if the model was saved without ids."""
    if isinstance(model, FrankWolfeRecommender):
        return model.users_, model.items_
    rows, columns = model.shape_
    row_ids, col_ids = model.row_ids_, model.col_ids_
    return (
        np.arange(rows) if row_ids is None else row_ids,
        np.arange(columns) if col_ids is None else col_ids,
    )


def nobody(ids: Array) -> Any:
    """Return an id of the same kind that is none of these."""
    return "\0nobody" if ids.dtype == object else int(ids.max(initial=0)) + 1
