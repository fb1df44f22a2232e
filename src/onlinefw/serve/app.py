"""The web application: routes, who may ask, and errors as JSON."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
from collections.abc import Callable
from time import perf_counter
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from .answers import error_answer, json_answer
from .bodies import Limits
from .engine import Engine, Refusal
from .handlers import Handlers
from .listeners import Listeners
from .metrics import Metrics
from .openapi import described_endpoints
from .page import PAGE_HEADERS, live_page

__all__ = ["make_app"]

HEALTH = ("/health/live", "/health/ready")
OTHER_SITES = "pages of other sites must send the token themselves: 'Authorization: Bearer <token>'"


def make_app(engine: Engine, *, token: str | None = None, limits: Limits | None = None) -> Any:
    """Return the application that asks and teaches one engine."""
    handlers = Handlers(engine, limits or Limits())
    metrics = Metrics(engine, handlers)

    async def page(request: Request) -> Response:
        return HTMLResponse(live_page(engine.face.verbs), headers=PAGE_HEADERS)

    async def openapi(request: Request) -> Response:
        return json_answer(described_endpoints(engine.face))

    async def measured(request: Request) -> Response:
        return Response(metrics.text(), media_type=metrics.media_type)

    post, get = ["POST"], ["GET"]
    table: list[tuple[str, Any, list[str]]] = [
        ("/", page, get),
        ("/learn", handlers.learn, post),
        ("/predict", handlers.predict, post),
        ("/label", handlers.label, post),
        ("/recommend", handlers.recommend, post),
        ("/recommend-for", handlers.recommend_for, post),
        ("/because", handlers.because, get),
        ("/forget", handlers.forget, post),
        ("/model", handlers.model, get),
        ("/health/live", handlers.live, get),
        ("/health/ready", handlers.ready, get),
        ("/metrics", measured, get),
        ("/events", Listeners(engine, handlers).events, get),
        ("/openapi.json", openapi, get),
    ]
    routes = [Route(path, act, methods=methods) for path, act, methods in table]
    found = {Refusal: _refused, HTTPException: _http_error, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=found)
    app.router.redirect_slashes = False
    app.state.handlers = handlers
    return _Door(app, token, metrics, frozenset(path for path, _, _ in table))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error_answer(error.status, str(error), error.more)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return error_answer(404, "there is no such endpoint: see /openapi.json")
    if error.status_code == 405:
        return error_answer(405, f"this endpoint does not take {request.method}: see /openapi.json")
    return error_answer(error.status_code, str(error.detail))


async def _failed(request: Request, error: Exception) -> Response:
    return error_answer(500, f"the server failed: {type(error).__name__}; see its own output")


class _Door:
    """Lets in who may ask, and measures how long answers take."""

    def __init__(
        self, app: Any, token: str | None, metrics: Metrics, paths: frozenset[str]
    ) -> None:
        self.app, self._metrics, self._paths = app, metrics, paths
        self.state = app.state
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Any, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = perf_counter(), 500

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        path = scope["path"] if scope["path"] in self._paths else "other"
        refusal = self._refusal(scope)
        try:
            if refusal is not None:
                await refusal(scope, receive, watched)
            else:
                await self.app(scope, receive, watched)
        finally:
            self._metrics.answered(path, status, perf_counter() - began)

    def _refusal(self, scope: Any) -> Response | None:
        headers = Headers(scope=scope)
        if self._token is not None:
            if scope["path"] in HEALTH:
                return None
            if self._knows_token(headers):
                return self._refused_site(scope, headers)
            answer = error_answer(401, "send the token: 'Authorization: Bearer <token>'")
            answer.headers["www-authenticate"] = 'Basic realm="ofw", charset="UTF-8"'
            return answer
        # Without a token a page of another site, open in a browser here, must not ask or teach.
        if _is_foreign(headers):
            return error_answer(403, "pages of other sites need a token: serve with --token")
        if not _is_address(headers.get("host", "")):
            return error_answer(403, "ask by IP address or localhost, or serve with --token")
        return None

    def _refused_site(self, scope: Any, headers: Headers) -> Response | None:
        """Refuse what a page of another site asks: a browser sends the password along for it."""
        if scope["method"] == "GET" or not headers["authorization"].lower().startswith("basic"):
            return None
        site = headers.get("sec-fetch-site")  # what browsers say, unless it is http of elsewhere
        foreign = site not in ("same-origin", "none") if site else _is_foreign(headers)
        return error_answer(403, OTHER_SITES) if foreign else None

    def _knows_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        sent = given.strip().encode("latin-1", "replace")
        if kind.lower() == "basic":  # what browsers ask for: any name, and the token
            try:
                sent = base64.b64decode(sent, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif kind.lower() != "bearer":
            return False
        assert self._token is not None
        return hmac.compare_digest(sent, self._token)


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site asks."""
    origin = headers.get("origin")
    return origin is not None and origin.split("://")[-1] != headers.get("host", "")


def _is_address(host: str) -> bool:
    """Whether a host is no name that somebody else's DNS could give to this machine."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name in ("", "localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
