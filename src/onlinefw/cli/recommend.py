"""``ofw recommend``: the items that users would like best, and why."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

from .. import FrankWolfeMatrixCompletion, FrankWolfeRecommender
from .._typing import Array
from .._words import counted, printable
from ..readers import IdMap
from ..readers.errors import shown
from .model_file import ids_of, load_model, nobody
from .refuse import one_line_errors
from .spreadsheet import safe_text

__all__ = ["Wish", "run_recommend"]

#: Users are answered so many at a time.
AT_A_TIME = 1000


class Wish(NamedTuple):
    """Whom to recommend to, or what to explain: one of the first three is given."""

    user: str | None = None
    users: Path | None = None
    #: Items that somebody new has had, separated by commas, in quotes if they have commas.
    had: str | None = None
    #: An item.
    because: str | None = None

    def check(self) -> None:
        """Refuse a wish that names nobody, or several."""
        if sum(one is not None for one in self[:3]) != 1:
            raise ValueError(
                "say whom to recommend to, in one way: --user ID, --users FILE, or --had A,B for "
                "somebody new who has had these items"
            )
        if self.because is not None and self.user is None:
            raise ValueError("--because explains an item to one user: say which with --user")


def run_recommend(
    model_path: Path,
    wish: Wish,
    n: int,
    seen: bool = False,
    limits: dict[str, Path | None] | None = None,
    as_json: bool = False,
    spreadsheet_safe: bool = False,
) -> None:
    """Print items with their scores, best first."""
    with one_line_errors("recommend"):
        wish.check()
        model = load_model(model_path)
        if not isinstance(model, (FrankWolfeMatrixCompletion, FrankWolfeRecommender)):
            raise ValueError(
                f"{model_path} is a {type(model).__name__}: only a model of ratings or clicks "
                "recommends (ofw fit matrix, ofw fit clicks)"
            )
        if wish.because is not None and not isinstance(model, FrankWolfeRecommender):
            raise ValueError(
                f"{model_path} is a model of ratings: --because explains those of clicks "
                "(ofw fit clicks)"
            )
        names = _Names(model, model_path)
        given = {name: path for name, path in (limits or {}).items() if path is not None}
        options: dict[str, Any] = {name: names.items(_lines(path)) for name, path in given.items()}
        if wish.users is not None:
            rows = _for_many(model, names, _lines(wish.users), n, seen, options)
            _write(rows, as_json, spreadsheet_safe)
            return
        if wish.user is not None and wish.because is not None:
            item = names.items([wish.because], strict=True)[0]
            items, scores = model.because(names.user(wish.user), item, n)
        elif wish.user is not None:
            user = names.user(wish.user)
            items, scores = model.recommend(user, n, exclude_seen=not seen, **options)
        else:
            items, scores = _for_somebody_new(model, names, wish.had, n, options)
        if not len(items):
            _say_nothing_left(wish)
        called = "score" if isinstance(model, FrankWolfeRecommender) else "prediction"
    _print(items, scores, "contribution" if wish.because else called, as_json, spreadsheet_safe)


class _Names:
    """What is typed, as the ids that a model has."""

    def __init__(self, model: Any, path: Path) -> None:
        self._path, self._answers_all = path, isinstance(model, FrankWolfeRecommender)
        self._known = IdMap(), IdMap()
        self._ids = ids_of(model)
        for known, ids in zip(self._known, self._ids, strict=True):
            known.add(ids)

    def user(self, name: str) -> Any:
        """Return the id of a user; one that is not known is new to a model of clicks."""
        number = int(self._known[0].lookup([name])[0])
        if number >= 0:
            return self._ids[0][number]
        if self._answers_all:
            typer.echo(
                f"ofw recommend: {printable(repr(name))} is new to the model; this is what is "
                "popular",
                err=True,
            )
            return nobody(self._ids[0])
        users = self._known[0]
        raise ValueError(
            f"{self._path} has not seen the user {name!r}; it knows {len(users):,}, "
            f"such as {', '.join(map(str, users.ids[:3]))}"
        )

    def users(self, names: list[str]) -> tuple[list[str], list[Any]]:
        """Return the names that can be answered, and their ids; clicks answer everybody."""
        numbers = self._known[0].lookup(names)
        if self._answers_all:
            new = nobody(self._ids[0])
            return names, [self._ids[0][k] if k >= 0 else new for k in numbers]
        answered = [k for k, number in enumerate(numbers) if number >= 0]
        ids = [self._ids[0][numbers[k]] for k in answered]
        return [names[k] for k in answered], ids

    def items(self, names: Iterable[str], *, strict: bool = False) -> list[Any]:
        """Return the ids of items; those not known are left out, or refused."""
        names = list(names)
        numbers = self._known[1].lookup(names)
        if strict and numbers.min(initial=0) < 0:
            unknown = [name for name, k in zip(names, numbers, strict=True) if k < 0]
            raise ValueError(f"{self._path} has not seen the item {unknown[0]!r}")
        return [self._ids[1][k] for k in numbers if k >= 0]


def _for_somebody_new(
    model: Any, names: _Names, had: str | None, n: int, options: dict[str, Any]
) -> tuple[Array, Array]:
    if isinstance(model, FrankWolfeMatrixCompletion):
        raise ValueError("--had is for a model of clicks (ofw fit clicks): ratings have values")
    items = names.items(_separated(had or ""), strict=True)
    found: tuple[Array, Array] = model.recommend_for(items, n, **options)
    return found


def _separated(names: str) -> list[str]:
    """Return names that commas separate; quotes keep the commas in a name, as in CSV."""
    lines = csv.reader(names.splitlines(), skipinitialspace=True)
    return [part.strip() for line in lines for part in line] or [names]


def _for_many(
    model: Any, names: _Names, wanted: list[str], n: int, seen: bool, options: dict[str, Any]
) -> Iterator[tuple[str, int, Any, float]]:
    """Yield (user, rank, item, score)."""
    left_out, first = 0, ""
    for start in range(0, len(wanted), AT_A_TIME):
        asked = wanted[start : start + AT_A_TIME]
        users, ids = names.users(asked)
        if len(asked) > len(users) and not left_out:
            known = set(users)
            first = next(user for user in asked if user not in known)
        left_out += len(asked) - len(users)
        if not users:
            continue
        items, scores = model.recommend(ids, n, exclude_seen=not seen, **options)
        for user, some, values in zip(users, items, scores, strict=True):
            for rank, (item, value) in enumerate(zip(some, values, strict=True), 1):
                if item is not None:
                    yield user, rank, item, float(value)
    if left_out:
        typer.echo(
            f"ofw recommend: {counted(left_out, 'user')} that the model has not seen (the first: "
            f"{printable(shown(first))}): left out; the file has a user in every line",
            err=True,
        )


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that are not empty."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _say_nothing_left(wish: Wish) -> None:
    typer.echo(
        f"ofw recommend: nothing is left to recommend to {printable(wish.user or 'them')}; "
        "--seen also shows what they have had",
        err=True,
    )


def _plain(item: Any) -> Any:
    return item.item() if isinstance(item, np.generic) else item


def _print(items: Array, scores: Array, called: str, as_json: bool, spreadsheet_safe: bool) -> None:
    pairs = [(_plain(item), float(score)) for item, score in zip(items, scores, strict=True)]
    if as_json:
        typer.echo(json.dumps([{"item": item, called: score} for item, score in pairs]))
        return
    for item, score in pairs:
        name = safe_text(item) if spreadsheet_safe and isinstance(item, str) else item
        typer.echo(f"{printable('everything else' if item is None else name)}\t{score:.3f}")


def _write(rows: Iterator[tuple[Any, ...]], as_json: bool, spreadsheet_safe: bool) -> None:
    """Print the recommendations of many: CSV, or a JSON object in every line."""
    names = ("user", "rank", "item", "score")
    if as_json:
        for row in rows:
            typer.echo(json.dumps(dict(zip(names, map(_plain, row), strict=True))))
        return
    sheet = csv.writer(sys.stdout, lineterminator="\n")
    sheet.writerow(names)
    for user, rank, item, score in rows:
        texts = [safe_text(str(x)) if spreadsheet_safe else x for x in (user, item)]
        sheet.writerow((texts[0], rank, texts[1], f"{score:.6g}"))
