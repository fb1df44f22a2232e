"""How a shard whose worker has died is made again, and which messages bring it up to date."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .batch_log import BatchLog
from .table import Verb
from .worker import Method, Shard

__all__ = ["Message", "Placement", "Recovery"]

#: A verb or function for a shard, and its arguments.
Message = tuple[Method, tuple[Any, ...]]


class Placement(ABC):
    """What this process knows about a kind of past that is spread over shards.

    Attributes of a subclass hold what this process knows without a message: the attributes of the
    protocol, and which shard has what. Its methods note changes, as the table says (``note``).
    """

    @abstractmethod
    def opening(self, k: int, n: int, device: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return a function and its arguments, which make shard k of n without data."""

    def rebuild(self, recovery: Recovery, k: int, logged: Iterable[Message]) -> Iterator[Message]:
        """Yield the messages of the log, and others that a new shard k needs."""
        yield from logged


class Recovery:
    """The messages that n shards have got, as far as a new shard needs them again.

    Some verbs are remembered in a log in files, of others the first or the last messages (``kept``
    in the table). The rest follows from the placement.
    """

    def __init__(self, placement: Placement, n: int, device: str, log_dir: Any) -> None:
        self.placement: Any = placement
        self.n, self.device = n, device
        self.log = BatchLog(n, log_dir)
        self._first: list[tuple[Method, list[Any]]] = []
        self._last: dict[tuple[str, Any], tuple[Method, list[Any]]] = {}

    def opening(self, k: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return a function and its arguments, which make shard k without data."""
        return self.placement.opening(k, self.n, self.device)

    def messages(self, k: int) -> Iterator[Message]:
        """Yield the messages that bring a new shard k up to date."""
        for method, pieces in self._first:
            yield method, pieces[k]
        yield from self.placement.rebuild(self, k, self.log.records(k))
        for method, pieces in self._last.values():
            if pieces[k] is not None:
                yield method, pieces[k]

    def rebuilt_here(self, k: int) -> Shard:
        """Return shard k in this process's memory."""
        make, args = self.placement.opening(k, self.n, "cpu")
        shard = Shard(make(*args))
        for method, arguments in self.messages(k):
            shard.carry_out(method, arguments)
        return shard

    def remember(self, name: str, verb: Verb, args: tuple[Any, ...], pieces: list[Any]) -> None:
        """Note what a verb has changed, and which messages a new shard needs."""
        with self._whole_record(verb):
            self._remember(name, verb, args, pieces)

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

    def _remember(self, name: str, verb: Verb, args: tuple[Any, ...], pieces: list[Any]) -> None:
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
