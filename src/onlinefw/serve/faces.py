"""What events and questions of each kind of model look like, and how a model takes them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from .._validation import TOO_LARGE_FOR_FLOAT32
from ..estimators import FrankWolfeMatrixCompletion, RadiusSearch
from .new_models import KINDS

__all__ = ["LONGEST_ID", "Event", "Face", "face_of", "text_of"]

#: Ids are at most so many characters long.
LONGEST_ID = 256
#: Ids that begin like this are those of the server: of forgetting, and of labels that came later.
OWN_IDS = ("forget:", "label:")


class Event(NamedTuple):
    """Something to learn: ``values`` are those of its face."""

    id: str | None
    values: tuple[Any, ...]
    kind: str = "learn"
    #: What was predicted for it, if its label came later.
    served: Any = None


def text_of(name: str, value: Any) -> str:
    """Return an id as text: 1 and "1" are the same."""
    if type(value) is str:
        text = value
    elif type(value) is int:
        text = str(value)
    else:
        raise ValueError(f"{name} must be text or a whole number, got {_shown(value)}")
    if not text:
        raise ValueError(f"{name} is empty: name one")
    if len(text) > LONGEST_ID:
        raise ValueError(f"{name} has {len(text)} characters; at most {LONGEST_ID} are allowed")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{name} is no valid Unicode: send it as UTF-8") from None
    return text


def number_of(name: str, value: Any) -> float:
    """Return a finite number that every model can hold."""
    if type(value) is not float and type(value) is not int:
        raise ValueError(f"{name} must be a number, got {_shown(value)}")
    if not -TOO_LARGE_FOR_FLOAT32 <= value <= TOO_LARGE_FOR_FLOAT32:  # NaN is not, either
        shown = _shown(value)
        most = f"{TOO_LARGE_FOR_FLOAT32:g}"
        raise ValueError(f"{name} must be between -{most} and {most}, got {shown}")
    return float(value)


def _shown(value: Any) -> str:
    """Return a value of JSON, cut short."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if type(value) is int and abs(value) > 10**40:
        return "a number of more than 40 digits"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "..."


