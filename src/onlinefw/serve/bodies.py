"""The bodies of requests: read with limits, and as JSON or JSON lines."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple, NoReturn

from starlette.requests import ClientDisconnect, Request

from .engine import Refusal

__all__ = ["Limits", "list_in", "read_body", "read_json"]

LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")


class Limits(NamedTuple):
    """How much a request may bring."""

    body: int = 2**20
    batch: int = 10_000
    #: Headers, or a body, that take longer than so many seconds are given up.
    seconds: float = 30.0


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body, unless it is too long or too slow."""
    try:
        async with asyncio.timeout(limits.seconds):
            return await _read(request, limits.body)
    except TimeoutError:
        raise Refusal(408, f"the body did not come within {limits.seconds:g} seconds") from None
    except ClientDisconnect:
        raise Refusal(400, "the connection ended before the body did") from None


async def _read(request: Request, most: int) -> bytes:
    said = request.headers.get("content-length", "")
    length = 0 if not said.isdigit() else int(said[:20])
    parts: list[bytes] = []
    if length <= most:
        length = 0
        async for part in request.stream():
            length += len(part)
            if length > most:
                break
            parts.append(part)
    if length > most:
        raise Refusal(413, f"the body is longer than {most:,} bytes: send less at a time")
    return b"".join(parts)


def is_lines(request: Request) -> bool:
    """Whether the body has one JSON value a line."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower() in LINES


def read_json(body: bytes) -> Any:
    """Return what JSON says, or refuse it."""
    try:
        return json.loads(body, parse_constant=_refuse)
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, json.JSONDecodeError) else "not valid UTF-8 JSON"
        if "is not JSON" in str(error):
            why = str(error)
        if "integer string conversion" in str(error):
            why = "a number has more digits than any model can hold"
        raise Refusal(400, f"the body is no JSON: {why}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def object_in(body: bytes, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return the object that a body holds, with no other fields than these."""
    found = read_json(body)
    if not isinstance(found, dict):
        raise Refusal(422, f"the body must be an object with {_listed(allowed)}")
    for name in found:
        if name not in allowed:
            some = _listed(allowed)
            raise Refusal(422, f"{name!r:.40} is no field of this request: it has {some}")
    return found


def list_in(
    body: bytes, lines: bool, name: str, limits: Limits, more: tuple[str, ...] = ()
) -> tuple[list[Any], dict[str, Any]]:
    """Return the list called ``name`` and the other fields; of JSON lines, a value of each line.

    A line that is no JSON is a :class:`Refusal` in the list, so that only its position is refused.
    """
    if lines:
        texts = [line for line in body.split(b"\n") if line.strip()]
        _check_length(name, len(texts), limits)
        return [_line(text) for text in texts], {}
    found = object_in(body, (name, *more))
    if name not in found:
        raise Refusal(422, f"{name!r} is missing: send a list")
    values = found[name]
    if not isinstance(values, list):
        raise Refusal(422, f"{name!r} must be a list")
    _check_length(name, len(values), limits)
    return values, found


def _check_length(name: str, n: int, limits: Limits) -> None:
    if not n:
        raise Refusal(422, f"{name!r} is empty: send at least one")
    if n > limits.batch:
        raise Refusal(413, f"{name!r} has {n:,} items; at most {limits.batch:,} are taken at once")


def _line(text: bytes) -> Any:
    try:
        return read_json(text)
    except Refusal as error:
        return error


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name!r}" for name in names)
