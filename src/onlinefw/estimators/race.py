"""Choosing among models that learn side by side: which of them predicts new batches best."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._state import check_state, number
from .._typing import Array, State
from ..objectives.half_life import clock_from_state, new_clock

__all__ = ["Race"]

#: A model is clearly worse than another if their scores differ by so many standard errors of both,
#: or by so many of their difference: the first if all models are settled.
BEATEN, BEATEN_IN_PAIRS = 2.0, (3.0, 5.0)
#: With more rows a larger radius may become the best, so the neighbours of the best one stay: of
#: settled models one on either side, until so many rows have come; of others, which learn the more
#: slowly the larger the radius is, one below and two above.
NEIGHBOURS_UNTIL, BELOW, ABOVE = 2000, 1, (1, 2)
#: Products of scores are formed for so many rows at a time.
PIECE = 1024
#: Rounding of a sum of squares, relative to it.
ROUNDING = 1e-15


class Race:
    """Scores of several models by progressive validation, and the choice among them.

    Every batch is predicted by all models before they learn it. An observation counts as often as
    others have come before it, so that early ones matter little (with ``late``, only the second
    half counts). A round with an undefined score does not count; a model that had an infinite loss
    stays last.

    The race of n models, in the order of their radii, is over when ``rows`` observations have come
    or after so many ``rounds``, but not before ``least_rounds``; by default it never ends. Of equal
    models (before the first round all are) the one nearest to ``middle`` is best. With a half-life
    scores fade as the data do.
    """

    def __init__(
        self,
        n: int,
        *,
        rows: int | None = None,
        rounds: int | None = None,
        least_rounds: int = 1,
        late: bool = False,
        middle: int | None = None,
        half_life: float | None = None,
    ) -> None:
        self.n, self.rows, self.rounds, self.least_rounds = n, rows, rounds, least_rounds
        self.middle = n // 2 if middle is None else middle
        self.late, self.clock = late, new_clock(half_life)
        self.t = self.n_seen = 0
        self._weight, self._total = 0.0, np.zeros(n)
        # Sums of weight^2 times 1 and score, and times the product of any two scores.
        self._sums, self._products = np.zeros((2, n)), np.zeros((n, n))

    def add(self, scores: Array, weight: float, n: int) -> None:
        """Add a round: a score for each model (the larger the better), for n observations."""
        self.t += 1
        self.n_seen += n
        share = weight * (self._is_late if self.late else self.n_seen) * float(self._faded(n)[-1])
        if share and not np.isnan(scores).any():
            self._weight += share
            self._total += share * scores
            self._sums += share**2 * np.array([np.ones_like(scores), scores])
            self._products += share**2 * np.multiply.outer(scores, scores)

    def add_rows(self, scores: Array, w: Array, size: int) -> None:
        """Add rounds of ``size`` rows each, with a score (a line) for every row.

        The sums are formed row by row, so that it makes no difference how many come at a time, and
        a few rounds of many rows tell as much as many rounds of few.
        """
        n = len(w)
        ends = np.minimum((np.arange(n) // size + 1) * size, n)  # of the round of each row
        share = w * (self.n_seen + ends) * self._faded(n)
        share[np.isnan(scores).any(axis=1)] = 0.0
        self.t += -(-n // size)
        self.n_seen += n
        counted = share > 0.0
        share, scores = share[counted], scores[counted]
        with np.errstate(over="ignore", invalid="ignore"):  # a model that went astray is the last
            powers = np.stack([np.ones_like(scores), scores], axis=1)
            self._weight = float(_added(self._weight, share))
            self._total = _added(self._total, share[:, None] * scores)
            squares = (share**2)[:, None, None]
            self._sums = _added(self._sums, squares * powers)
            for start in range(0, len(scores), PIECE):
                some = scores[start : start + PIECE]
                products = some[:, :, None] * some[:, None, :]
                self._products = _added(self._products, squares[start : start + PIECE] * products)

    def _faded(self, n: int) -> Array:
        """Count n observations; return their weights, as older ones have faded."""
        if self.clock is None:
            return np.ones(n)
        self.clock, factor, weights = self.clock.after(np.ones(n))
        self._weight, self._total = self._weight * factor, self._total * factor
        square = factor**2  # as those of squared weights
        self._sums, self._products = self._sums * square, self._products * square
        return weights

    @property
    def _is_late(self) -> bool:
        return (self.rounds is not None and 2 * self.t > self.rounds) or (
            self.rows is not None and 2 * self.n_seen > self.rows
        )

    @property
    def over(self) -> bool:
        """Whether enough observations or rounds have come."""
        enough = (self.rounds is not None and self.t >= self.rounds) or (
            self.rows is not None and self.n_seen >= self.rows
        )
        return enough and self.t >= self.least_rounds

    @property
    def means(self) -> Array:
        """The mean scores; 0 before the first."""
        return self._total / self._weight if self._weight else self._total.copy()

    def standard_error(self, k: int) -> float:
        """Return the standard error of the mean score k, from its spread over the rounds."""
        mean = self.means[k]
        if self._weight == 0.0 or not np.isfinite(mean):
            return 0.0
        ones, first = self._sums[:, k]
        with np.errstate(over="ignore", invalid="ignore"):
            spread = self._products[k, k] - 2.0 * mean * first + mean**2 * ones
        return float(np.sqrt(max(spread, 0.0))) / self._weight if np.isfinite(spread) else 0.0

    def error_of_difference(self, j: int, k: int) -> float:
        """Return the standard error of mean score j less mean score k.

        Both have predicted the same rows, of which some are hard for all: their difference is known
        better than either.
        """
        means, products = self.means, self._products
        with np.errstate(over="ignore", invalid="ignore"):
            mean, first = means[j] - means[k], self._sums[1, j] - self._sums[1, k]
            squares = products[j, j] + products[k, k]
            spread = squares - 2.0 * products[j, k] - 2.0 * mean * first
            spread = max(spread + mean**2 * self._sums[0, j], ROUNDING * squares)
        known = self._weight > 0.0 and np.isfinite(spread)
        return float(np.sqrt(spread)) / self._weight if known else 0.0

    @property
    def best(self) -> int:
        """The model with the best score so far."""
        return self.nearly_best(0.0)

    def nearly_best(self, share: float) -> int:
        """Return the middlemost model whose score is within a share of the best one."""
        means = self.means
        most = float(means.max())
        slack = share * abs(most) if np.isfinite(most) else 0.0
        close = np.flatnonzero(means >= most - slack)
        return int(close[np.argmin(np.abs(close - self.middle))])

    def unbeaten(self, settled: bool) -> list[int]:
        """Return who may still win: the best, its neighbours, and who is not clearly worse.

        Models are ``settled`` if each is at the optimum of its rows. Without a corrective, or in
        one of several valleys, they are not, and scores say less about what comes.
        """
        means, best = self.means, self.best
        error, pairs = self.standard_error(best), BEATEN_IN_PAIRS[0 if settled else 1]
        spared = range(best - BELOW, best + ABOVE[0 if settled else 1] + 1)
        if settled and self.n_seen >= NEIGHBOURS_UNTIL:
            spared = range(best, best + 1)

        def is_close(k: int) -> bool:
            apart = BEATEN * (error + self.standard_error(k))
            return means[best] - means[k] <= min(apart, pairs * self.error_of_difference(best, k))

        return [k for k in range(self.n) if k in spared or is_close(k)]

    def simplest(self, standard_errors: float) -> int:
        """Return the first model whose score is within so many standard errors of the best."""
        chosen = self.best
        slack = standard_errors * self.standard_error(chosen) if self.t > 1 else 0.0
        if not slack > 0.0:
            return chosen
        means = self.means
        return int(np.flatnonzero(means >= means.max() - slack)[0])

    def keep(self, chosen: list[int]) -> None:
        """Go on with some of the models."""
        self.middle = int(np.argmin(np.abs(np.array(chosen) - self.middle)))
        self.n = len(chosen)
        self._total, self._sums = self._total[chosen], self._sums[:, chosen]
        self._products = self._products[np.ix_(chosen, chosen)]

    def state_dict(self) -> State:
        """Return everything as plain arrays and numbers."""
        names = ("n", "rows", "rounds", "least_rounds", "late", "middle", "t", "n_seen")
        sums = {"total": self._total, "sums": self._sums, "products": self._products}
        sums = {name: array.copy() for name, array in sums.items()}
        clock = None if self.clock is None else self.clock.state_dict()
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "weight": self._weight, **sums, "clock": clock}

    @classmethod
    def from_state(cls, state: State) -> Race:
        """Make the race that ``state_dict`` described."""
        check_state(state, "n", "rows", "rounds", "least_rounds", "late", "middle")
        check_state(state, "t", "n_seen", "weight", "total", "sums")
        n = int(state["n"])
        total, sums = (np.array(state[name], float) for name in ("total", "sums"))
        # Older states have the products of each model's scores with themselves only, as a line.
        old = "products" not in state and sums.shape == (3, n)
        products = np.diag(sums[2]) if old else np.array(state.get("products"), float)
        sums = sums[:2]
        fit = total.shape == (n,) and sums.shape == (2, n) and products.shape == (n, n)
        if n < 1 or not fit or np.isnan(total).any() or np.isnan(sums).any():
            raise ValueError(f"this is not the state of a race of {n} models")
        limits: dict[str, Any] = {
            name: None if state[name] is None else int(number(state[name], f"{name} of a race"))
            for name in ("rows", "rounds")
        }
        limits |= {"least_rounds": int(state["least_rounds"]), "late": bool(state["late"])}
        race = cls(n, **limits, middle=int(number(state["middle"], "the middle of a race")))
        race.t, race.n_seen = int(state["t"]), int(state["n_seen"])
        race._weight, race.clock = float(state["weight"]), clock_from_state(state.get("clock"))
        race._total, race._sums, race._products = total, sums, products
        return race


def _added(total: Any, terms: Array) -> Any:
    """Return a sum with more terms, added one after another."""
    return np.add.accumulate(np.concatenate((np.asarray(total)[None], terms)))[-1]
