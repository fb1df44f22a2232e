"""Which rows of the past count, and how much: all, the newest, or a random sample."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, isinf, nan
from typing import Any

import numpy as np

from .._growing import GrowingArray
from .._randomness import generator_from_state
from .._typing import Array, State
from .._validation import check_whole
from .._whole import Uninterrupted
from ..past.place import Place, moved, new_rows
from .base import other_place
from .fading_sample import FadingSample
from .half_life import KEPT, Clock, clock_from_state, new_clock
from .row_ids import RowIds

__all__ = ["PASTS", "KeptRows", "check_past"]

PASTS = ("all", "recent", "reservoir")


def check_past(past: Any, max_past: Any) -> int | None:
    """Return how many rows are kept (None: all), or say what is wrong with the two."""
    if past not in PASTS:
        if past == "summary":
            raise ValueError(
                'past="summary" keeps no rows: use SummaryObjective, or past="summary" of a '
                "regressor or classifier"
            )
        raise ValueError(f"past must be one of {', '.join(PASTS)}, got {past!r}")
    if past == "all":
        if max_past is not None:
            raise ValueError(
                f'max_past={max_past!r} needs past="recent" or past="reservoir"; past="all" keeps '
                "every row"
            )
        return None
    if max_past is None:
        raise ValueError(f'past="{past}" needs max_past, the number of rows to keep')
    return check_whole("max_past", max_past)


class KeptRows:
    """Rows that one objective, or several side by side, learn from, and which of them count.

    A forgotten row gets weight 0 at once; it is removed when more than half of the rows are such.

    With a half-life new rows get growing weights (:class:`~.half_life.Clock`), and those that came
    more than ``KEPT`` half-lives ago are forgotten. ``seen_weight`` and ``total_weight`` add up
    such weights. A reservoir is then a :class:`~.fading_sample.FadingSample`.

    Rows may have ``ids``. Those of an id leave with ``forget``, and have then not come, as far as
    weights are concerned; ``n_seen`` and the clock go on from where they are.

    ``random_state`` draws the reservoir.
    """

    def __init__(
        self,
        rule: str,
        max_past: int | None,
        random_state: Any,
        place: Place | None = None,
        half_life: Any = None,
    ) -> None:
        self.rule, self.max_past = rule, check_past(rule, max_past)
        self._begin(new_clock(half_life))
        self.place = Place() if place is None else place
        self.past = new_rows(self.place)  # with the predictions of all models
        self.n_models = 0
        self.n_seen = self.n_kept = 0  # rows that have come (with a positive weight), that count
        self.n_held = 0  # rows in the past
        self.seen_weight = 0.0  # of the rows that have come
        self.total_weight = 0.0  # of the rows that count
        self._w = GrowingArray()  # weights of the rows held; empty if all count
        # Which row is in each place of the reservoir; -1 where it has been forgotten by its id.
        self._slots = GrowingArray(dtype=np.int64)
        self.ids: RowIds | None = None  # None while no row has one
        self._arranged = False
        self._rng = np.random.default_rng(0 if random_state is None else random_state)

    def _begin(self, clock: Clock | None) -> None:
        """Count rows with this clock, if one is given."""
        self.clock, self.sample = clock, None
        #: Only so many of the newest rows count; None: all, or a sample.
        self.newest = self.max_past if self.rule == "recent" else None
        if clock is None:
            return
        if self.rule == "reservoir":
            assert self.max_past is not None
            self.sample = FadingSample(self.max_past)
            return
        self.newest = self._newest(clock)

    def _newest(self, clock: Clock) -> int | None:
        """Return how many of the newest rows count; None: all of them."""
        if isinf(clock.half_life):
            return self.max_past
        most = ceil(KEPT * clock.half_life)
        return most if self.max_past is None else min(self.max_past, most)

    def go_on(self, half_life: float | None) -> None:
        """Let rows fade with another half-life from now on; weights stay as they are."""
        assert self.clock is not None
        self.clock = self.clock.going_on(half_life)
        if self.sample is None:
            self.newest = self._newest(self.clock)

    def append(self, X: Any, Z: Array, Y: Array, w: Array, ids: Array | None = None) -> None:
        """Add rows, with predictions and targets of all models; forget what is too much."""
        if self.clock is None:
            self.past.append(X, Z, Y, w)
            self.count(w, ids)
            return
        clock, factor, weights = self.clock.after(w)
        if factor != 1.0:
            self._rescale(factor)
        self.past.append(X, Z, Y, weights)
        if self.sample is not None:
            self.sample.draw(self.clock, w, self._rng)
        self.clock = clock
        self.count(weights, ids)

    def _rescale(self, factor: float) -> None:
        """Multiply all weights by a power of two."""
        # The totals first: they tell of a round that fails half-way.
        self.seen_weight *= factor
        self.total_weight *= factor
        self.past.rescale(factor)
        w = self._w.data
        w *= factor

    def agrees(self) -> bool:
        """Whether the past has the rows that were counted, and no more."""
        return len(self.past) == self.n_held

    def count(self, w: Array, ids: Array | None = None) -> None:
        """Count rows that the past has received, by their weights; forget what is too much."""
        if ids is not None and self.ids is None:
            self.ids = RowIds(self.n_held)
        if self.ids is not None:
            self.ids.append(ids, len(w))
        new = int(np.count_nonzero(w))
        self.n_seen += new
        self._arranged = False
        # One after another, so that it makes no difference where batches end.
        self.seen_weight = float(np.add.accumulate(np.append(self.seen_weight, w))[-1])
        self.n_held += len(w)
        if self.rule == "all" and self.clock is None:
            self.n_kept += new
            self.total_weight = self.seen_weight
        else:
            n_before = len(self._w)
            self._w = self._w.extended(w)
            self._forget(n_before + np.flatnonzero(w))

    @property
    def reach(self) -> float:
        """The weight that new rows are compared with: of all that the rows kept stand for."""
        return self.total_weight if self.rule == "recent" else self.seen_weight

    def _forget(self, new: Array) -> None:
        """Choose which rows stay, now that some (that count) have come."""
        w = self._w.data
        if self.sample is not None:
            self._weigh_sample(w, self.sample)
        else:
            if self.newest is not None:
                gone = self._oldest(w, self.newest)
            else:  # nothing fades any more, or rows are drawn
                gone = self._drawn(new) if self.rule == "reservoir" else new[:0]
            if gone.size:
                self.past.weigh(gone, 0.0)
                w[gone] = 0.0
        self.n_kept = int(np.count_nonzero(w))
        if 2 * self.n_kept < w.size:
            self._remove(w > 0.0)
        self.total_weight = float(self._w.data.sum())

    def _remove(self, mask: Array) -> None:
        """Remove the rows where ``mask`` is False, among them all that do not count."""
        left = self._w.kept(mask) if len(self._w) else self._w
        moved_to = np.append(np.where(mask, np.cumsum(mask) - 1, -1), -1)  # the last one is for -1
        slots = GrowingArray.holding(moved_to[self._slots.data])
        self.past.keep(mask)
        if self.sample is not None:
            self.sample.keep(mask)
        if self.ids is not None:
            self.ids.keep(mask)
        self._w, self._slots, self.n_held = left, slots, len(self.past)

    def has_others(self, ids: Iterable[Any]) -> bool:
        """Whether any row counts that none of these ids has."""
        others = np.ones(self.n_held, bool) if self.ids is None else ~self.ids.rows_of(ids)
        return bool(others.any() if not len(self._w) else (others & (self._w.data > 0.0)).any())

    def forget(self, ids: Iterable[Any]) -> None:
        """Remove the rows of these ids, and all trace of the ids; some other row counts."""
        assert self.ids is not None
        gone = self.ids.rows_of(ids)
        self._arranged = False
        if self.rule == "all" and self.clock is None:
            self._remove(~gone)
            self.total_weight = nan  # tells of a round that fails before it is known again
            w = self.past.residuals(0)[1]
            self.n_kept, self.total_weight = int(np.count_nonzero(w)), float(w.sum())
            self.seen_weight = self.total_weight
            return
        came = self._w.data
        if self.sample is not None:
            assert self.clock is not None
            came = self.sample.came_with(self.clock.shift)
        weight = float(came[gone].sum())
        self._remove((self._w.data > 0.0) & ~gone)
        self.seen_weight -= weight
        self.n_kept, self.total_weight = len(self._w), float(self._w.data.sum())

    def arrange(self) -> None:
        """Hold the rows that count, and no others, in a form that has no trace of batches."""
        if self._arranged:
            return
        with Uninterrupted():  # who asks for a certificate plays no round
            if self.n_kept < len(self._w):
                self._remove(self._w.data > 0.0)
                self.total_weight = float(self._w.data.sum())
            self.past.arrange()
            self._arranged = True

    @staticmethod
    def _oldest(w: Array, newest: int) -> Array:
        """Return the rows that leave, if so many of the newest stay."""
        alive = np.flatnonzero(w)
        return alive[: max(0, alive.size - newest)]

    def _weigh_sample(self, w: Array, sample: FadingSample) -> None:
        """Let the rows of the sample count what they stand for now."""
        assert self.clock is not None
        weights = sample.weights(self.clock.shift)
        other = np.flatnonzero(weights != w)
        if other.size:
            self.past.weigh(other, weights[other])
            w[other] = weights[other]

    def _drawn(self, new: Array) -> Array:
        """Return what leaves the reservoir, so that each row seen is in it with equal chance.

        Row number s (from 1) enters with probability max_past / s, and replaces a random one.
        The place of a row that was forgotten by its id stays empty until it is drawn, so that those
        that come later have no better chance.
        """
        assert self.max_past is not None
        room = min(self.max_past - len(self._slots), new.size)
        if room:
            self._slots.append(new[:room])
        late = new[room:]
        if not late.size:
            return late
        slots, gone = self._slots.data, late.copy()
        chances = self._rng.integers(np.arange(self.n_seen - late.size, self.n_seen) + 1)
        for k in np.flatnonzero(chances < self.max_past):
            gone[k], slots[chances[k]] = slots[chances[k]], late[k]
        return gone[gone >= 0]

    def use_place(self, device: Any, workers: Any, log_dir: Any = None) -> None:
        """Move the rows to another place, or leave everything as it was."""
        place = other_place(self.place, device, workers, log_dir)
        if place is None:
            return
        old, new = self.past, new_rows(place)
        for loss, iterate, waits in old.models():
            new.add_model(loss, iterate, waits)
        self.past, self.place = moved(old, new), place

    def state_dict(self) -> State:
        """Return the rows, and how to go on choosing."""
        return {
            "rule": self.rule,
            "max_past": self.max_past,
            "n_seen": self.n_seen,
            "n_kept": self.n_kept,
            "seen_weight": self.seen_weight,
            "total_weight": self.total_weight,
            "weights": self._w.data.copy(),
            "slots": self._slots.data.copy(),
            "random": self._rng.bit_generator.state,
            "clock": None if self.clock is None else self.clock.state_dict(),
            "sample": None if self.sample is None else self.sample.state_dict(),
            **({} if self.ids is None else {"ids": self.ids.state_dict()}),
            "past": self.past.state_dict(),
        }

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described; the models have been added."""
        self.rule, self.max_past = state["rule"], check_past(state["rule"], state["max_past"])
        weights = np.array(state["weights"], float)
        rows = np.shape(state["past"]["w"])
        self._begin(clock_from_state(state.get("clock")))
        if (self.rule != "all" or self.clock is not None) and weights.shape != rows:
            raise ValueError(f"there are {weights.size} weights for {rows[0]} rows")
        if self.sample is not None:
            self.sample.load_state(state["sample"], weights.size)
        self._rng = generator_from_state(state["random"])
        self.n_seen, self.n_kept = int(state["n_seen"]), int(state["n_kept"])
        self.total_weight = float(state["total_weight"])
        # Older states have no slots: their rows are in order.
        self.seen_weight = float(state.get("seen_weight", self.n_seen))
        uniform = self.rule == "reservoir" and self.sample is None
        alive = np.flatnonzero(weights) if uniform else np.empty(0, np.int64)
        slots = np.array(state.get("slots", alive), np.int64)
        if not np.array_equal(np.sort(slots[slots >= 0]), alive) or (slots < -1).any():
            raise ValueError("the reservoir has places for other rows than those that count")
        self._slots = GrowingArray.holding(slots)
        self._w = GrowingArray.holding(weights)
        self.ids = RowIds.from_state(state["ids"], rows[0]) if "ids" in state else None
        self.past.load_state(state["past"])
        self.n_held = len(self.past)
