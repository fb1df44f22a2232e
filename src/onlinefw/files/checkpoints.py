"""Checkpoints: everything needed to go on, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._randomness import generator_from_state, generator_state
from .._typing import State
from .._version import __version__
from ..estimators.learned_model import BESIDE
from ..estimators.run import CANNOT_LEARN
from ..estimators.sparse_state import csr_from_state, csr_state
from .container import FORMAT_VERSION, read_tree, write_tree
from .errors import ModelFileError, whole
from .labels import labels_from_tree, labels_to_tree
from .parameters import ESTIMATORS, parameters_from_tree, parameters_to_tree
from .tree import KINDS

__all__ = ["load_checkpoint", "save_checkpoint"]


def save_checkpoint(obj: Any, path: str | Path) -> None:
    """Write an estimator with its past, or a dict of such things, so that it can go on.

    The file is replaced at once: until the new checkpoint is complete, a reader sees the previous
    one. Nothing about the estimator changes, and nothing is computed.

    Parameters
    ----------
    obj : estimator, dict or list
        Estimators in any state; beside them numbers, text, arrays, sparse matrices, random
        generators, and dicts (with text as keys), lists and tuples of such things. Classes and
        functions of your own are refused.
    path : str or Path
        Where to.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, onlinefw as ofw
    >>> from onlinefw.files import load_checkpoint, save_checkpoint
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> model = ofw.FrankWolfeRegressor(radius=2.0).partial_fit(X[:50], X[:50, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "run.ckpt"
    ...     save_checkpoint({"model": model, "rows read": 50}, path)
    ...     run = load_checkpoint(path)
    >>> same = run["model"].partial_fit(X[50:], X[50:, 0])
    >>> np.array_equal(same.coef_, model.partial_fit(X[50:], X[50:, 0]).coef_)
    True
    """
    write_tree(path, "checkpoint", _to_tree(obj, ""))


def load_checkpoint(path: str | Path) -> Any:
    """Return what :func:`save_checkpoint` wrote; reading it runs no code.

    A checkpoint is for stopping and going on, with the same version of onlinefw; to keep a model,
    use :func:`onlinefw.save`.
    """
    header, tree = read_tree(path, "checkpoint")
    if header["onlinefw"] != __version__ or header["format_version"] != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was made by onlinefw {header['onlinefw']} (format "
            f"{header['format_version']}) and this is {__version__} (format {FORMAT_VERSION}): go "
            f"on with onlinefw {header['onlinefw']}, or begin anew"
        )
    with whole(path, "checkpoint"):
        return _from_tree(tree)


# Values as trees ----------------------------------------------------------------------------------


def _to_tree(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in KINDS:
        return value.item()
    if isinstance(value, np.ndarray):
        return _array_to_tree(value, where)
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_to_tree(item, where) for item in value]}
    if isinstance(value, dict):
        return {"dict": {_key(k): _to_tree(v, _at(where, k)) for k, v in value.items()}}
    if sparse.issparse(value):
        return {"csr": csr_state(value)}
    if isinstance(value, np.random.Generator):
        return {"generator": generator_state(value)}
    if ESTIMATORS.get(type(value).__name__) is type(value):
        return _estimator_to_tree(value)
    what = getattr(value, "__qualname__", type(value).__qualname__)
    raise ValueError(
        f"a checkpoint holds onlinefw's own parts only, but {where or 'this'} is {what} "
        f"(of {getattr(value, '__module__', type(value).__module__)})"
    )


def _array_to_tree(array: Any, where: str) -> State:
    if array.dtype.kind in KINDS:
        return {"array": array}
    if array.dtype.kind == "O" and array.ndim == 1:
        return {"texts": labels_to_tree(array, where or "an array")}
    raise ValueError(f"a checkpoint cannot hold {array.dtype} values, at {where}")


def _estimator_to_tree(estimator: Any) -> State:
    fitted = estimator.__sklearn_is_fitted__()
    if fitted and not estimator.can_learn_:
        raise ValueError(CANNOT_LEARN)
    beside = {name: getattr(estimator, name) for name in BESIDE if hasattr(estimator, name)}
    return {
        "estimator": type(estimator).__name__,
        "parameters": parameters_to_tree(estimator),
        "state": estimator.state_dict() if fitted else None,
        "beside": _to_tree(beside, type(estimator).__name__),
    }


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"a checkpoint holds dicts with text as keys, got the key {key!r}")
    return key


def _at(where: str, key: Any) -> str:
    return f"{where}.{key}" if where else str(key)


def _from_tree(tree: Any) -> Any:
    if not isinstance(tree, dict):
        if isinstance(tree, (list, np.ndarray)):
            raise ValueError("a list where a value should be")
        return tree
    if "estimator" in tree:
        return _estimator_from_tree(tree)
    ((mark, content),) = tree.items()
    if mark in ("list", "tuple"):
        items = [_from_tree(item) for item in content]
        return items if mark == "list" else tuple(items)
    if mark == "dict":
        return {key: _from_tree(value) for key, value in content.items()}
    if mark == "array" and isinstance(content, np.ndarray):
        return content
    if mark == "texts":
        return labels_from_tree(content)
    if mark == "csr":
        return csr_from_state(content)
    if mark == "generator":
        return generator_from_state(content)
    raise ValueError(f"unknown value {mark!r}")


def _estimator_from_tree(tree: State) -> Any:
    model = ESTIMATORS[tree["estimator"]](**parameters_from_tree(tree["parameters"]))
    if tree["state"] is not None:
        model.load_state(tree["state"])
    for name, value in _from_tree(tree["beside"]).items():
        if name not in BESIDE:
            raise ValueError(f"an estimator has no {name!r:.40} beside it")
        if not isinstance(value, dict if name == "notes_" else np.ndarray):
            raise ValueError(f"{name} is a {type(value).__name__}")
        setattr(model, name, value)
    return model
