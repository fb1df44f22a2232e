"""Checkpoints: everything needed to go on, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._version import __version__
from .container import read_with_header, write_tree
from .errors import ModelFileError
from .freeze import freeze, thaw

__all__ = ["load_checkpoint", "save_checkpoint"]


def save_checkpoint(obj: Any, path: str | Path) -> None:
    """Write an estimator with its past, or a dict of such things, so that it can go on.

    The file is whole or not there: a reader sees the checkpoint before until this one is
    complete. Nothing about the estimator changes, and nothing is computed.

    Parameters
    ----------
    obj : estimator, dict or list
        Estimators in any state; beside them numbers, text, arrays, sparse matrices, random
        generators, dicts, lists, tuples and sets. Classes and functions of your own are refused.
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
    write_tree(path, "checkpoint", freeze(obj))


def load_checkpoint(path: str | Path) -> Any:
    """Return what :func:`save_checkpoint` wrote; reading it runs nothing.

    A checkpoint is for stopping and going on, with the same version of onlinefw; to keep a model,
    use :func:`onlinefw.save`.
    """
    header, tree = read_with_header(path, "checkpoint")
    if header["onlinefw"] != __version__:
        raise ModelFileError(
            f"{path} was made by onlinefw {header['onlinefw']} and this is {__version__}: go on "
            f"with onlinefw {header['onlinefw']}, or begin anew"
        )
    try:
        return thaw(tree)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ModelFileError(f"{path} does not hold a whole checkpoint: {reason}") from None
