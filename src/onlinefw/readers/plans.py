"""What to read, ratings or rows of features: which columns to take, and how to make chunks.

Where rows are to be sorted, the column that decides it is read as the last of the ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._typing import Array
from .._words import counted
from ..losses import Loss
from .batches import Column, Wanted
from .cells import labels as as_labels
from .chunks import Chunk, RatingChunk, RowChunk
from .columns import (
    ColumnSpec,
    Table,
    find_column,
    find_features,
    guess_columns,
    names_columns,
    typed_column,
)
from .errors import DataError
from .treatment import Treatment

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
    #: The column by which rows are sorted.
    sort_by: ColumnSpec | None = None
    #: What the first file calls its columns, and those that were asked for.
    all_names: list[str] | None = None
    column_names: dict[str, str] = field(default_factory=dict)

    @property
    def specs(self) -> list[ColumnSpec]:
        """The columns that were given, by name or number."""
        given = (self.user, self.item, self.rating if self.needs_rating else None, self.sort_by)
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
        self.all_names = self.all_names or table.names
        if not self.column_names:
            found = zip(specs, (user, item, *rating), strict=True)
            self.column_names = {option: column.name for option, column in found}
        ratings = tuple(replace(column, loss=self.loss) for column in rating)
        return Wanted((user, item, *_order(self.sort_by, table)), ratings, self._fields)

    def _fields(self, ids: list[Array], numbers: list[Array], texts: list[Array]) -> dict[str, Any]:
        values = numbers[0] if numbers else None
        fields: dict[str, Any] = {"users": ids[0], "items": ids[1], "values": values}
        return fields if self.sort_by is None else {**fields, "order": ids[-1]}

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
    #: Columns that are no features.
    drop: str | Sequence[ColumnSpec] | None = None
    #: What becomes of cells that are missing or text.
    treatment: Treatment = field(default_factory=Treatment)
    #: The column by which rows are sorted.
    sort_by: ColumnSpec | None = None
    #: The features of the first file, by which those of the others are found.
    feature_names: list[str] | None = None
    #: What the first file calls its columns, and the target.
    all_names: list[str] | None = None
    column_names: dict[str, str] = field(default_factory=dict)

    @property
    def id_fields(self) -> tuple[str, ...]:
        """Labels are read as ids are."""
        return ("y",) if self.labels and self.needs_target else ()

    @property
    def specs(self) -> list[ColumnSpec]:
        """The columns that were given."""
        given = [spec for spec in (self.target, self.sort_by) if spec is not None]
        for spec in (self.features, self.drop):
            given += spec.split(",") if isinstance(spec, str) else spec or []
        # A range of numbers tells nothing of the first line.
        return [spec for spec in given if str(spec).strip().isdecimal() or names_columns(spec)]

    def numeric_specs(self) -> list[ColumnSpec] | None:
        """None: all but a label hold numbers."""
        return None

    def wanted(self, table: Table) -> Wanted:
        """Features in the order of the first file's, and the target."""
        target = self._target(table)
        order = _order(self.sort_by, table)
        if self.feature_names is None:
            by_time = order[0] if order else None
            found = find_features(self.features, table, target, self.drop, by_time)
        else:
            found = find_features(self.feature_names, table, target)
        if self.n_features is not None and len(found) != self.n_features:
            raise DataError(
                f"{counted(len(found), 'feature')} where there should be {self.n_features}",
                file=table.file,
                remedy="check --features",
            )
        if self.feature_names is None:
            self.feature_names = [column.name for column in found]
        self.all_names = self.all_names or table.names
        if target is not None and not self.column_names:
            self.column_names = {"target": target.name}
        learned = self._learned_as(found, table)
        texts = tuple(column for column, name in learned if self.treatment.is_text(name))
        numbers = tuple(column for column, name in learned if not self.treatment.is_text(name))
        if target is None or not self.needs_target:
            return Wanted(order, numbers, self._fields, texts)
        if self.labels:
            return Wanted((target, *order), numbers, self._fields, texts)
        if_missing = "correct it" if self.treatment.fixed else "say --missing drop, correct it"
        targets = (replace(target, loss=self.loss, if_missing=if_missing),)
        return Wanted(order, numbers + targets, self._fields, texts)

    def _learned_as(self, found: tuple[Column, ...], table: Table) -> list[tuple[Column, str]]:
        """Return the features, each with the name under which it was learned."""
        treatment = self.treatment
        if treatment.columns is None:
            treatment.columns = [column.name for column in found]
        if len(treatment.columns) != len(found):
            raise DataError(
                f"{counted(len(found), 'feature')} where {len(treatment.columns)} were learned",
                file=table.file,
                remedy="check --features",
            )
        gaps = treatment.missing == "mean"
        columns = [self._as_feature(column, gaps, table) for column in found]
        return list(zip(columns, treatment.columns, strict=True))

    def _as_feature(self, column: Column, may_miss: bool, table: Table) -> Column:
        """Say what to do about cells that are missing or text; rows to predict can be mended."""
        if not self.needs_target or self.treatment.fixed:
            return replace(column, may_miss=may_miss, if_missing="correct it")
        drop = f"leave the column out (--drop {typed_column(column.index, table)})"
        encode = "" if self.treatment.text else ", say --text one-hot"
        return replace(
            column,
            may_miss=may_miss,
            if_missing="say --missing mean or --missing drop, correct it",
            if_text=f"{drop}{encode}, correct it",
        )

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

    def _fields(self, ids: list[Array], numbers: list[Array], texts: list[Array]) -> dict[str, Any]:
        y: Array | None = None
        if self.needs_target:
            y = as_labels(ids[0]) if self.labels else numbers[-1]
            numbers = numbers if self.labels else numbers[:-1]
        fields: dict[str, Any] = {"X": self.treatment.features(numbers, texts, self.dtype), "y": y}
        return fields if self.sort_by is None else {**fields, "order": ids[-1]}

    def chunk(self, fields: dict[str, Any], **where: Any) -> Chunk:
        """A chunk of rows."""
        return RowChunk(**fields, **where)


def _order(sort_by: ColumnSpec | None, table: Table) -> tuple[Column, ...]:
    return () if sort_by is None else (find_column(sort_by, table, "sort-by"),)


#: What a reader is told of what it reads.
Plan = RatingPlan | RowPlan
