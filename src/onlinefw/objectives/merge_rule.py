"""When the newest observed entries are sorted in among the others."""

from __future__ import annotations

from math import sqrt

__all__ = ["due_for_merge", "held_out"]

#: The tail is sorted in when it has more entries than this, and than the square root of
#: MERGE_COST * (sorted entries) * (entries of the last batch). A longer tail makes rounds slow, a
#: shorter one makes merges frequent. At this length both cost the same, if merging an entry takes
#: three quarters of the time that an entry of the tail adds to a round.
SHORTEST_TAIL = 1024
#: Sorting takes 44 bytes an entry: a longer tail would save little time for much memory.
LONGEST_TAIL = 2**23
MERGE_COST = 1.5
#: Up to this many of the newest entries stay in the tail, where only Frank-Wolfe steps use them.
NEWEST = 2**15


def due_for_merge(n_sorted: int, n_newest: int, last_batch: int) -> int:
    """Return how many of the oldest entries of a tail are to be sorted in; 0 while it is short.

    This depends on counts of observations only, so that a run that was interrupted, certified or
    moved to another place sorts in the same entries at the same time.

    Examples
    --------
    >>> from onlinefw.objectives.merge_rule import due_for_merge
    >>> due_for_merge(0, 1000, 1), due_for_merge(0, 2000, 1)
    (0, 1488)
    """
    longest = int(min(max(SHORTEST_TAIL, sqrt(MERGE_COST * n_sorted * last_batch)), LONGEST_TAIL))
    return 0 if n_newest <= longest else n_newest - min(max(longest, last_batch) // 2, NEWEST)


def held_out(n_newest: int) -> int:
    """Return how many of the newest entries regressions leave out, so that they can be judged.

    A tail that has just been cut is left out as a whole: to sort half of it in would read all
    entries for a few.
    """
    return n_newest if NEWEST // 2 <= n_newest <= NEWEST else min(n_newest // 2, NEWEST)