def fields_of(what: str, given: Any, needed: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuse what is no object with these fields."""
    if type(given) is not dict:
        raise ValueError(f"{what} must be an object with {_listed(needed)}, got {_shown(given)}")
    for name in needed:
        if name not in given:
            raise ValueError(f"{name!r} is missing: {what} needs {_listed(needed)}")
    if len(given) > len(needed):
        for name in given:
            if name not in needed and name not in allowed:
                some = _listed([*needed, *allowed])
                raise ValueError(f"{name!r:.40} is no field of {what}: leave it out; it has {some}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"{name!r}" for name in names)


class Face(ABC):
    """Events, rows and answers of one kind of model, as JSON has them."""

    #: The endpoints that this kind of model has, beside /learn.
    verbs: frozenset[str]
    #: What the progressive score is the mean of.
    score_name: str
    #: Whether /recommend-for needs a value for each item.
    needs_values = False
    #: The fields of what is predicted, and of an event beside those.
    asked: tuple[str, ...]
    told: tuple[str, ...]
    more: tuple[str, ...] = ()

    def event(self, given: Any) -> Event:
        """Return a checked event, or say what is wrong with which field."""
        fields_of("an event", given, (*self.asked, *self.told), ("id", *self.more))
        id_ = given.get("id")
        if id_ is not None:
            id_ = text_of("id", id_)
            if id_.startswith(OWN_IDS):
                raise ValueError(f"id is {id_!r:.40}, as ids of the server begin: choose another")
        return Event(id_, self.values_of(given))

    def row(self, given: Any) -> tuple[Any, ...]:
        """Return what is to be predicted, checked."""
        fields_of("a row", given, self.asked, ())
        return self.asked_of(given)

    @abstractmethod
    def values_of(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of the fields of an event."""

    @abstractmethod
    def asked_of(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values of the fields of a row."""

    def labelled(self, row: tuple[Any, ...], label: Any) -> tuple[Any, ...]:
        """Return the values of an event: a row that was predicted, and its label."""
        raise ValueError("this model has no labels")

    @abstractmethod
    def body(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """Return values as the log keeps them."""

    @abstractmethod
    def values_in(self, body: dict[str, Any]) -> tuple[Any, ...]:
        """Return the values that the log has kept."""

    @abstractmethod
    def who(self, values: tuple[Any, ...]) -> str | None:
        """Return whose event it is."""

    def settled(self, events: list[Event]) -> list[Event]:
        """Return events as the model takes them, once the first has decided their columns."""
        return events

    def learn(self, model: Any, values: list[tuple[Any, ...]]) -> Array:
        """Learn events in their order; return what was predicted for each before.

        The first event of a new model is learned alone: it decides what is "auto", so that the
        model is the same however the others come.
        """
        if model.__sklearn_is_fitted__() or len(values) == 1:
            return self._learn(model, values)
        first = self._learn(model, values[:1])
        return np.concatenate((first, self._learn(model, values[1:])))

    @abstractmethod
    def _learn(self, model: Any, values: list[tuple[Any, ...]]) -> Array:
        """Learn some events with one call."""

    @abstractmethod
    def losses(self, predicted: Any, values: list[tuple[Any, ...]]) -> Array:
        """Return what predictions have cost, or earned: see ``score_name``."""

    def predict(self, model: Any, rows: list[tuple[Any, ...]]) -> list[Any]:
        """Return a prediction for each row."""
        raise NotImplementedError

    def in_words(self, why: str) -> str:
        """Return what a model refuses in the words of requests."""
        return why


# Pairs of users and items -------------------------------------------------------------------------


class PairsFace(Face):
    """Users and items, whose ids are text here, whatever they are in the model."""

    asked = ("user", "item")

    def __init__(self, model: Any) -> None:
        self._user: Callable[[str], Any] = str
        self._item: Callable[[str], Any] = str
        if model.__sklearn_is_fitted__():
            self._user, self._item = _kinds_of_ids(model)

    def asked_of(self, given: dict[str, Any]) -> tuple[Any, ...]:
        return self.user(given["user"]), self.item("item", given["item"])

    def user(self, given: Any) -> Any:
        """Return a user as the model knows users."""
        return _converted("user", text_of("user", given), self._user)

    def item(self, name: str, given: Any) -> Any:
        """Return an item as the model knows items."""
        return _converted(name, text_of(name, given), self._item)

    def who(self, values: tuple[Any, ...]) -> str:
        return str(values[0])

    def recommended(self, found: tuple[Array, Array]) -> list[dict[str, Any]]:
        """Return items and their scores, the best first."""
        pairs = zip(*(side.tolist() for side in found), strict=True)
        return [{"item": str(item), "score": score} for item, score in pairs if item is not None]

    def because(self, found: tuple[Array, Array]) -> list[dict[str, Any]]:
        """Return the items that speak for another one; the last, null, is all the rest."""
        pairs = zip(*(side.tolist() for side in found), strict=True)
        named = ((None if item is None else str(item), share) for item, share in pairs)
        return [{"item": item, "contribution": share} for item, share in named]


def _kinds_of_ids(model: Any) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    of_clicks = hasattr(model, "users_")
    sides = (model.users_, model.items_) if of_clicks else (model.row_ids_, model.col_ids_)
    kinds = [str if side is not None and side.dtype == object else int for side in sides]
    return kinds[0], kinds[1]


def _converted(name: str, text: str, kind: Callable[[str], Any]) -> Any:
    if kind is str:
        return text
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 19):
        raise ValueError(f"the ids of this model are whole numbers, and {name} is {text!r:.40}")
    return int(text)


class RatingsFace(PairsFace):
    """Users, items and values."""

    verbs = frozenset({"predict", "label", "recommend", "recommend-for", "because", "forget"})
    score_name = "squared error"
    needs_values = True
    told = ("value",)

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._loss = model.loss_
        probe = np.array([-1e6, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 1e6])
        self._any_value = bool(self._loss.allows(probe).all())
        self._by_index = model.__sklearn_is_fitted__() and model.row_ids_ is None

    def values_of(self, given: dict[str, Any]) -> tuple[Any, ...]:
        return (*self.asked_of(given), self._value(given["value"]))

    def _value(self, given: Any) -> float:
        value = number_of("value", given)
        if not self._any_value:
            self._loss.check_targets(np.array([value]))
        return value

    def labelled(self, row: tuple[Any, ...], label: Any) -> tuple[Any, ...]:
        return (*row, self._value(label))

    def body(self, values: tuple[Any, ...]) -> dict[str, Any]:
        return {"user": values[0], "item": values[1], "value": values[2]}

    def values_in(self, body: dict[str, Any]) -> tuple[Any, ...]:
        return body["user"], body["item"], body["value"]

    def _learn(self, model: Any, values: list[tuple[Any, ...]]) -> Array:
        y = np.array([one[2] for one in values])
        return model.learn(self._pairs(values), y)

    def _pairs(self, values: Sequence[tuple[Any, ...]]) -> Any:
        if self._by_index:
            return np.array([one[:2] for one in values], np.int64)
        return [[one[0], one[1]] for one in values]

    def losses(self, predicted: Any, values: list[tuple[Any, ...]]) -> Array:
        return np.square(np.asarray(predicted, float) - [one[2] for one in values])

    def in_words(self, why: str) -> str:
        for side, name in (("row", "user"), ("column", "item")):
            if why.startswith(f"{side} must "):
                why = name + why.removeprefix(side).replace(
                    f" {side} ids that", f" {name} ids that"
                )
        return why

    def predict(self, model: Any, rows: list[tuple[Any, ...]]) -> list[Any]:
        return model.predict(self._pairs(rows), unknown="fallback").tolist()


class ClicksFace(PairsFace):
    """Users and items, as they came together."""

    verbs = frozenset({"predict", "recommend", "recommend-for", "because", "forget"})
    score_name = "reciprocal rank"
    told = ()

    def values_of(self, given: dict[str, Any]) -> tuple[Any, ...]:
        return self.asked_of(given)

    def body(self, values: tuple[Any, ...]) -> dict[str, Any]:
        return {"user": values[0], "item": values[1]}

    def values_in(self, body: dict[str, Any]) -> tuple[Any, ...]:
        return body["user"], body["item"]

    def _learn(self, model: Any, values: list[tuple[Any, ...]]) -> Array:
        return np.asarray(model.learn([[one[0], one[1]] for one in values]), float)

    def losses(self, predicted: Any, values: list[tuple[Any, ...]]) -> Array:
        ranks = np.asarray(predicted, float)
        return 1.0 / ranks[np.isfinite(ranks)]  # items that can be ranked: known, and not had yet

    def predict(self, model: Any, rows: list[tuple[Any, ...]]) -> list[Any]:
        return model.predict([[user, item] for user, item in rows]).tolist()


# Rows of features ---------------------------------------------------------------------------------


class RowsFace(Face):
    """Features ``x``, a list or an object by column name, and a target ``y``."""

    verbs = frozenset({"predict", "label", "forget"})
    asked = ("x",)
    told = ("y",)
    more = ("user",)

    def __init__(self, model: Any, classes: Sequence[Any] | None, columns: Any = None) -> None:
        known = getattr(model, "feature_names_in_", None)
        noted = (getattr(model, "notes_", None) or {}).get("features")
        names = columns or (noted if known is None else known.tolist())
        self.columns: list[str] | None = list(names) if names else None
        self.width: int | None = getattr(model, "n_features_in_", None)
        if self.width is None and self.columns is not None:
            self.width = len(self.columns)
        learned = getattr(model, "classes_", None)
        found = classes if learned is None else learned.tolist()
        self.classes = None if found is None else list(found)
        self._labels = {str(one): one for one in self.classes or ()}
        self.score_name = "squared error" if found is None else "error rate"

    def values_of(self, given: dict[str, Any]) -> tuple[Any, ...]:
        user = given.get("user")
        whose = None if user is None else text_of("user", user)
        return self._x(given["x"]), self._y(given["y"]), whose

    def asked_of(self, given: dict[str, Any]) -> tuple[Any, ...]:
        return (self._x(given["x"]),)

    def labelled(self, row: tuple[Any, ...], label: Any) -> tuple[Any, ...]:
        return row[0], self._y(label), None

    def _x(self, given: Any) -> Any:
        if type(given) is dict:
            for name in given:
                number_of(f"the column {name!r:.40} of x", given[name])
            return given if self.width is None else self._in_order(given)
        if type(given) is not list or not given:
            raise ValueError(f"x must be a list of numbers or an object, got {_shown(given)}")
        if self.width is not None and len(given) != self.width:
            raise ValueError(f"x has {len(given)} numbers, and this model has {self.width} columns")
        if not all(type(one) is float and abs(one) <= TOO_LARGE_FOR_FLOAT32 for one in given):
            return [number_of(f"number {k} of x", one) for k, one in enumerate(given)]
        return given

    def _in_order(self, given: dict[str, Any]) -> list[float]:
        """Return the numbers of an object in the order of the columns."""
        if self.columns is None:
            raise ValueError(f"the columns have no names here: send x as {self.width} numbers")
        for name in given.keys() - set(self.columns):
            raise ValueError(
                f"x has the column {name!r:.40}, which this model does not know: leave it out"
            )
        for name in self.columns:
            if name not in given:
                raise ValueError(f"x lacks the column {name!r:.40}: send all {self.width} columns")
        return [float(given[name]) for name in self.columns]

    def _y(self, given: Any) -> Any:
        if self.classes is None:
            return number_of("y", given)
        if type(given) is bool:
            given = str(given)
        label = text_of("y", given if type(given) is not float else str(given))
        if label not in self._labels:
            some = ", ".join(list(self._labels)[:10])
            raise ValueError(f"y is {label!r:.40}, which is none of the classes {some}")
        return self._labels[label]

    def settled(self, events: list[Event]) -> list[Event]:
        """Let the first row decide width and names of the columns; the others must fit."""
        if not events:
            return events
        if self.width is None:
            x = events[0].values[0]
            self.columns, self.width = (list(x) if type(x) is dict else None), len(x)
        if all(type(one.values[0]) is list for one in events):
            return events
        return [one._replace(values=(self._x(one.values[0]), *one.values[1:])) for one in events]

    def body(self, values: tuple[Any, ...]) -> dict[str, Any]:
        body = {"x": values[0], "y": values[1]}
        return body if values[2] is None else {**body, "user": values[2]}

    def values_in(self, body: dict[str, Any]) -> tuple[Any, ...]:
        return body["x"], body["y"], body.get("user")

    def who(self, values: tuple[Any, ...]) -> str | None:
        return values[2]

    def _learn(self, model: Any, values: list[tuple[Any, ...]]) -> Array:
        X = np.array([one[0] for one in values], float)
        y = np.array([one[1] for one in values])
        if self.classes is None or model.__sklearn_is_fitted__():
            return model.learn(X, y)
        return model.learn(X, y, classes=self.classes)

    def losses(self, predicted: Any, values: list[tuple[Any, ...]]) -> Array:
        y = np.array([one[1] for one in values])
        if self.classes is not None:
            return (np.asarray(predicted) != y).astype(float)
        return np.square(np.asarray(predicted, float) - y)

    def predict(self, model: Any, rows: list[tuple[Any, ...]]) -> list[Any]:
        X = np.array([self._x(x) for (x,) in rows], float)
        return model.predict(X).tolist()


def face_of(model: Any, facts: dict[str, Any]) -> Face:
    """Return the face of a model; ``facts`` are those of its log, where there is one."""
    if isinstance(model, FrankWolfeMatrixCompletion):
        return RatingsFace(model)
    clicks = KINDS.get("clicks")
    if clicks is not None and isinstance(model, clicks):
        return ClicksFace(model)
    best = model
    if isinstance(model, RadiusSearch):
        best = model.best_estimator_ if model.__sklearn_is_fitted__() else model.estimator
    return RowsFace(best, facts.get("classes"), facts.get("columns"))
