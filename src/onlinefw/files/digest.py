"""A digest of what a model has learned: the same wherever, and however, it was learned."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

__all__ = ["digest"]

#: Parts of a state that say how it was learned, not what: clocks, counts of work, and records of
#: rounds, which are noted when a call of ``learn`` ends.
HOW = frozenset(
    {"certificate_reads", "elapsed", "history", "last_batch", "path", "reads", "seconds"}
)


def digest(model: Any) -> str:
    """Return the SHA-256 of all that a model has learned, in hexadecimal.

    Two models have the same digest if they predict the same and go on the same, bit for bit,
    whether they have learned in one call or in many, and whether they were saved in between. The
    parameters of the estimator are not part of it, except where they have led to another model.

    Parameters
    ----------
    model : estimator
        In any state; nothing about it changes.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> from onlinefw.files import digest
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> one, other = ofw.FrankWolfeRegressor(), ofw.FrankWolfeRegressor()
    >>> _ = one.learn(X, X[:, 0])
    >>> for part in (X[:30], X[30:]):
    ...     _ = other.learn(part, part[:, 0])
    >>> digest(one) == digest(other) != digest(ofw.FrankWolfeRegressor())
    True
    """
    found = hashlib.sha256(type(model).__name__.encode())
    if model.__sklearn_is_fitted__():
        _add(found, "", model.state_dict(past=model.can_learn_))
    return found.hexdigest()


def _add(found: Any, where: str, value: Any) -> None:
    """Add a value with its place in the state, so that no two states add the same bytes."""
    if isinstance(value, dict):
        for name in sorted(value):
            if name not in HOW:
                _add(found, f"{where}/{name}", value[name])
    elif isinstance(value, (list, tuple)):
        found.update(f"{where}:{len(value)};".encode())
        for k, item in enumerate(value):
            _add(found, f"{where}/{k}", item)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        found.update(f"{where}:{value.dtype.str}{value.shape};".encode())
        found.update(np.ascontiguousarray(value).data.cast("B") if value.size else b"")
    elif isinstance(value, np.ndarray):
        _add(found, where, value.tolist())
    else:
        text = repr(value.item() if isinstance(value, np.generic) else value)
        found.update(f"{where}={text};".encode("utf-8", "surrogatepass"))
