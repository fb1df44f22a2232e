"""Requests that are sent again until they are answered."""

from __future__ import annotations

import http.client
import json
import random
import time
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from .rows import json_of

__all__ = ["JSON", "LINES", "Requests", "TooLong"]

#: Seconds before trying again: the first time, and the longest.
SHORTEST, LONGEST = 0.05, 5.0
JSON, LINES = "application/json", "application/x-ndjson"


class TooLong(ValueError):
    """The server takes less at a time."""


class Requests:
    """One connection to a server. All requests may be sent twice: see the ids of events."""

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be like 'http://127.0.0.1:8080', got {url!r:.60}")
        self.url, self.patience = url, patience
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._path = parts.path.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._lock = Lock()  # one connection, one request at a time

    def close(self) -> None:
        """End the connection; the next request opens it again."""
        self._connection.close()

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = JSON,
        answers: tuple[int, ...] = (200,),
    ) -> Any:  # fmt: skip
        """Send a request until it is answered, and return the answer.

        ``answers`` are the statuses that are no error: with 422, what was refused is in the answer.
        """
        if body is not None and kind == JSON:
            body = json_of("the request", body)
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = kind
        end, pause = time.monotonic() + self.patience, SHORTEST
        while True:
            wait = pause * random.uniform(0.5, 1.0)  # not all clients at the same time
            try:
                status, after, said = self._once(method, path, body, headers)
            except (OSError, http.client.HTTPException) as error:
                why = str(error) or type(error).__name__
            else:
                if status in answers and (status == 200 or "refused" in said):
                    return said
                why = said.get("error", f"the server answered with status {status}")
                if status == 413:
                    raise TooLong(why)
                if status < 500 and status not in (408, 429):
                    raise ValueError(why)
                wait = max(wait, after)
            if time.monotonic() + wait > end:
                raise ConnectionError(f"{self.url}: {why}")
            time.sleep(wait)
            pause = min(2 * pause, LONGEST)

    def _once(self, method: str, path: str, body: Any, headers: Any) -> tuple[int, float, Any]:
        """Send a request once; return the status, how many seconds to wait, and what was said."""
        with self._lock:
            connection = self._connection
            try:
                connection.request(method, self._path + path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
            except BaseException:
                connection.close()  # whatever comes now must not be taken for another answer
                raise
        after = answer.headers.get("Retry-After", "")
        try:
            said = json.loads(content)
        except ValueError:
            said = {}
        found = said if isinstance(said, dict) else {}
        return answer.status, float(after) if after.isdigit() else 0.0, found
