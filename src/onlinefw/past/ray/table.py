"""One row of the table that spreads a past: how a verb is split, and how its answers are joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .worker import Method

__all__ = ["Join", "Split", "Table", "Verb"]

#: ``split(past, argument)`` returns what each shard gets of one argument.
Split = Callable[[Any, Any], list[Any]]
#: ``split(past, *arguments)`` returns the arguments for each shard, or None for nothing.
SplitAll = Callable[..., "list[tuple[Any, ...] | None]"]
#: ``join(past, answers)`` returns one answer, from those of the shards that were asked.
Join = Callable[[Any, list[Any]], Any]


@dataclass(frozen=True)
class Verb:
    """How shards carry out one verb of a past.

    Parameters
    ----------
    split : tuple of Split, or SplitAll
        For each argument, how it is split; or one function that splits all of them together.
    join : Join or tuple of Join, optional
        How the answers become one (of tuples, part by part). Without it nobody waits: the shards
        are told, and what goes wrong shows at the next question.
    run : str or callable, optional
        Another verb of the shard, or a function ``run(shard, *arguments)`` that runs in the worker;
        by default the shard's verb of this name.
    kept : "first", "log" or "last", optional
        How a rebuilt shard learns of it: before the log, together with all others of this kind;
        from the durable log, in order; or after the log, only the last one. By default not at all.
    logged : callable, optional
        ``logged(past, k, *arguments)`` returns what the log keeps of a message to shard k, if that
        is another one.
    slot : str, optional
        Of the verbs with the same slot only the last is kept as "last"; by default its own name.
    ends : tuple of str
        Slots that a rebuilt shard need not hear again after this verb.
    each : bool
        The first argument is a model, and what is kept or ended is that of this model.
    before : callable, optional
        ``before(past, *arguments)`` runs first, in this process.
    note : str, optional
        The method of the placement that notes, from the arguments, what has changed.
    tree : bool
        Let many workers add their answers up among themselves, so that one sum comes here.

    Examples
    --------
    Rows are split, v goes to all shards, and nobody waits::

        "move": Verb((same, rows, same)),

    The rows of G v are put together, the parts of G'G v are added up, in a tree if need be::

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
        """Return the arguments for each shard, None for those that are not concerned."""
        if callable(self.split):
            return self.split(past, *args)
        if not self.split:
            return [()] * past.n
        parts = [how(past, value) for how, value in zip(self.split, args, strict=True)]
        return list(zip(*parts, strict=True))

    def joined(self, past: Any, answers: list[Any]) -> Any:
        """Return one answer from those of the shards."""
        if isinstance(self.join, tuple):
            return self.joined_parts(past, list(zip(*answers, strict=True)))
        assert self.join is not None
        return self.join(past, answers)

    def joined_parts(self, past: Any, parts: list[Any]) -> Any:
        """Return a tuple, from the answers' parts."""
        assert isinstance(self.join, tuple)
        return tuple(one(past, list(part)) for one, part in zip(self.join, parts, strict=True))


#: For every verb of a protocol either a row of the table or, if it takes more than one message, a
#: function ``verb(past, *arguments)`` of this process.
Table = Mapping[str, Verb | Callable[..., Any]]
