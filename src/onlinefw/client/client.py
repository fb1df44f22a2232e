"""The estimators' verbs, carried out by a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import numpy as np

from .requests import JSON, LINES, Requests, TooLong
from .rows import both_of, choice_of, json_lines, plain, rows_of, values_of

__all__ = ["Client", "NotAcknowledged"]

#: What is sent at a time: so many events and bytes, half of what a server takes by default.
EVENTS, BYTES = 1000, 2**19
#: Users that recommendations are asked for at a time.
USERS = 200


class NotAcknowledged(ConnectionError):
    """The server could not be reached for longer than the client's patience.

    ``ids`` are those of all events of the call, and the first ``acknowledged`` of them are learned.
    Call ``learn`` again with the same data and ``ids``: what was learned is not learned again.
    """

    def __init__(self, sentence: str, acknowledged: int, ids: list[str]) -> None:
        super().__init__(sentence)
        self.acknowledged, self.ids = acknowledged, ids


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
        self.url = url
        self._requests = Requests(url, token, timeout, patience)
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
        self._requests.close()

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
        rows = rows_of(X, asked)
        events: Iterable[dict[str, Any]] = rows
        if (y is None) == bool(told):
            raise ValueError("y is missing" if told else "y has no meaning here: these are clicks")
        if told:
            targets = values_of("y", y, len(rows))
            events = [{**row, told[0]: one} for row, one in zip(rows, targets, strict=True)]
        if ids is None:
            name = uuid4().hex
            names = [f"{name}-{k}" for k in range(len(rows))]
        else:
            names = [str(one) for one in values_of("ids", ids, len(rows))]
        named = [{"id": id_, **event} for id_, event in zip(names, events, strict=True)]
        return self._learned(named, names, refused)

    def _learned(self, events: list[Any], ids: list[str], refused: str) -> dict[str, Any]:
        total: dict[str, Any] = {"learned": 0, "repeated": 0, "events": 0}
        wrong: list[dict[str, Any]] = []
        done = 0
        try:
            for start, said in self._sent("/learn", json_lines("event", events), (200, 422)):
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
        targets = values_of("y", y, len(ids))
        name = self._fields[-1]
        total = {"learned": 0, "repeated": 0, "events": 0}
        for k in range(0, len(ids), self._most):
            some = zip(ids[k : k + self._most], targets[k : k + self._most], strict=True)
            labels = [{"id": id_, "row": int(row), name: one} for (id_, row), one in some]
            said = self._requests.ask("POST", "/label", {"labels": labels})
            if "refused" in said:
                raise ValueError(f"label {k + said['refused'][0]['position']}: "
                                 f"{said['refused'][0]['error']}; others are learned")  # fmt: skip
            total = {one: total[one] + said[one] for one in ("learned", "repeated")}
            total["events"] = said["events"]
        return total

    def forget(self, user: Any) -> dict[str, Any]:
        """Let the server erase somebody, from its log and from the model."""
        return self._requests.ask("POST", "/forget", {"user": plain(user), "id": uuid4().hex})

    # Asking ---------------------------------------------------------------------------------------

    def predict(self, X: Any, *, return_ids: bool = False) -> Any:
        """Return a prediction for each row of X.

        With ``return_ids`` also a list of (id, row), to ``label`` them later.
        """
        rows = rows_of(X, self._fields[0])
        found: list[Any] = []
        ids: list[tuple[str, int]] = []
        for _, said in self._sent("/predict", json_lines("row", rows)):
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
        body = {"n": n, "exclude_seen": exclude_seen, **choice_of(candidates, exclude)}
        if np.ndim(users) == 0:
            said = self._requests.ask("POST", "/recommend", {"user": plain(users), **body})
            return both_of(said["recommendations"], "score")
        wanted = values_of("users", users)
        found: list[Any] = []
        while len(found) < len(wanted):
            some = wanted[len(found) : len(found) + self._most_users]
            try:
                said = self._requests.ask("POST", "/recommend", {"users": some, **body})
            except TooLong:
                if len(some) == 1:
                    raise
                self._most_users = len(some) // 2
                continue
            found += said["recommendations"]
        items = np.full((len(wanted), n), None, object)
        scores = np.full((len(wanted), n), -np.inf)
        for k, one in enumerate(found):
            items[k, : len(one)], scores[k, : len(one)] = both_of(one, "score")
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
        body = {"items": values_of("items", items), "n": n, **choice_of(candidates, exclude)}
        if values is not None:
            body["values"] = values_of("values", values)
        return both_of(
            self._requests.ask("POST", "/recommend-for", body)["recommendations"], "score"
        )

    def because(self, user: Any, item: Any, n: int = 10) -> tuple[Any, Any]:
        """Return which of a user's own items speak for an item, and how much; None is the rest."""
        query = urlencode({"user": str(user), "item": str(item), "n": n}, quote_via=quote)
        return both_of(self._requests.ask("GET", f"/because?{query}")["because"], "contribution")

    def model(self) -> dict[str, Any]:
        """Return what the model is and holds."""
        return self._requests.ask("GET", "/model")

    @property
    def digest(self) -> str:
        """The digest of what the model has learned, which ``ofw replay`` prints, too."""
        return self.model()["digest"]

    @property
    def _fields(self) -> tuple[str, ...]:
        """What a row is made of, and the target if there is one: ("pair", "value"), ("x", "y")."""
        if self._known_fields is None:
            paths = self._requests.ask("GET", "/openapi.json")["paths"]
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
                said = self._requests.ask(
                    "POST", path, b"\n".join(lines[start:stop]), LINES, answers
                )
            except TooLong:
                if stop - start == 1:
                    raise
                self._most = (stop - start) // 2
                continue
            yield start, said
            start = stop
