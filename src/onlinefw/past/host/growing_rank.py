"""The rank of local models: more, once all of it is in use."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typing import Array
from ...kernels import local_models as kernels
from ...kernels.lists import Lists
from ...kernels.ridge import WIDTH

__all__ = ["FIRST", "MOST", "is_in_use", "next_rank", "rank_for_clicks", "with_rank"]

#: Models whose rank is found begin with this one, and have this one at most: three of them are
#: mixed, so theta has rank 63 at most. To begin with less takes less time, but streams of a few
#: thousand ratings find their directions later.
FIRST, MOST = 14, 21
#: All of it is in use if the smallest singular value is at least so large, compared with the
#: largest: where the rank of the truth is larger than that of a model it is larger still.
IN_USE = 0.1
#: Besides, the largest must be more than what is left of the start factors: this times the number
#: of entries.
ALIVE = 0.006

#: Models of clicks have a rank of about this times the events of a mean row, or of a mean column if
#: that has fewer, and this one at most: rows with many events can tell more directions apart, and
#: more than they can does harm. Where events are learned one by one it is less: an event takes time
#: like the square of the rank.
OF_CLICKS, MOST_OF_CLICKS, MOST_ONE_BY_ONE = 2.0, 126, 62


def rank_for_clicks(events: float, rows: int, columns: int, *, one_by_one: bool = False) -> int:
    """Return the rank of a model of clicks that so many events are the beginning of, in tiles.

    Examples
    --------
    >>> from onlinefw.past.host.growing_rank import rank_for_clicks
    >>> [rank_for_clicks(n, 6_000, 3_500) for n in (10_000, 100_000, 300_000, 1e9)]
    [14, 38, 102, 126]
    """
    each = events / max(rows, columns, 1)
    rank = kernels.width_of(int(OF_CLICKS * each)) - kernels.BESIDE
    return min(max(rank, FIRST), MOST_ONE_BY_ONE if one_by_one else MOST_OF_CLICKS)


def next_rank(rank: int) -> int:
    """Return the next larger rank: that of one tile more."""
    return min(rank + WIDTH, MOST)


def is_in_use(models: kernels.Models, by_row: Lists, by_column: Lists) -> bool:
    """Whether all singular values of a model are large, in the norm that belongs to its ridges.

    It is the model with the medium ridge, the second of three.
    """
    m = min(1, len(models.ridges) - 1)
    sides = (models.rows, by_row.length), (models.columns, by_column.length)
    rows, columns = (
        kernels.weighted_gram(side.factors, m, models.rank, length, models.ridges)
        for side, length in sides
    )
    values = np.sqrt(np.maximum(np.linalg.eigvals(rows @ columns).real, 0.0))
    entries = int(by_row.length.sum())
    return bool(values.max() > ALIVE * entries and values.min() > IN_USE * values.max())


def with_rank(
    models: kernels.Models, rank: int, columns: Array, sums_each: int | None = None
) -> kernels.Models:
    """Return models of a larger rank and the same theta, as the new factors of rows are 0.

    Those of ``columns``, all that have entries, are what they would have been from the start. The
    sums of long lists, ``sums_each`` or one for each model, are to be made again.
    """
    count, old = len(models.ridges), models.rank
    had, width = models.rows.factors.shape[1] // count, kernels.width_of(rank)

    def wider(side: kernels.Side) -> kernels.Side:
        factors: Array = np.zeros((len(side.factors), count * width), side.factors.dtype)
        each = factors.reshape(-1, count, width)
        each[:, :, :old] = side.factors.reshape(-1, count, had)[:, :, :old]
        return side._replace(factors=factors)

    def emptied(sums: kernels.Sums) -> kernels.Sums:
        new = kernels.new_sums(sums.number.size, len(sums.added), sums_each or count, width)
        new.number[:], new.used[:] = sums.number, sums.used
        return new

    changed: dict[str, Any] = {"rank": rank}
    changed |= {name: wider(getattr(models, name)) for name in ("rows", "columns")}
    changed |= {name: emptied(getattr(models, name)) for name in ("row_sums", "column_sums")}
    kernels.start_factors(changed["columns"].factors, count, old, rank, columns)
    return models._replace(**changed)
