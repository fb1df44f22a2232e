"""Objects whose data live with workers, and what they are in one process."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

__all__ = ["Elsewhere"]


class Elsewhere:
    """Is pickled (copied, frozen) as an object of ``home_class`` that holds everything itself."""

    __slots__ = ()
    home_class: type

    @abstractmethod
    def home_state(self) -> dict[str, Any]:
        """Return the attributes of that object, with the data gathered."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Made first and filled later, so that cycles (rows know their objectives) are no obstacle.
        return _bare, (self.home_class,), self.home_state()


def _bare(cls: type) -> Any:
    return object.__new__(cls)
