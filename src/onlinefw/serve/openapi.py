"""The endpoints as OpenAPI describes them."""

from __future__ import annotations

from typing import Any

from .._version import __version__
from .faces import LONGEST_ID, Face

__all__ = ["described_endpoints"]

ID: dict[str, Any] = {
    "description": 'text or a whole number; 1 and "1" are the same',
    "oneOf": [{"type": "string", "minLength": 1, "maxLength": LONGEST_ID}, {"type": "integer"}],
}
NUMBER: dict[str, Any] = {"type": "number"}
X: dict[str, Any] = {
    "description": "a list, or an object by column name",
    "oneOf": [
        {"type": "array", "items": NUMBER},
        {"type": "object", "additionalProperties": NUMBER},
    ],
}
FIELDS = {"user": ID, "item": ID, "value": NUMBER, "x": X, "id": ID}
FIELDS["y"] = {"oneOf": [NUMBER, {"type": "string"}, {"type": "boolean"}]}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
ERRORS = {
    "400": "the body is no JSON",
    "401": "the token is missing",
    "403": "a page of another site asks, and there is no token",
    "404": "this kind of model has no such endpoint, or nothing is known of whom it is about",
    "408": "the request came too slowly",
    "409": "this model cannot do that now, such as learn without a past",
    "413": "the body or the batch is too long",
    "422": "a field is wrong; the sentence names it",
    "429": "too many events wait: send it again later",
    "503": "the server is shutting down",
    "507": "the log cannot be written, as on a full disk; nothing was learned",
}
EVENTS = (
    "What changes from second to second, as server-sent events: first one called course, then "
    "numbers every second, and one called model whenever the model was described anew. A browser "
    "sends the token as the password of its user; others send the header"
)


def described_endpoints(face: Face) -> dict[str, Any]:
    """Return the description, for the kind of model that is served."""
    event = _object({name: FIELDS[name] for name in (*face.asked, *face.told)})
    event["properties"] |= {"id": ID} | {name: FIELDS[name] for name in face.more}
    row = _object({name: FIELDS[name] for name in face.asked})
    paths: dict[str, Any] = {
        "/learn": _post("Learn events; they are on the disk when the answer comes", _learn(event)),
        "/model": _get("What the model is and holds, and the digest of what it has learned"),
        "/events": _get(EVENTS, "text/event-stream"),
        "/metrics": _get("Metrics of Prometheus", "text/plain"),
        "/health/live": _get("Whether the process runs"),
        "/health/ready": _get("Whether it answers, and how far behind it is"),
        "/openapi.json": _get("This description"),
        "/": _get("A page that shows what happens", "text/html"),
    }
    some = {name: body for name, body in _asking(face, row).items() if name in face.verbs}
    paths |= {f"/{name}": body for name, body in some.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "ofw serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": _object({"error": {"type": "string"}})}},
    }


def _learn(event: dict[str, Any]) -> dict[str, Any]:
    body = _object({"events": {"type": "array", "minItems": 1, "items": event}})
    body["properties"]["atomic"] = {"type": "boolean", "default": False}
    return body


def _asking(face: Face, row: dict[str, Any]) -> dict[str, Any]:
    """Return the endpoints that not every kind of model has."""
    items = {"type": "array", "items": ID}
    n = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10}
    choice = {"n": n, "candidates": items, "exclude": items}
    users = {"user": ID, "users": items, "exclude_seen": {"type": "boolean", "default": True}}
    told = face.told[0] if face.told else "value"
    label = {"id": ID, "row": COUNT, told: FIELDS[told]}
    because = _get("Which of a user's own items speak for an item")
    because["get"]["parameters"] = [
        {"name": name, "in": "query", "required": name != "n", "schema": schema}
        for name, schema in (("user", ID), ("item", ID), ("n", n))
    ]
    for_values: dict[str, Any] = {"items": items}
    if face.needs_values:
        for_values["values"] = {"type": "array", "items": NUMBER}
    return {
        "predict": _post(
            "Predict rows", _object({"rows": {"type": "array", "minItems": 1, "items": row}})
        ),
        "label": _post("The truth about a row that was predicted", _object(label, ["id", told])),
        "recommend": _post("The best items for a user or for several", _object(users | choice, [])),
        "recommend-for": _post(
            "The best items for somebody who is not in the model",
            _object(for_values | choice, list(for_values)),
        ),
        "because": because,
        "forget": _post(
            "Erase somebody from the log and the model", _object({"user": ID, "id": ID}, ["user"])
        ),
    }


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    needed = list(properties) if required is None else required
    return {"type": "object", "properties": dict(properties), "required": needed}


def _post(summary: str, body: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": body}}
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": content},
            "responses": _responses("application/json"),
        }
    }


def _get(summary: str, media: str = "application/json") -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": _responses(media)}}


def _responses(media: str) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    refused = {code: {"description": why, "content": error} for code, why in ERRORS.items()}
    return {"200": {"description": "done", "content": {media: {}}}, **refused}
