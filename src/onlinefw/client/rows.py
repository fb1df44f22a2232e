"""What is sent, as the server has it, and what comes back, as estimators have it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

__all__ = ["both_of", "choice_of", "json_lines", "json_of", "plain", "rows_of", "values_of"]


def rows_of(X: Any, asked: str) -> list[dict[str, Any]]:
    """Return rows of X as the server has them."""
    if isinstance(X, (list, tuple)) and X and all(isinstance(one, dict) for one in X):
        return [dict(one) for one in X] if asked == "pair" else [{"x": one} for one in X]
    names = getattr(X, "columns", None)
    if names is not None and not callable(names):  # a data frame
        names = [str(name) for name in names]
        columns = [np.asarray(X[name]).tolist() for name in X.columns]
        rows: list[Any] = [list(one) for one in zip(*columns, strict=True)]
        if asked == "x":
            return [{"x": dict(zip(names, one, strict=True))} for one in rows]
    else:
        rows = _listed(X)
    if asked == "x":
        return [{"x": one} for one in rows]
    if any(len(one) != 2 for one in rows):
        raise ValueError("X must have two columns: users and items")
    return [{"user": _id(user), "item": _id(item)} for user, item in rows]


def _id(value: Any) -> Any:
    """Return an id; whole numbers may have come in an array of floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _listed(X: Any) -> list[Any]:
    if isinstance(X, (list, tuple)):
        rows = [one.tolist() if isinstance(one, np.ndarray) else one for one in X]
        if all(isinstance(one, (list, tuple)) for one in rows):
            return [list(one) for one in rows]
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {array.ndim}")
    return array.tolist()


def json_lines(what: str, values: list[Any]) -> list[bytes]:
    """Return each value as a line of JSON."""
    return [json_of(f"{what} {k}", one) for k, one in enumerate(values)]


def json_of(what: str, value: Any) -> bytes:
    """Return JSON, or say what cannot be sent."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), default=plain)
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from None
    except ValueError:
        raise ValueError(f"{what} has NaN or infinity, which no server takes") from None
    return text.encode()


def plain(value: Any) -> Any:
    """Return a scalar of numpy as JSON has it."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"{value!r:.60} cannot be sent: use text and numbers")


def values_of(name: str, given: Any, n: int | None = None) -> list[Any]:
    """Return a list of n values; an array would make text of numbers beside text."""
    values = list(given) if isinstance(given, (list, tuple)) else np.asarray(given).tolist()
    if not isinstance(values, list):
        raise ValueError(f"{name} must be a list or an array, got {given!r:.40}")
    if n is not None and len(values) != n:
        raise ValueError(f"{name} has {len(values)} values for {n} rows: there must be one a row")
    return values


def choice_of(candidates: Any, exclude: Any) -> dict[str, Any]:
    """Return the items that may, and may not, be recommended."""
    given = {"candidates": candidates, "exclude": exclude}
    return {name: values_of(name, one) for name, one in given.items() if one is not None}


def both_of(found: list[dict[str, Any]], name: str) -> tuple[Any, Any]:
    """Return items and their numbers as two arrays."""
    return np.array([one["item"] for one in found], object), np.array([one[name] for one in found])
