"""Rounds made from arrays and from files, and the one loop that plays rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..readers.rounds import FileRounds

__all__ = [
    "ArrayRounds",
    "Batch",
    "FileStream",
    "is_files",
    "play_rounds",
    "shuffled",
]


class Batch(NamedTuple):
    """Checked observations of a round: arrays, or as X alone the handle of rows in a file."""

    X: Any
    y: Array | None = None
    w: Array | None = None

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
        return Batch(self.X[rows], self.y[rows], None if self.w is None else self.w[rows])


class ArrayRounds:
    """Arrays cut into rounds.

    Parameters
    ----------
    whole : Batch
        All observations.
    size : int
        Observations a round.
    order : array of int, optional
        The order in which to take them, if not as they are.

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


class FileStream:
    """Files cut into rounds.

    Parameters
    ----------
    files : FileRounds
        An iterable of handles, which say where the observations of a round are.
    n : int
        How many observations there are.
    first : callable
        Returns the first of them.
    take : callable
        Turns a handle into a :class:`Batch`: opened, or as it is if workers open it.
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


def is_files(X: Any) -> bool:
    """Whether X is files, cut into batches."""
    return isinstance(X, FileRounds)


def play_rounds(
    batches: Iterable[Any],
    play: Callable[[Any], None],
    refine: Callable[[], Any],
    *,
    passes_left: Callable[[], bool],
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Play a round with every batch, then those of later passes; return whether all were played.

    Parameters
    ----------
    batches : iterable
        The batches of the one pass over the data.
    play : callable
        Plays a round with a batch.
    refine : callable
        Plays a round without new data.
    passes_left : callable
        Whether another round without new data is wanted.
    stop : callable
        Whether to stop; asked after every round.

    Examples
    --------
    >>> from onlinefw.estimators.stream import play_rounds
    >>> played = []
    >>> play_rounds([1, 2], played.append, lambda: played.append(0),
    ...             passes_left=lambda: len(played) < 4)
    True
    >>> played
    [1, 2, 0, 0]
    """
    for batch in batches:
        play(batch)
        if stop():
            return False
    while passes_left():
        refine()
        if stop():
            return False
    return True


def shuffled(n: int, random_state: Any) -> Array:
    """Return the numbers from 0 to n - 1 in a random order."""
    return np.random.default_rng(random_state).permutation(n)
