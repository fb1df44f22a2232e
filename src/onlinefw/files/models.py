"""Model files: what predicts, and nothing of the past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import State
from ..estimators import FrankWolfeMatrixCompletion, FrankWolfeRecommender
from ..estimators.ids import Ids
from ..readers.id_tables import as_objects
from .checkpoints import load_checkpoint
from .container import read_header, read_tree, write_tree
from .errors import whole
from .format_1 import from_format_1
from .labels import labels_from_tree
from .parameters import ESTIMATORS, parameters_from_tree, parameters_to_tree

__all__ = ["load", "save"]

#: What the rows and the columns of a matrix are called, in arguments and in older files.
IDS = {"row_ids": "rows", "col_ids": "columns"}


def save(
    estimator: Any,
    path: str | Path,
    *,
    row_ids: Any = None,
    col_ids: Any = None,
    notes: dict[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to a model file, which predicts but cannot go on learning.

    The file holds arrays and JSON only, compressed, in a versioned format. It is written
    completely or not at all: if the disk fills up, the previous file stays. Nothing about the
    estimator changes (its certificate is computed, as ``gap_`` does). To stop and go on, use
    :func:`onlinefw.files.save_checkpoint`.

    Parameters
    ----------
    estimator : estimator
        A fitted FrankWolfeRegressor, FrankWolfeClassifier, RadiusSearch,
        FrankWolfeMatrixCompletion or FrankWolfeRecommender. Losses, sets and step rules of your own
        cannot be saved.
    path : str or Path
        Where to; ``.ofw`` is the usual ending.
    row_ids, col_ids : array-like of int or str, optional
        Matrix completion only: what the rows and columns are called, if the model does not know
        or they are to have other ids. The loaded estimator is a model of ids, which are its
        ``row_ids_`` and ``col_ids_``; where only one side is named, the other has its numbers.
    notes : dict, optional
        JSON values of your own, kept as the loaded estimator's ``notes_``.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, onlinefw as ofw
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> model = ofw.FrankWolfeRegressor(radius=2.0).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ofw.save(model, pathlib.Path(folder) / "model.ofw")
    ...     loaded = ofw.load(pathlib.Path(folder) / "model.ofw")
    >>> np.array_equal(loaded.predict(X), model.predict(X))
    True
    """
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise ValueError(
            f"a model file holds one of {', '.join(ESTIMATORS)}, got {estimator!r:.80}"
        )
    check_is_fitted(estimator)
    tree: State = {"estimator": name, "parameters": parameters_to_tree(estimator)}
    ids = None
    if row_ids is not None or col_ids is not None:
        ids = _ids_state(estimator, row_ids, col_ids)
    tree["state"] = estimator.state_dict(past=False)
    if ids is not None:
        tree["state"]["run"]["ids"] = ids
    notes = getattr(estimator, "notes_", None) if notes is None else notes
    if notes is not None:
        tree["notes"] = notes
    write_tree(path, "model", tree, compress=True)


def _ids_state(estimator: Any, *given: Any) -> State:
    """Return ids as the state of a model has them."""
    own: tuple[Any, Any]
    if isinstance(estimator, FrankWolfeRecommender):
        own = estimator.users_, estimator.items_
    elif isinstance(estimator, FrankWolfeMatrixCompletion):
        own = estimator.row_ids_, estimator.col_ids_
    else:
        name = type(estimator).__name__
        raise ValueError(f"row_ids and col_ids are for users and items, not for a {name}")
    sides = []
    for label, ids, known, size in zip(IDS, given, own, estimator.shape_, strict=True):
        if ids is None:
            ids = np.arange(size) if known is None else known
        elif len(ids) != size:
            raise ValueError(
                f"{label} must name each of the {size} {IDS[label]} seen, got {len(ids)} names"
            )
        sides.append(ids)
    return Ids.of(*sides).state_dict()


def load(path: str | Path) -> Any:
    """Return the estimator of a model file or of a checkpoint; reading it runs no code.

    It predicts as the one that was saved did, bit for bit, and has its coefficients or factors,
    certificate and history. From a model file ``partial_fit`` refuses, since the past is not in it;
    from a checkpoint it goes on.

    Parameters
    ----------
    path : str or Path
        What :func:`save` or :func:`save_checkpoint` wrote.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, onlinefw as ofw
    >>> X = np.array([[0, 0], [0, 1], [1, 0]])
    >>> model = ofw.FrankWolfeMatrixCompletion(radius=4.0).fit(X, [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "ratings.ofw"
    ...     ofw.save(model, path, row_ids=["ann", "bob"], col_ids=[10, 20])
    ...     loaded = ofw.load(path)
    >>> loaded.recommend("bob")[0], loaded.row_ids_.tolist()
    (array([20]), ['ann', 'bob'])
    """
    if read_header(path)["kind"] == "checkpoint":
        return load_checkpoint(path)
    header, tree = read_tree(path, "model")
    with whole(path, "model"):
        return _from_tree(from_format_1(tree) if header["format_version"] == 1 else tree)


def _from_tree(tree: State) -> Any:
    model = ESTIMATORS[tree["estimator"]](**parameters_from_tree(tree["parameters"]))
    if "team" in tree["state"] or "team" in tree["state"].get("run", {}):
        raise ValueError("it holds a past, which only a checkpoint does")
    if any(label in tree for label in IDS):
        tree["state"]["run"]["ids"] = _older_ids(tree)
    model.load_state(tree["state"])
    if "notes" in tree:
        if not isinstance(tree["notes"], dict):
            raise ValueError("its notes are no dict")
        model.notes_ = tree["notes"]
    return model


def _older_ids(tree: State) -> State:
    """Return the ids of a file that has them beside the state, where any labels were allowed."""
    matrix, sides = tree["state"]["run"]["matrix"], []
    for label, factor in zip(IDS, (matrix["left"], matrix["right"]), strict=True):
        size = len(factor)
        ids = labels_from_tree(tree[label]) if label in tree else np.arange(size)
        if ids.size != size:
            raise ValueError(f"{label} has {ids.size} names for {size} {IDS[label]}")
        sides.append(ids if ids.dtype.kind in "iu" else as_objects(map(str, ids.tolist())))
    return Ids.of(*sides).state_dict()
