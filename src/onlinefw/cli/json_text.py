"""Results as standard JSON, which has no NaN and no infinity."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

__all__ = ["as_json_text"]


def as_json_text(value: Any) -> str:
    """Return JSON on one line; NaN and infinity become null.

    Examples
    --------
    >>> from onlinefw.cli.json_text import as_json_text
    >>> as_json_text({"gap": float("inf"), "rank": 3})
    '{"gap": null, "rank": 3}'
    """
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
