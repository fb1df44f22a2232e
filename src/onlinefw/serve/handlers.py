"""What each endpoint does: a request in, JSON out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from .answers import json_answer
from .bodies import Limits, is_lines, list_in, object_in, read_body
from .engine import Engine, Refusal
from .faces import Event, PairsFace, number_of, text_of
from .pending import Pending
from .writer import Batch

__all__ = ["Handlers"]

#: A longer body is parsed by another thread, so that other requests do not wait for it.
LONG = 2**16
#: So many items are recommended at most.
MOST_ITEMS = 1000


class Handlers:
    """The endpoints of one engine."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self.engine, self.limits = engine, limits
        self.pending = Pending()
        self.stopping = asyncio.Event()
        self.n_refused = 0

    # Learning -------------------------------------------------------------------------------------

    async def learn(self, request: Request) -> Response:
        """POST /learn."""
        engine = self._learning("learn")
        body = await read_body(request, self.limits)
        read = partial(self._batch, body, is_lines(request))
        batch = await asyncio.to_thread(read) if len(body) > LONG else read()
        return await self._learned(engine, batch)

    def _batch(self, body: bytes, lines: bool) -> Batch:
        given, more = list_in(body, lines, "events", self.limits, ("atomic",))
        atomic = more.get("atomic", False)
        if not isinstance(atomic, bool):
            raise Refusal(422, "'atomic' must be true or false")
        batch, face = Batch([], atomic, [], len(body)), self.engine.face
        for position, one in enumerate(given):
            try:
                if isinstance(one, Refusal):
                    raise one
                batch.events.append((position, face.event(one)))
            except (ValueError, Refusal) as error:
                batch.refuse(position, error)
        return batch

    async def _learned(self, engine: Any, batch: Batch) -> Response:
        self.n_refused += len(batch.refused)
        if batch.refused and (batch.atomic or not batch.events):
            batch.events = []
            raise _nothing(batch, engine.learned.n_events)
        before = len(batch.refused)
        said = await asyncio.wrap_future(engine.learn(batch))
        self.n_refused += len(batch.refused) - before
        if not batch.learned and not batch.repeated:
            raise _nothing(batch, said["events"])
        return json_answer(said)

    async def label(self, request: Request) -> Response:
        """POST /label."""
        engine = self._learning("label")
        given = object_in(await read_body(request, self.limits), LABEL_FIELDS)
        if "labels" in given:
            labels = given["labels"]
            if len(given) > 1 or not isinstance(labels, list) or not labels:
                raise Refusal(422, "'labels' must be a list of objects, with nothing beside it")
            if len(labels) > self.limits.batch:
                raise Refusal(413, f"at most {self.limits.batch:,} labels are taken at once")
        else:
            labels = [given]
        batch = Batch([], False, [])
        lost: dict[str, Any] = {}
        for position, one in enumerate(labels):
            try:
                self._put_label(batch, lost, position, one)
            except ValueError as error:
                batch.refuse(position, error)
        if lost:  # labels that were learned, of predictions that are not kept any more
            known = await asyncio.wrap_future(engine.has_learned(list(lost)))
            for id_, (position, why) in lost.items():
                if id_ in known:
                    batch.events.append((position, Event(id_, (), "label")))
                else:
                    batch.refuse(position, why)
        return await self._learned(engine, batch)

    def _put_label(self, batch: Batch, lost: dict[str, Any], position: int, given: Any) -> None:
        """Add the event that a label makes of a prediction."""
        name = self.engine.face.told[0]
        if not isinstance(given, dict) or "id" not in given or name not in given:
            raise ValueError(f"a label needs the 'id' that /predict returned, and {name!r}")
        for field in given:
            if field not in ("id", "row", name):
                raise ValueError(f"{field!r:.40} is not a field of a label: leave it out")
        id_, row = text_of("id", given["id"]), given.get("row", 0)
        if type(row) is not int or row < 0:
            raise ValueError("'row' must be the position of the row in the request to /predict")
        own = f"label:{id_}:{row}"
        kept = self.pending.get(id_, row)
        if kept is None:
            n = self.pending.n_rows(id_)
            why = "it was too long ago, never made, or of somebody who was forgotten"
            why = f"/predict had {n} rows" if n is not None and row >= n else why
            lost[own] = position, f"there is no prediction {id_!r:.40} with row {row}: {why}"
            return
        values = self.engine.face.labelled(kept[0], given[name])
        batch.events.append((position, Event(own, values, "label", kept[1])))

    async def forget(self, request: Request) -> Response:
        """POST /forget."""
        engine = self._learning("forget")
        given = object_in(await read_body(request, self.limits), ("user", "id"))
        if "user" not in given:
            raise Refusal(422, "'user' is missing: name whom to forget")
        face = engine.face
        who: Any = _checked(text_of, "user", given["user"])
        if isinstance(face, PairsFace):
            who = _checked(face.user, who)
        id_ = given.get("id")
        id_ = None if id_ is None else _checked(text_of, "id", id_)
        if isinstance(face, PairsFace):
            self.pending.drop(who)  # else a label would bring them back
        return json_answer(await asyncio.wrap_future(engine.forget(who, id_)))

    def _learning(self, verb: str) -> Any:
        if verb != "learn":
            self._verb(verb)
        if self.engine.no_learning:
            raise Refusal(409, self.engine.no_learning)
        return self.engine

    def _verb(self, verb: str) -> None:
        if verb not in self.engine.face.verbs:
            raise Refusal(404, f"this model has no /{verb}: it is of another kind")

    # Asking ---------------------------------------------------------------------------------------

    async def predict(self, request: Request) -> Response:
        """POST /predict."""
        self._verb("predict")
        body = await read_body(request, self.limits)
        lines = is_lines(request)
        if len(body) > LONG // 4:
            rows, found = await asyncio.to_thread(self._predicted, body, lines)
        else:
            rows, found = self._predicted(body, lines)
        return json_answer({"predictions": found, "id": self.pending.put(rows, found)})

    def _predicted(self, body: bytes, lines: bool) -> tuple[list[Any], list[Any]]:
        given, _ = list_in(body, lines, "rows", self.limits)
        face, rows = self.engine.face, []
        for position, one in enumerate(given):
            try:
                if isinstance(one, Refusal):
                    raise one
                rows.append(face.row(one))
            except (ValueError, Refusal) as error:
                raise Refusal(422, f"row {position}: {error}", position=position) from None
        return rows, self._asked(face.predict, rows)

    def _asked(self, question: Callable[..., Any], *args: Any) -> Any:
        """Ask the model that answers now."""
        with self.engine.reading() as model:
            if not model.__sklearn_is_fitted__():
                raise Refusal(409, "the model has learned nothing yet: send events")
            try:
                return question(model, *args)
            except (ValueError, TypeError) as error:
                why = " ".join(str(error).split())
                raise Refusal(422, self.engine.face.in_words(why)) from None

    async def recommend(self, request: Request) -> Response:
        """POST /recommend."""
        self._verb("recommend")
        given = object_in(await read_body(request, self.limits), RECOMMEND_FIELDS)
        options = self._options(given)
        if ("user" in given) == ("users" in given):
            raise Refusal(422, "send 'user', or 'users' as a list")
        if "user" in given:
            found = self._recommended(given["user"], options)
            return json_answer({"recommendations": found})
        users = given["users"]
        if not isinstance(users, list) or not users:
            raise Refusal(422, "'users' must be a list with at least one user")
        most = max(1, self.limits.batch // 10)
        if len(users) > most:
            raise Refusal(413, f"at most {most:,} users are taken at once")
        if len(users) * options["n"] > 10 * self.limits.batch:
            raise Refusal(413, f"at most {10 * self.limits.batch:,} items are recommended at once")
        ask = partial(self._recommended, options=options)
        found = await asyncio.to_thread(lambda: [ask(user) for user in users])
        return json_answer({"recommendations": found})

    def _recommended(self, user: Any, options: dict[str, Any]) -> Any:
        face: Any = self.engine.face
        who = _checked(face.user, user)
        try:
            return face.recommended(self._asked(lambda model: model.recommend(who, **options)))
        except Refusal as error:
            if error.status != 422:
                raise
            why = f"nothing is known of the user {str(who)!r:.60}: ask /recommend-for with items"
            raise Refusal(404, why) from None

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return how many items are wanted, and which."""
        options: dict[str, Any] = {"n": given.get("n", 10)}
        if type(options["n"]) is not int or not 1 <= options["n"] <= MOST_ITEMS:
            raise Refusal(422, f"'n' must be a whole number from 1 to {MOST_ITEMS}")
        if "exclude_seen" in given:
            if not isinstance(given["exclude_seen"], bool):
                raise Refusal(422, "'exclude_seen' must be true or false")
            options["exclude_seen"] = given["exclude_seen"]
        for name in ("candidates", "exclude"):
            if given.get(name) is not None:
                options[name] = self._items(name, given[name])
        return options

    def _items(self, name: str, given: Any) -> list[Any]:
        face: Any = self.engine.face
        if not isinstance(given, list):
            raise Refusal(422, f"{name!r} must be a list of items")
        return [_checked(face.item, f"an item of {name}", one) for one in given]

    async def recommend_for(self, request: Request) -> Response:
        """POST /recommend-for."""
        self._verb("recommend-for")
        given = object_in(await read_body(request, self.limits), RECOMMEND_FOR_FIELDS)
        if not given.get("items"):
            raise Refusal(422, "'items' is missing: send a list of items that somebody has had")
        options = {k: v for k, v in self._options(given).items() if k != "exclude_seen"}
        args = [self._items("items", given["items"])]
        if self.engine.face.needs_values:
            args.append(self._values(given.get("values"), len(args[0])))
        self._has("recommend_for", "recommend-for")
        found = self._asked(lambda model: model.recommend_for(*args, **options))
        face: Any = self.engine.face
        return json_answer({"recommendations": face.recommended(found)})

    def _values(self, given: Any, n: int) -> list[float]:
        if not isinstance(given, list) or len(given) != n:
            raise Refusal(422, f"'values' must be a list with one value for each of {n} items")
        return [_checked(number_of, f"value {k}", one) for k, one in enumerate(given)]

    async def because(self, request: Request) -> Response:
        """GET /because."""
        self._verb("because")
        face: Any = self.engine.face
        query = request.query_params
        for name in ("user", "item"):
            if not query.get(name):
                raise Refusal(422, f"{name!r} is missing: ask /because?user=...&item=...")
        n = query.get("n", "10")
        if not (n.isascii() and n.isdigit() and 1 <= int(n[:9]) <= MOST_ITEMS):
            raise Refusal(422, f"'n' must be a whole number from 1 to {MOST_ITEMS}")
        user, item = _checked(face.user, query["user"]), _checked(face.item, "item", query["item"])
        self._has("because", "because")
        found = self._asked(lambda model: model.because(user, item, int(n)))
        return json_answer({"because": face.because(found)})

    def _has(self, method: str, verb: str) -> None:
        with self.engine.reading() as model:
            if not hasattr(model, method):
                raise Refusal(404, f"this model has no /{verb}: it is of another kind")

    # What there is --------------------------------------------------------------------------------

    async def model(self, request: Request) -> Response:
        """GET /model."""
        return json_answer(await asyncio.wrap_future(self.engine.facts()))

    async def live(self, request: Request) -> Response:
        """GET /health/live."""
        return json_answer({"live": True})

    async def ready(self, request: Request) -> Response:
        """GET /health/ready."""
        engine = self.engine
        trouble = getattr(engine, "trouble", "")
        ready = engine.is_alive and not self.stopping.is_set()
        said = {"ready": ready, "events": engine.learned.n_events, "lag": engine.lag()}
        if trouble:
            said["trouble"] = trouble
        return json_answer(said, 200 if ready else 503)


RECOMMEND_FIELDS = ("user", "users", "n", "exclude_seen", "candidates", "exclude")
RECOMMEND_FOR_FIELDS = ("items", "values", "n", "candidates", "exclude")
LABEL_FIELDS = ("id", "row", "value", "y", "labels")


def _checked(check: Callable[..., Any], *args: Any) -> Any:
    try:
        return check(*args)
    except ValueError as error:
        raise Refusal(422, str(error)) from None


def _nothing(batch: Batch, n_events: int) -> Refusal:
    first = min(batch.refused, key=lambda one: one["position"])
    what = "none is, as the request is atomic" if batch.atomic else "nothing was learned"
    sentence = f"event {first['position']}: {first['error']}; {what}"
    return Refusal(422, sentence, **batch.answer(n_events))
