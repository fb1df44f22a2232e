"""A past of any kind, spread over the workers of a Ray cluster."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._typing import State
from .errors import ClusterLost
from .joins import total
from .recovery import Placement, Recovery
from .shards import TREE_FROM, Shards
from .table import Table, Verb
from .worker import Method

if TYPE_CHECKING:
    from ..place import Place

__all__ = ["SplitPast"]


class SplitPast:
    """A past whose verbs are carried out by n shards, as the table of its kind says.

    The placement is what this process knows about the past.
    """

    _own = frozenset({"placement", "shards", "n", "device", "log", "recovery", "_table"})

    def __init__(self, table: Table, placement: Placement, place: Place) -> None:
        assert place.workers is not None
        self._table = table
        self.placement: Any = placement
        self.device, self.n = place.device, place.workers
        self.recovery = Recovery(placement, self.n, self.device, place.log_dir)
        self.log = self.recovery.log
        self.shards = Shards(self.n, self.device, self.recovery)

    def __getattr__(self, name: str) -> Any:
        """Return a verb, or something that this process knows about the past."""
        if name in SplitPast._own:  # __init__ has not set it yet
            raise AttributeError(name)
        entry = self._table.get(name)
        if isinstance(entry, Verb):
            return partial(self.do, name, entry)
        return getattr(self.placement, name) if entry is None else partial(entry, self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in SplitPast._own:
            object.__setattr__(self, name, value)
        else:
            setattr(self.placement, name, value)

    def __len__(self) -> int:
        return len(self.placement)

    def close(self) -> None:
        """Release the workers and remove the log."""
        self.shards.close()
        self.log.close()

    # Verbs ----------------------------------------------------------------------------------------

    def do(self, name: str, verb: Verb, *args: Any) -> Any:
        """Carry out a verb.

        A verb without answers is noted and logged before it is sent, one with answers when all have
        come. So a shard that is rebuilt in between gets the first from the log, and is asked the
        second again.
        """
        self.shards.check_alive()
        if verb.before is not None:
            verb.before(self, *args)
        pieces = verb.split_for(self, args)
        method: Method = verb.run or name
        if verb.join is None:
            self._tell(name, verb, method, args, pieces)
            return None
        try:
            answer = self._asked(verb, method, pieces)
            self.recovery.remember(name, verb, args, pieces)
            return answer
        except BaseException:
            if verb.kept or verb.note:  # some shards may have changed
                self.shards.rebuild_later()
            raise

    def _tell(
        self, name: str, verb: Verb, method: Method, args: tuple[Any, ...], pieces: list[Any]
    ) -> None:
        self.recovery.remember(name, verb, args, pieces)
        try:
            with suppress(ClusterLost):  # it is in the log; the next question raises it
                self.shards.tell(method, pieces)
        except BaseException:
            self.shards.rebuild_later()
            raise

    def _asked(self, verb: Verb, method: Method, pieces: list[Any]) -> Any:
        if verb.tree and self.n >= TREE_FROM and None not in pieces:
            joins = verb.join if isinstance(verb.join, tuple) else (verb.join,)
            parts = self.shards.ask_in_tree(method, pieces, [one is total for one in joins])
            if parts is not None:
                whole = isinstance(verb.join, tuple)
                return verb.joined_parts(parts) if whole else verb.joined(parts[0])
        answers = self.shards.ask(method, pieces)
        asked = [a for a, piece in zip(answers, pieces, strict=True) if piece is not None]
        return verb.joined(asked)

    def ask_all(self, method: Method, *args: Any) -> list[Any]:
        """Return every shard's answer to the same question."""
        return self.shards.ask(method, [args] * self.n)

    def states(self) -> list[State]:
        """Return the states of all shards, which come from the log if the cluster is lost."""
        try:
            return self.ask_all("state_dict")
        except ClusterLost:
            return [self.recovery.rebuilt_here(k).past.state_dict() for k in range(self.n)]
