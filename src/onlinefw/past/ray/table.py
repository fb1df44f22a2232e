"""A row of a table: how the arguments of a verb are split, and how its answers are joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .worker import Method

__all__ = ["Join", "Split", "Table", "Verb"]

#: ``split(past, argument)`` returns what each shard gets of one argument.
Split = Callable[[Any, Any], list[Any]]
#: ``split(past, *arguments)`` returns the arguments for each shard, None for one that gets none.
SplitAll = Callable[..., "list[tuple[Any, ...] | None]"]
#: ``join(answers)`` returns one answer, from those of the shards that were asked.
Join = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Verb:
    """How shards carry out one verb of a past.

    Parameters
    ----------
    split : tuple of Split, or SplitAll
        For each argument, how it is split; or one function that splits all of them together.
    join : Join or tuple of Join, optional
        How the answers are joined (of tuples, part by part). Without it nobody waits for answers,
        and an error in a shard is raised by the next verb that does wait.
    run : str or callable, optional
        Another verb of the shard, or a function ``run(shard, *arguments)`` that runs in the worker;
        by default the shard's verb of this name.
    kept : "first", "log" or "last", optional
        How a rebuilt shard gets the message again: with all "first" ones, before the log; from the
        log, in order; or after the log, and only the last one. By default not at all.
    logged : callable, optional
        ``logged(recovery, k, *arguments)`` returns the message that the log keeps in place of the
        one to shard k.
    slot : str, optional
        Of all messages with the same slot only the last is kept; by default the verb's name.
    ends : tuple of str
        Slots whose message a rebuilt shard no longer needs after this verb.
    each : bool
        The first argument is a model; each model has slots of its own.
    before : callable, optional
        ``before(past, *arguments)`` runs first, in this process.
    note : str, optional
        The method of the placement that notes, from the arguments, what has changed.
    tree : bool
        Let many workers add up their answers in a tree, so that one sum comes to this process.

    Examples
    --------
    The rows of u are split, v goes to all shards, and nobody waits::

        "move": Verb((same, rows, same)),

    The rows of G v are put together, the parts of G'G v are added up, by many workers in a tree::

        "normal": Verb((same, rows), join=(interleaved, total), tree=True),
    """

    split: tuple[Split, ...] | SplitAll
    join: Join | tuple[Join, ...] | None = None
    run: Method | None = None
    kept: str | None = None
    logged: Callable[..., tuple[Any, tuple[Any, ...]]] | None = None
    slot: str | None = None
    ends: tuple[str, ...] = ()
    each: bool = False
    before: Callable[..., None] | None = None
    note: str | None = None
    tree: bool = False

    def split_for(self, past: Any, args: tuple[Any, ...]) -> list[Any]:
        """Return the arguments for each shard, None for those that get no message."""
        if callable(self.split):
            return self.split(past, *args)
        if not self.split:
            return [()] * past.n
        parts = [how(past, value) for how, value in zip(self.split, args, strict=True)]
        return list(zip(*parts, strict=True))

    def joined(self, answers: list[Any]) -> Any:
        """Return one answer from those of the shards."""
        if isinstance(self.join, tuple):
            return self.joined_parts(list(zip(*answers, strict=True)))
        assert self.join is not None
        return self.join(answers)

    def joined_parts(self, parts: list[Any]) -> Any:
        """Return a tuple, from the answers' parts."""
        assert isinstance(self.join, tuple)
        return tuple(one(list(part)) for one, part in zip(self.join, parts, strict=True))


#: For every verb of a protocol either a row of the table or, if it takes more than one message, a
#: function ``verb(past, *arguments)`` of this process.
Table = Mapping[str, Verb | Callable[..., Any]]
