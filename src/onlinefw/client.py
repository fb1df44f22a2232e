"""A client of ``ofw serve`` with the verbs of the estimators.

It needs nothing beside numpy and the standard library, so programs that only send events and ask
need not install the server.
"""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

import numpy as np

__all__ = ["Client", "NotAcknowledged"]

#: What is sent at a time: so many events and bytes, half of what a server takes by default.
EVENTS, BYTES = 1000, 2**19
#: Users that recommendations are asked for at a time.
USERS = 200
#: Seconds before trying again: the first time, and the longest.
SHORTEST, LONGEST = 0.05, 5.0
JSON, LINES = "application/json", "application/x-ndjson"


class NotAcknowledged(ConnectionError):
    """The server could not be reached for longer than the client's patience.

    ``ids`` are those of all events of the call, and the first ``acknowledged`` of them are learned.
    Call ``learn`` again with the same data and ``ids``: what was learned is not learned again.
    """

    def __init__(self, sentence: str, acknowledged: int, ids: list[str]) -> None:
        super().__init__(sentence)
        self.acknowledged, self.ids = acknowledged, ids


class _TooLong(ValueError):
    """The server takes less at a time."""


class Client:
    """Learns and asks at an ``ofw serve``, in the words of the estimators.

    When the server is busy, restarted or cannot be reached, a request is sent again, waiting longer
    each time. Every event has an id, so that none is learned twice. A request that the server
    refuses raises ValueError with the server's sentence; one that cannot be carried out within
    ``patience`` raises ConnectionError.

    Parameters
    ----------
    url : str
        Where ``ofw serve`` answers.
    token : str, optional
        What the server was given as ``--token``.
    timeout : float
        How many seconds one answer may take.
    patience : float
        For how many seconds a request is sent again.

    Examples
    --------
    >>> import onlinefw as ofw
    >>> client = ofw.Client("http://127.0.0.1:8080")
    >>> client.learn([["ann", "Up"], ["bob", "Jaws"]], [4, 2])  # doctest: +SKIP
    {'learned': 2, 'repeated': 0, 'events': 2}
    >>> client.predict([["ann", "Jaws"]])  # doctest: +SKIP
    array([3.])
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        token: str | None = None,
        *,
        timeout: float = 60.0,
        patience: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be like 'http://127.0.0.1:8080', got {url!r:.60}")
        self.url, self.timeout, self.patience = url, timeout, patience
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._path = parts.path.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._lock = Lock()  # one connection, one request at a time
        self._known_fields: tuple[str, ...] | None = None
        self._most, self._most_users = EVENTS, USERS

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the next request opens it again."""
        self._connection.close()

    # Learning -------------------------------------------------------------------------------------

    def learn(
        self, X: Any, y: Any = None, ids: Sequence[Any] | None = None, *, refused: str = "raise"
    ) -> dict[str, Any]:
        """Let the server learn; they are on its disk when this returns.

        Parameters
        ----------
        X : array of shape (n, 2) or (n, n_features), data frame, or list of objects by column name
            Users and items, or rows, as the model that is served has them.
        y : sequence of length n, optional
            Values or labels; None for clicks.
        ids : sequence of length n, optional
            Names of the events: one that the server has learned already is not learned again. By
            default each has a new one.
        refused : {"raise", "return"}
            What to do when the server has refused some events and learned the others.

        Returns
        -------
        dict
            How many were ``learned`` and ``repeated``, how many ``events`` the model has learned by
            now and, with ``refused="return"``, which were ``refused`` and why.
        """
        if refused not in ("raise", "return"):
            raise ValueError(f'refused must be "raise" or "return", got {refused!r:.40}')
        asked, told = self._fields[0], self._fields[1:]
        rows = _rows(X, asked)
        events: Iterable[dict[str, Any]] = rows
        if (y is None) == bool(told):
            raise ValueError("y is missing" if told else "y has no meaning here: these are clicks")
        if told:
            targets = _values("y", y, len(rows))
            events = [{**row, told[0]: one} for row, one in zip(rows, targets, strict=True)]
        if ids is None:
            name = uuid4().hex
            names = [f"{name}-{k}" for k in range(len(rows))]
        else:
            names = [str(one) for one in _values("ids", ids, len(rows))]
        named = [{"id": id_, **event} for id_, event in zip(names, events, strict=True)]
        return self._learned(named, names, refused)

    def _learned(self, events: list[Any], ids: list[str], refused: str) -> dict[str, Any]:
        total: dict[str, Any] = {"learned": 0, "repeated": 0, "events": 0}
        wrong: list[dict[str, Any]] = []
        done = 0
        try:
            for start, said in self._sent("/learn", _lines("event", events), (200, 422)):
                for name in ("learned", "repeated"):
                    total[name] += said.get(name, 0)
                total["events"] = said.get("events", total["events"])
                found = said.get("refused", [])
                wrong += [{**one, "position": start + one["position"]} for one in found]
                done = start + said.get("learned", 0) + said.get("repeated", 0) + len(found)
        except ConnectionError as error:
            why = f"{error}; {done} of {len(ids)} events are acknowledged: send all again with ids="
            raise NotAcknowledged(why, done, ids) from error
        if wrong and refused == "raise":
            raise ValueError(
                f"{len(wrong)} of {len(ids)} events were refused, the first at position "
                f"{wrong[0]['position']}: {wrong[0]['error']}; the others are learned"
            )
        return {**total, "refused": wrong} if wrong else total

    def label(self, ids: Sequence[tuple[str, int]], y: Any) -> dict[str, Any]:
        """Tell the truth about predictions that were made earlier.

        Parameters
        ----------
        ids : sequence of (id, row)
            As ``predict(X, return_ids=True)`` has returned them.
        y : sequence
            The values or labels that have come.

        Returns
        -------
        dict
            As ``learn`` does: the labels are learned and the predictions scored.
        """
        targets = _values("y", y, len(ids))
        name = self._fields[-1]
        total = {"learned": 0, "repeated": 0, "events": 0}
        for k in range(0, len(ids), self._most):
            some = zip(ids[k : k + self._most], targets[k : k + self._most], strict=True)
            labels = [{"id": id_, "row": int(row), name: one} for (id_, row), one in some]
            said = self._ask("POST", "/label", {"labels": labels})
            if "refused" in said:
                raise ValueError(f"label {k + said['refused'][0]['position']}: "
                                 f"{said['refused'][0]['error']}; others are learned")  # fmt: skip
            total = {one: total[one] + said[one] for one in ("learned", "repeated")}
            total["events"] = said["events"]
        return total

    def forget(self, user: Any) -> dict[str, Any]:
        """Let the server erase somebody, from its log and from the model."""
        return self._ask("POST", "/forget", {"user": _plain(user), "id": uuid4().hex})

    # Asking ---------------------------------------------------------------------------------------

    def predict(self, X: Any, *, return_ids: bool = False) -> Any:
        """Return a prediction for each row of X.

        With ``return_ids`` also a list of (id, row), to ``label`` them later.
        """
        rows = _rows(X, self._fields[0])
        found: list[Any] = []
        ids: list[tuple[str, int]] = []
        for _, said in self._sent("/predict", _lines("row", rows)):
            found += said["predictions"]
            ids += [(said["id"], k) for k in range(len(said["predictions"]))]
        predictions = np.array(found)
        return (predictions, ids) if return_ids else predictions

    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        candidates: Any = None,
        exclude: Any = None,
    ) -> tuple[Any, Any]:
        """Return the best items for a user and their scores, as estimators do.

        For several users, two arrays with n columns: padded with None and -inf where a user has
        fewer. Items are text, whatever they were when they were learned.
        """
        body = {"n": n, "exclude_seen": exclude_seen, **_choice(candidates, exclude)}
        if np.ndim(users) == 0:
            said = self._ask("POST", "/recommend", {"user": _plain(users), **body})
            return _both(said["recommendations"], "score")
        wanted = _values("users", users)
        found: list[Any] = []
        while len(found) < len(wanted):
            some = wanted[len(found) : len(found) + self._most_users]
            try:
                said = self._ask("POST", "/recommend", {"users": some, **body})
            except _TooLong:
                if len(some) == 1:
                    raise
                self._most_users = len(some) // 2
                continue
            found += said["recommendations"]
        items = np.full((len(wanted), n), None, object)
        scores = np.full((len(wanted), n), -np.inf)
        for k, one in enumerate(found):
            items[k, : len(one)], scores[k, : len(one)] = _both(one, "score")
        return items, scores

    def recommend_for(
        self,
        items: Any,
        n: int = 10,
        *,
        values: Any = None,
        candidates: Any = None,
        exclude: Any = None,
    ) -> tuple[Any, Any]:
        """Return the best items for somebody who is not in the model, and their scores.

        ``values`` are needed where the model learns values, and left out for clicks.
        """
        body = {"items": _values("items", items), "n": n, **_choice(candidates, exclude)}
        if values is not None:
            body["values"] = _values("values", values)
        return _both(self._ask("POST", "/recommend-for", body)["recommendations"], "score")

    def because(self, user: Any, item: Any, n: int = 10) -> tuple[Any, Any]:
        """Return which of a user's own items speak for an item, and how much; None is the rest."""
        query = urlencode({"user": str(user), "item": str(item), "n": n}, quote_via=quote)
        return _both(self._ask("GET", f"/because?{query}")["because"], "contribution")

    def model(self) -> dict[str, Any]:
        """Return what the model is and holds."""
        return self._ask("GET", "/model")

    @property
    def digest(self) -> str:
        """The digest of what the model has learned, which ``ofw replay`` prints, too."""
        return self.model()["digest"]

    @property
    def _fields(self) -> tuple[str, ...]:
        """What a row is made of, and the target if there is one: ("pair", "value"), ("x", "y")."""
        if self._known_fields is None:
            paths = self._ask("GET", "/openapi.json")["paths"]
            body = paths["/learn"]["post"]["requestBody"]["content"][JSON]["schema"]
            needed = body["properties"]["events"]["items"]["required"]
            pairs = "item" in needed
            told = tuple(one for one in needed if one in ("value", "y"))
            self._known_fields = ("pair" if pairs else "x", *told)
        return self._known_fields

    # Requests -------------------------------------------------------------------------------------

    def _sent(
        self, path: str, lines: list[bytes], answers: tuple[int, ...] = (200,)
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Send lines in parts that the server takes; return where each begins and its answer."""
        start = 0
        while start < len(lines):
            stop, size = start, 0
            while stop < len(lines) and stop - start < self._most:
                size += len(lines[stop]) + 1
                if stop > start and size > BYTES:
                    break
                stop += 1
            try:
                said = self._ask("POST", path, b"\n".join(lines[start:stop]), LINES, answers)
            except _TooLong:
                if stop - start == 1:
                    raise
                self._most = (stop - start) // 2
                continue
            yield start, said
            start = stop

    def _ask(
        self, method: str, path: str, body: Any = None, kind: str = JSON,
        answers: tuple[int, ...] = (200,),
    ) -> Any:  # fmt: skip
        """Send a request until it is answered, and return the answer."""
        if body is not None and kind == JSON:
            body = _json("the request", body)
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
                    raise _TooLong(why)
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


# What is sent and what comes back -----------------------------------------------------------------


def _rows(X: Any, asked: str) -> list[dict[str, Any]]:
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


def _lines(what: str, values: list[Any]) -> list[bytes]:
    return [_json(f"{what} {k}", one) for k, one in enumerate(values)]


def _json(what: str, value: Any) -> bytes:
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain)
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from None
    except ValueError:
        raise ValueError(f"{what} has NaN or infinity, which no server takes") from None
    return text.encode()


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"{value!r:.60} cannot be sent: use text and numbers")


def _values(name: str, given: Any, n: int | None = None) -> list[Any]:
    """Return a list of n values; an array would make text of numbers beside text."""
    values = list(given) if isinstance(given, (list, tuple)) else np.asarray(given).tolist()
    if not isinstance(values, list):
        raise ValueError(f"{name} must be a list or an array, got {given!r:.40}")
    if n is not None and len(values) != n:
        raise ValueError(f"{name} has {len(values)} values for {n} rows: there must be one a row")
    return values


def _choice(candidates: Any, exclude: Any) -> dict[str, Any]:
    given = {"candidates": candidates, "exclude": exclude}
    return {name: _values(name, one) for name, one in given.items() if one is not None}


def _both(found: list[dict[str, Any]], name: str) -> tuple[Any, Any]:
    return np.array([one["item"] for one in found], object), np.array([one[name] for one in found])
