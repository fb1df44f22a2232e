"""Rounds made from arrays and from files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import Any, NamedTuple

from .._typing import Array

__all__ = ["ArrayRounds", "Batch", "DoublingRounds", "FileStream"]


class Batch(NamedTuple):
    """Checked observations of a round: arrays, or as X alone the handle of rows in a file."""

    X: Any
    y: Array | None = None
    w: Array | None = None
    #: Of a model of ids, those that have no number in the model yet.
    fresh: Any = None
    #: Of a model of rows, whose each row is: objects, None for nobody's; None if no row is named.
    ids: Array | None = None

    @property
    def n(self) -> int:
        """How many observations."""
        return int(self.X.stop - self.X.start) if self.y is None else len(self.y)

    @property
    def weight(self) -> float:
        """The sum of their weights (in a file: how many they are)."""
        return float(self.n) if self.w is None else float(self.w.sum())

    def part(self, rows: Any) -> Batch:
        """Return some of the observations."""
        assert self.y is not None
        w = None if self.w is None else self.w[rows]
        ids = None if self.ids is None else self.ids[rows]
        return Batch(self.X[rows], self.y[rows], w, self.fresh, ids)


class ArrayRounds:
    """Arrays cut into rounds of ``size`` observations, taken in an ``order`` if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.estimators.stream import ArrayRounds, Batch
    >>> rounds = ArrayRounds(Batch(np.eye(5), np.arange(5.0)), 2)
    >>> len(rounds), [batch.y.tolist() for batch in rounds]
    (3, [[0.0, 1.0], [2.0, 3.0], [4.0]])
    """

    def __init__(self, whole: Batch, size: int, order: Array | None = None) -> None:
        self._whole, self.size, self._order = whole, size, order
        self.n = whole.n

    def __len__(self) -> int:
        return ceil(self.n / self.size)

    def _take(self, start: int, stop: int) -> Batch:
        part = slice(start, stop)
        return self._whole.part(part if self._order is None else self._order[part])

    def first(self, n: int) -> Batch:
        """Return the first observations, n at most."""
        return self._take(0, n)

    def __iter__(self) -> Iterator[Batch]:
        for start in range(0, self.n, self.size):
            yield self._take(start, start + self.size)


class DoublingRounds(ArrayRounds):
    """Arrays cut into rounds that double: ``size`` observations, as many again, twice as many, ...

    The last round takes what is left if that is less than another one would have.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinefw.estimators.stream import Batch, DoublingRounds
    >>> rounds = DoublingRounds(Batch(np.eye(11), np.arange(11.0)), 2)
    >>> len(rounds), [batch.n for batch in rounds]
    (3, [2, 2, 7])
    """

    def __len__(self) -> int:
        return len(self._ends())

    def _ends(self) -> list[int]:
        ends = [min(self.size, self.n)]
        while ends[-1] < self.n:
            ends.append(2 * ends[-1] if 4 * ends[-1] <= self.n else self.n)
        return ends

    def __iter__(self) -> Iterator[Batch]:
        start = 0
        for end in self._ends():
            yield self._take(start, end)
            start = end


class FileStream:
    """Files (handles of rounds, with n observations in all) whose batches are taken as they come.

    ``first`` returns the first observations. ``take`` turns a handle into a :class:`Batch`: opened,
    or as it is if workers open it.
    """

    def __init__(
        self,
        files: Any,
        n: int,
        first: Callable[[], Batch],
        take: Callable[[Any], Batch],
    ) -> None:
        self._files, self.n, self._first, self._take = files, int(n), first, take

    def __len__(self) -> int:
        return len(self._files)

    def first(self, n: int) -> Batch:
        """Return the observations of the first batch, whatever n is."""
        return self._first()

    def __iter__(self) -> Iterator[Batch]:
        return map(self._take, self._files)
