"""A parameter that is misspelt is answered with the class's name and the nearest one there is."""

from __future__ import annotations

import difflib
from typing import Any, Self

__all__ = ["Spelled"]


class Spelled:
    """The part of an estimator that knows how its parameters are spelled.

    Examples
    --------
    >>> import onlinefw as ofw
    >>> ofw.FrankWolfeRegressor(raduis=3.0)
    Traceback (most recent call last):
        ...
    TypeError: FrankWolfeRegressor has no parameter 'raduis'; did you mean 'radius'?
    """

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse names that are no parameters, before any of them is used."""
        known: list[str] = cls._get_param_names()  # type: ignore[attr-defined]
        for name in parameters:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                remedy = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
                raise TypeError(f"{cls.__name__} has no parameter {name!r}; {remedy}")
        return super().__new__(cls)
