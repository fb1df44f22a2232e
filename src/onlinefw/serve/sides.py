"""Two copies of a model: readers ask one while the other learns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from threading import Condition
from typing import Any

__all__ = ["Sides"]


class Sides:
    """A model twice: the ``front`` answers, the ``back`` learns, then they change places.

    What the back has learned, the other copy learns after the change, so that both are the same
    bit for bit. Readers wait for nobody; whoever learns waits until the last reader has left the
    copy that is to learn next.

    Examples
    --------
    >>> from onlinefw.serve.sides import Sides
    >>> sides = Sides(["learned"])
    >>> sides.back.append("learning")
    >>> with sides.reading() as model:
    ...     print(model)
    ['learned']
    >>> sides.swap()
    >>> with sides.reading() as model:
    ...     print(model)
    ['learned', 'learning']
    """

    def __init__(self, model: Any) -> None:
        self._models = [model, deepcopy(model)]
        self._readers = [0, 0]
        self._front = 0
        self._changed = Condition()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Lend the front; it does not change before it is given back."""
        with self._changed:
            side = self._front
            self._readers[side] += 1
        try:
            yield self._models[side]
        finally:
            with self._changed:
                self._readers[side] -= 1
                if not self._readers[side]:
                    self._changed.notify_all()

    @property
    def back(self) -> Any:
        """The copy that nobody reads, for the one who learns."""
        return self._models[1 - self._front]

    def swap(self) -> None:
        """Let new readers have the back; return when nobody reads the other copy any more."""
        with self._changed:
            self._front = 1 - self._front
            other = 1 - self._front
            while self._readers[other]:
                self._changed.wait()

    def restore_back(self) -> None:
        """Let the back be what the front is, if it has learned what must not be."""
        self._models[1 - self._front] = deepcopy(self._models[self._front])

    def replace(self, model: Any) -> None:
        """Let another model take the place of both."""
        self._models[1 - self._front] = model
        self.swap()
        self.restore_back()
