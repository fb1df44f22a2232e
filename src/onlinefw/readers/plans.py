"""What to read, ratings or rows of features: which columns to take, and how to make chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._typing import Array
from .._words import counted
from ..losses import Loss
from .batches import Column, Wanted
from .cells import labels as as_labels
from .chunks import Chunk, RatingChunk, RowChunk
from .columns import ColumnSpec, Table, find_column, find_features, guess_columns
from .errors import DataError

__all__ = ["Plan", "RatingPlan", "RowPlan"]


@dataclass
class RatingPlan:
    """Users, items and perhaps ratings."""

    user: ColumnSpec | None
    item: ColumnSpec | None
    rating: ColumnSpec | None
    needs_rating: bool
    #: Ratings that it does not take make a row a bad one.
    loss: Loss | None = None
    #: Fields that hold ids or labels.
    id_fields: tuple[str, ...] = ("users", "items")
    #: What the first file calls users and items.
    id_names: tuple[str, str] | None = None

    @property
    def specs(self) -> list[ColumnSpec]:
        """The columns that were given, by name or number."""
        given = (self.user, self.item, self.rating if self.needs_rating else None)
        return [spec for spec in given if spec is not None]

    def numeric_specs(self) -> list[ColumnSpec] | None:
        """The column of ratings, if it was given."""
        return [] if self.rating is None or not self.needs_rating else [self.rating]

    def wanted(self, table: Table) -> Wanted:
        """User, item and rating, guessed where none is given."""
        specs = {"user": self.user, "item": self.item}
        if self.needs_rating:
            specs["rating"] = self.rating
        user, item, *rating = guess_columns(specs, table)
        indices = [column.index for column in (user, item, *rating)]
        if len(set(indices)) < len(indices):
            raise DataError(
                "two of user, item and rating are the same column",
                file=table.file,
                remedy="check --user, --item and --rating",
            )
        ratings = tuple(replace(column, loss=self.loss) for column in rating)
        self.id_names = self.id_names or (user.name, item.name)
        return Wanted((user, item), ratings, self._fields)

    def _fields(self, ids: list[Array], numbers: list[Array]) -> dict[str, Any]:
        return {"users": ids[0], "items": ids[1], "values": numbers[0] if numbers else None}

    def chunk(self, fields: dict[str, Any], **where: Any) -> Chunk:
        """A chunk of ratings."""
        return RatingChunk(**fields, **where)


@dataclass
class RowPlan:
    """Features, and perhaps a target: a number or a label."""

    target: ColumnSpec | None
    features: str | Sequence[ColumnSpec] | None
    labels: bool
    needs_target: bool
    dtype: Any
    n_features: int | None = None
    zero_based: bool = False
    #: Targets that it does not take make a row a bad one.
    loss: Loss | None = None
    #: The features of the first file, by which those of the others are found.
    feature_names: list[str] | None = None

    @property
    def id_fields(self) -> tuple[str, ...]:
        """Labels are read as ids are."""
        return ("y",) if self.labels and self.needs_target else ()

    @property
    def specs(self) -> list[ColumnSpec]:
        """The columns that were given."""
        given = [] if self.target is None else [self.target]
        features = self.features.split(",") if isinstance(self.features, str) else self.features
        return given + [f for f in features or [] if not (isinstance(f, str) and "-" in f)]

    def numeric_specs(self) -> list[ColumnSpec] | None:
        """None: all but a label hold numbers."""
        return None

    def wanted(self, table: Table) -> Wanted:
        """Features in the order of the first file's, and the target."""
        target = self._target(table)
        spec = self.features if self.feature_names is None else self.feature_names
        found = tuple(
            replace(column, if_text="choose columns of numbers with --features, correct it")
            for column in find_features(spec, table, target)
        )
        if self.n_features is not None and len(found) != self.n_features:
            raise DataError(
                f"{counted(len(found), 'feature')} where there should be {self.n_features}",
                file=table.file,
                remedy="check --features",
            )
        if self.feature_names is None:
            self.feature_names = [column.name for column in found]
        if target is None or not self.needs_target:
            return Wanted((), found, self._fields)
        if self.labels:
            return Wanted((target,), found, self._fields)
        return Wanted((), (*found, replace(target, loss=self.loss)), self._fields)

    def _target(self, table: Table) -> Column | None:
        if self.needs_target:
            return guess_columns({"target": self.target}, table)[0]
        if self.target is None:
            return None
        try:
            return find_column(self.target, table, "target")
        except DataError:
            # Rows to predict may come with their target or without it.
            return None

    def _fields(self, ids: list[Array], numbers: list[Array]) -> dict[str, Any]:
        y: Array | None = None
        if self.needs_target:
            y = as_labels(ids[0]) if self.labels else numbers[-1]
            numbers = numbers if self.labels else numbers[:-1]
        X = np.empty((len(numbers[0]), len(numbers)), dtype=self.dtype)
        for j, column in enumerate(numbers):
            X[:, j] = column
        return {"X": X, "y": y}

    def chunk(self, fields: dict[str, Any], **where: Any) -> Chunk:
        """A chunk of rows."""
        return RowChunk(**fields, **where)


#: What a reader is told of what it reads.
Plan = RatingPlan | RowPlan
