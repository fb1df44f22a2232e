"""A past of any kind, spread over the workers of a Ray cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._typing import State
from .batch_log import BatchLog
from .errors import ClusterLost
from .joins import total
from .shards import TREE_FROM, Message, Shards
from .table import Table, Verb
from .worker import Method, Shard

if TYPE_CHECKING:
    from ..place import Place

__all__ = ["Placement", "SplitPast"]


class Placement(ABC):
    """What this process knows about a kind of past that is spread over shards.

    Attributes of a subclass hold what this process knows without a message: the attributes of the
    protocol, and which shard has what. Its methods note changes, as the table says (``note``).
    """

    @abstractmethod
    def opening(self, k: int, n: int, device: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return a function and its arguments, which make shard k of n without data."""

    def rebuild(self, past: SplitPast, k: int, logged: Iterable[Message]) -> Iterator[Message]:
        """Yield the messages of the log, and others that a new shard k needs."""
        yield from logged


class SplitPast:
    """A past whose verbs are carried out by n shards, as the table of its kind says.

    The placement is what this process knows about the past.
    """

    _own = frozenset({"placement", "shards", "n", "device", "log", "_table", "_first", "_last"})

    def __init__(self, table: Table, placement: Placement, place: Place) -> None:
        assert place.workers is not None
        self._table = table
        self.placement: Any = placement
        self.device, self.n = place.device, place.workers
        self._first: list[tuple[Method, list[Any]]] = []
        self._last: dict[tuple[str, Any], tuple[Method, list[Any]]] = {}
        self.log = BatchLog(self.n, place.log_dir)
        self.shards = Shards(self.n, self.device, self._opening, self._rebuild)

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
            with self._whole_record(verb):
                self._remember(name, verb, args, pieces)
            return answer
        except BaseException:
            if verb.kept or verb.note:  # some shards may have changed
                self.shards.rebuild_later()
            raise

    def _tell(
        self, name: str, verb: Verb, method: Method, args: tuple[Any, ...], pieces: list[Any]
    ) -> None:
        with self._whole_record(verb):
            self._remember(name, verb, args, pieces)
        try:
            with suppress(ClusterLost):  # it is in the log; the next question raises it
                self.shards.tell(method, pieces)
        except BaseException:
            self.shards.rebuild_later()
            raise

    @contextmanager
    def _whole_record(self, verb: Verb) -> Iterator[None]:
        """Leave no torn record in the log, whatever interrupts the writing."""
        before = self.log.sizes() if verb.kept == "log" else []
        try:
            yield
        except BaseException:
            if before:
                self.log.cut_back(before)
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

    def _remember(self, name: str, verb: Verb, args: tuple[Any, ...], pieces: list[Any]) -> None:
        """Note what has changed, and which messages a rebuilt shard needs."""
        method: Method = verb.run or name
        of = args[0] if verb.each else None
        for slot, model in list(self._last):
            if slot in verb.ends and (model == of or not verb.each):
                del self._last[slot, model]
        if verb.kept == "first":
            self._first.append((method, pieces))
        elif verb.kept == "last":
            self._last.pop((verb.slot or name, of), None)  # so that it becomes the last of the dict
            self._last[verb.slot or name, of] = method, pieces
        elif verb.kept == "log":
            for k, piece in enumerate(pieces):
                if piece is not None:
                    logged = verb.logged(self, k, *piece) if verb.logged else (method, piece)
                    self.log.append(k, logged)
        if verb.note is not None:
            getattr(self.placement, verb.note)(*args)

    def ask_all(self, method: Method, *args: Any) -> list[Any]:
        """Return every shard's answer to the same question."""
        return self.shards.ask(method, [args] * self.n)

    # A shard that is rebuilt ----------------------------------------------------------------------

    def _opening(self, k: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.placement.opening(k, self.n, self.device)

    def _rebuild(self, k: int) -> Iterator[Message]:
        for method, pieces in self._first:
            yield method, pieces[k]
        yield from self.placement.rebuild(self, k, self.log.records(k))
        for method, pieces in self._last.values():
            if pieces[k] is not None:
                yield method, pieces[k]

    def states(self) -> list[State]:
        """Return the states of all shards, which come from the log if the cluster is lost."""
        try:
            return self.ask_all("state_dict")
        except ClusterLost:
            return [self._rebuilt_here(k).past.state_dict() for k in range(self.n)]

    def _rebuilt_here(self, k: int) -> Shard:
        make, args = self.placement.opening(k, self.n, "cpu")
        shard = Shard(make(*args))
        for method, arguments in self._rebuild(k):
            shard.carry_out(method, arguments)
        return shard
