"""Answers as JSON, which has no NaN and no infinity."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import numpy as np
from starlette.responses import Response

__all__ = ["error_answer", "json_answer", "json_bytes"]


def json_bytes(value: Any) -> bytes:
    """Return JSON; NaN and infinity become null.

    Examples
    --------
    >>> from onlinefw.serve.answers import json_bytes
    >>> json_bytes({"gap": float("inf"), "rank": 3})
    b'{"gap":null,"rank":3}'
    """
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError):
        text = json.dumps(_plain(value), allow_nan=False, separators=(",", ":"))
    return text.encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not isfinite(value) else value


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a response."""
    return Response(json_bytes(value), status, headers, media_type="application/json")


def error_answer(status: int, sentence: str, more: dict[str, Any] | None = None) -> Response:
    """Return a response that says what is wrong, and what to do."""
    headers = {"retry-after": "1"} if status in (429, 503) else None
    if status == 408:  # what still comes of this request belongs to no other one
        headers = {"connection": "close"}
    return json_answer({"error": sentence, **(more or {})}, status, headers)
