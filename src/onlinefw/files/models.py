"""Model files: what predicts, and nothing of the past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import State
from ..estimators import FrankWolfeMatrixCompletion, RadiusSearch
from ..estimators.radius_search import RunningScores
from .completion import completion_from_tree, completion_to_tree
from .container import read_tree, write_tree
from .errors import ModelFileError
from .labels import labels_to_tree
from .linear import linear_from_tree, linear_to_tree, names_from_tree, names_to_tree
from .parameters import ESTIMATORS, parameters_from_tree, parameters_to_tree

__all__ = ["load", "save"]


def save(
    estimator: Any,
    path: str | Path,
    *,
    row_ids: Any = None,
    col_ids: Any = None,
    notes: dict[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to a model file, which predicts but cannot go on learning.

    The file holds arrays and JSON only, in a versioned format. It is whole or not there: a disk
    that is full while it is written leaves what was there before. Nothing about the estimator
    changes (its certificate is computed, as ``gap_`` does). To stop and go on, use
    :func:`onlinefw.files.save_checkpoint`.

    Parameters
    ----------
    estimator : estimator
        A fitted FrankWolfeRegressor, FrankWolfeClassifier, RadiusSearch or
        FrankWolfeMatrixCompletion. Losses, sets and step rules of your own cannot be saved.
    path : str or Path
        Where to; ``.ofw`` is the usual ending.
    row_ids, col_ids : array-like of int or str, optional
        Matrix completion only: what the rows and columns are called, kept as the loaded
        estimator's ``row_ids_`` and ``col_ids_``.
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
    write_tree(path, "model", _to_tree(estimator, row_ids, col_ids, notes))


def load(path: str | Path) -> Any:
    """Return the estimator of a model file; reading it runs nothing.

    It predicts as the one that was saved did, bit for bit, and tells its coefficients or factors,
    certificate and history. ``partial_fit`` refuses, since the past is not in the file.

    Parameters
    ----------
    path : str or Path
        What :func:`save` wrote.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, onlinefw as ofw
    >>> X = np.array([[0, 0], [0, 1], [1, 0]])
    >>> model = ofw.FrankWolfeMatrixCompletion(radius=4.0).fit(X, [1.0, 2.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "ratings.ofw"
    ...     ofw.save(model, path, row_ids=["ann", "bob"], col_ids=[10, 20])
    ...     loaded = ofw.load(path)
    >>> items, scores = loaded.recommend(1)
    >>> loaded.row_ids_[1], loaded.col_ids_[items]
    (np.str_('bob'), array([20]))
    """
    tree = read_tree(path, "model")
    try:
        return _from_tree(tree)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ModelFileError(f"{path} does not hold a whole model: {reason}") from None


def _to_tree(
    estimator: Any, row_ids: Any = None, col_ids: Any = None, notes: dict[str, Any] | None = None
) -> State:
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise ValueError(
            f"a model file holds one of {', '.join(ESTIMATORS)}, got {estimator!r:.80}"
        )
    check_is_fitted(estimator)
    tree: State = {"estimator": name, "parameters": parameters_to_tree(estimator)}
    notes = getattr(estimator, "notes_", None) if notes is None else notes
    if notes is not None:
        tree["notes"] = notes
    if isinstance(estimator, FrankWolfeMatrixCompletion):
        tree.update(completion_to_tree(estimator))
        shape = estimator.objective_.shape or (0, 0)
        for name, ids, size in (("row_ids", row_ids, shape[0]), ("col_ids", col_ids, shape[1])):
            if ids is not None:
                tree[name] = _checked_ids(name, ids, size)
        return tree
    if row_ids is not None or col_ids is not None:
        raise ValueError(f"row_ids and col_ids are for matrix completion, not for a {name}")
    if isinstance(estimator, RadiusSearch):
        tree.update(_search_to_tree(estimator))
    else:
        tree.update(linear_to_tree(estimator))
    return tree


def _checked_ids(name: str, ids: Any, size: int) -> Any:
    if len(ids) != size:
        side = "rows" if name == "row_ids" else "columns"
        raise ValueError(f"{name} must name each of the {size} {side} seen, got {len(ids)} names")
    return labels_to_tree(ids, name)


def _from_tree(tree: State) -> Any:
    model = ESTIMATORS[tree["estimator"]](**parameters_from_tree(tree["parameters"]))
    if isinstance(model, FrankWolfeMatrixCompletion):
        completion_from_tree(model, tree)
    elif isinstance(model, RadiusSearch):
        _search_from_tree(model, tree)
    else:
        linear_from_tree(model, tree)
    if "notes" in tree:
        model.notes_ = tree["notes"]
    model._only_predicts = True
    return model


def _search_to_tree(search: RadiusSearch) -> State:
    scores = search._scores
    return {
        **names_to_tree(search),
        "radii": search.radii_,
        "scores": {"weight": scores._weight, "total": scores._total, "sums": scores._sums},
        "n_rounds": search._t,
        "best_index": search.best_index_,
        "best": _to_tree(search.best_estimator_),
    }


def _search_from_tree(search: RadiusSearch, tree: State) -> None:
    search.radii_ = radii = tree["radii"]
    names_from_tree(search, tree)
    search._scores = scores = RunningScores(radii.size)
    scores._weight = float(tree["scores"]["weight"])
    scores._total, scores._sums = tree["scores"]["total"], tree["scores"]["sums"]
    if radii.ndim != 1 or scores._total.shape != radii.shape or scores._sums.shape[0] != 3:
        raise ValueError("there are not as many scores as radii")
    search._t = int(tree["n_rounds"])
    # The other radii lost: only what predicts is kept.
    kept: list[Any] = [None] * radii.size
    kept[int(tree["best_index"])] = _from_tree(tree["best"])
    search.estimators_ = kept
    if not np.array_equal(search.best_index_, tree["best_index"]):
        raise ValueError("its best radius is not the best")
