"""A past of plain numbers, one in each row: what tables can say, without any mathematics."""

import numpy as np

from onlinefw.past.place import Place
from onlinefw.past.ray import joins, splits
from onlinefw.past.ray.recovery import Placement
from onlinefw.past.ray.split_past import SplitPast
from onlinefw.past.ray.table import Verb


class Numbers:
    """The sum of what was added to each row, and a factor."""

    def __init__(self, rows):
        self.sums, self.factor, self.start = np.zeros(rows), 1.0, None

    def append(self, rows, values):
        if not np.isfinite(values).all():
            raise FloatingPointError("not a number")
        np.add.at(self.sums, rows, values)

    def scale(self, factor):
        self.factor *= factor

    def values(self):
        return self.factor * self.sums

    def total(self):
        return self.factor * self.sums.sum()

    def products(self, V):
        return self.values()[:, None] * V, np.outer(self.values().sum(), V)

    def begin(self, start):
        self.start = start

    def since(self):
        return self.total() - self.start.sum()

    def state_dict(self):
        return {"values": self.values()}


def doubled(shard):
    return 2.0 * shard.past.total()


def batch(past, rows, values):
    owner = rows % past.n
    pieces = [(rows[owner == k] // past.n, values[owner == k]) for k in range(past.n)]
    return [piece if piece[0].size else None for piece in pieces]


TABLE = {
    "append": Verb(batch, kept="log", note="count"),
    "scale": Verb((splits.same,), ends=("begin",), note="scaled"),
    "values": Verb((), joins.interleaved),
    "total": Verb((), joins.total, tree=True),
    "products": Verb((splits.same,), (joins.interleaved, joins.total), tree=True),
    "begin": Verb((splits.rows,), joins.first, kept="last"),
    "since": Verb((), joins.total),
    "twice": lambda past: 2.0 * past.total(),
    "doubled": Verb((), joins.total, run=doubled),
    "state_dict": lambda past: {
        "values": joins.interleaved([state["values"] for state in past.states()])
    },
}


class NumbersPlacement(Placement):
    """This process knows how many values came, and the product of all factors."""

    def __init__(self, rows):
        self.rows, self.appended, self.factor = rows, 0, 1.0

    def count(self, rows, values):
        self.appended += rows.size

    def scaled(self, factor):
        self.factor *= factor

    def opening(self, k, n, device):
        return Numbers, (splits.row_count(k, n, self.rows),)

    def rebuild(self, past, k, logged):
        yield from logged
        yield "scale", (self.factor,)

    def __len__(self):
        return self.appended


def numbers(rows, workers, log_dir=None):
    return SplitPast(TABLE, NumbersPlacement(rows), Place("cpu", workers, log_dir))
