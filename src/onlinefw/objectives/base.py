"""What every objective provides: the running mean F_t of the losses seen, at one iterate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from math import prod
from typing import Any, cast

import numpy as np

from .._threads import NOTHING, SHORT_WORK, one_blas_thread
from .._typing import Array, Direction, Shape, State
from .._whole import Broken, WholeRound
from ..atoms import Atom, as_atom
from ..iterates import ActiveSet, DenseIterate, LowRank, iterate_from_state
from ..line_search import Line
from ..past.place import Place, check_place, here
from ..sets import ConvexSet
from .exchanges import Exchanges
from .fading import Fading

__all__ = ["Line", "Objective"]


class Breakable(ABC):
    """What can fail half-way: it is as before then, or refuses everything."""

    _iterate: DenseIterate | LowRank | None

    n_observations: int

    def mark(self) -> tuple[Any, ...]:
        """Return what is another once data or theta have changed, for a round that fails."""
        iterate = self._iterate
        if isinstance(iterate, LowRank):
            return self.n_observations, iterate._held
        return self.n_observations, iterate and iterate.theta

    def is_at(self, mark: tuple[Any, ...]) -> bool:
        """Whether nothing has changed since the mark was made."""
        if isinstance(self._iterate, Broken):
            return False
        now = self.mark()
        return self._agrees() and all(map(_same, now, mark))

    def _agrees(self) -> bool:
        """Whether the past has what is counted, and no more."""
        return True

    def round_failed(self, error: BaseException, mark: tuple[Any, ...]) -> None:
        """If anything has changed since the mark was made, refuse everything from now on."""
        if not self.is_at(mark):
            self.break_off(error)

    def break_off(self, error: BaseException) -> None:
        """Refuse everything from now on, since a round has failed half-way."""
        self._iterate = cast(Any, Broken(error))


class Objective(Exchanges, Fading, Breakable):
    """The mean loss F_t of everything observed, and the iterate it is evaluated at.

    Every observation weighs the same, or its ``sample_weight``. The paper's F_t is the mean over
    *rounds*, of losses f_t that are sums or means over a round's rows: up to a constant factor the
    same if all batches have one length, and another function if they do not.

    An objective holds what depends on *one* iterate (usually the predictions of all past rows) and
    updates that as the iterate moves, so it belongs to one learner.

    Attributes
    ----------
    shape : tuple of int or None
        The shape of theta; None until the first batch, unless it was given.
    n_observations : int
        How many rows have been observed.
    """

    shape: Shape | None = None
    n_observations: int = 0
    #: How often all entries have been read (``ObservedEntries``; 0 for others).
    reads: int = 0
    #: Whether linear minimisation over its gradient is exact, so that a gap is its own bound.
    exact_lmo: bool = True

    def __init__(self, shape: Shape | None) -> None:
        self._iterate: DenseIterate | LowRank | None = None
        self._owner: str | None = None
        self._constraint: ConvexSet | None = None
        if shape is not None:
            self._set_shape(shape)

    # The iterate -------------------------------------------------------------------------------

    @property
    def iterate(self) -> DenseIterate | LowRank:
        """The iterate; zero until a learner moves it."""
        if self._iterate is None:
            raise ValueError("the number of features is not known before the first batch")
        return self._iterate

    @property
    def theta(self) -> Array | LowRank | None:
        """The current point; None while its shape is unknown."""
        return None if self._iterate is None else self._iterate.theta

    def attach(self, owner: str, constraint: ConvexSet) -> None:
        """Claim this objective for one learner; a second one is refused."""
        if self._owner is not None:
            raise ValueError(
                f"this {type(self).__name__} already belongs to a learner ({self._owner}): it "
                f"holds that learner's predictions, so a second one ({owner}) cannot use it; "
                "make a new objective"
            )
        if self.shape is not None:
            constraint.check_shape(self.shape)
        elif constraint.needs_matrix:  # rows of unknown length are vectors for certain
            constraint.check_shape(())
        self._constraint, self._owner = constraint, owner

    def release(self) -> None:
        """Let the objective belong to no learner again, at theta = 0, with all its data."""
        self._owner = self._constraint = None
        if self.shape is not None:
            self._set_iterate(self._new_iterate(self.shape))
            self._refresh()

    def _agree_on(self, shape: Shape) -> None:
        """Check the shape of a first batch against the set, before anything changes."""
        if self.shape is None and self._constraint is not None:
            self._constraint.check_shape(shape)

    def _set_shape(self, shape: Shape) -> None:
        self.shape = tuple(int(n) for n in shape)
        self._set_iterate(self._new_iterate(self.shape))

    def _set_iterate(self, iterate: Any) -> None:
        """Replace the iterate by another object."""
        self._iterate = iterate

    def _new_iterate(self, shape: Shape) -> DenseIterate | LowRank:
        return DenseIterate(shape)

    # What a learner asks -----------------------------------------------------------------------

    def working(self) -> AbstractContextManager[Any]:
        """Return a context to play a round in: several BLAS threads would be in the way."""
        return NOTHING if prod(self.shape or ()) < SHORT_WORK else one_blas_thread()

    def observe(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Check a batch and add it; return its mean loss at the current iterate."""
        batch = self.check(X, y, sample_weight)
        with WholeRound(self, self.mark()):
            return self.add(batch)

    @abstractmethod
    def check(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Return a batch that can be added, or refuse it; nothing changes."""

    @abstractmethod
    def add(self, batch: Any) -> float:
        """Add a checked batch; return its mean loss at the current iterate."""

    @abstractmethod
    def gradient(self) -> Direction:
        """Return the gradient of F_t at the current iterate."""

    @abstractmethod
    def value(self) -> float:
        """Return F_t at the current iterate."""

    @abstractmethod
    def move(self, atom: Atom, step: float) -> None:
        """Let theta <- (1 - step) theta + step * atom, with all predictions of the past."""

    @abstractmethod
    def line(self, atom: Atom) -> Line:
        """Return F along theta + c (atom - theta)."""

    def gap(self, gradient: Direction, atom: Atom) -> float:
        """Return <gradient, theta - atom>: the FW gap, if the atom minimises <., gradient>."""
        return self._iterate.dot(gradient) - atom.dot(gradient)  # type: ignore[union-attr]

    def upper_gap(self, gradient: Direction, constraint: ConvexSet) -> float:
        """Return an upper bound on the FW gap of theta (the gap itself, if the LMO is exact)."""
        return self.gap(gradient, as_atom(constraint.lmo(gradient), gradient.shape))

    def certificate(self, constraint: ConvexSet) -> float:
        """Return an upper bound on the FW gap at the current iterate; nothing changes."""
        return self.upper_gap(self.gradient(), constraint)

    def put(self, point: Array) -> None:
        """Put theta anywhere (projected gradient steps), at the cost of a full pass."""
        iterate = self.iterate
        if not isinstance(iterate, DenseIterate):
            raise TypeError(f"{type(self).__name__} keeps a low-rank iterate: it moves along atoms")
        iterate.put(point)
        self._refresh()

    def put_combination(self, active_set: ActiveSet) -> None:
        """Put theta at its active set's combination, which equals it to rounding.

        What only a dropped atom held is then exactly 0. Predictions need no change.
        """
        iterate = self.iterate
        assert isinstance(iterate, DenseIterate)
        iterate.put(active_set.combination(iterate.shape))

    @abstractmethod
    def _refresh(self) -> None:
        """Compute everything that depends on theta again."""

    def smoothness(self) -> float:
        """Return an L such that F_t is L-smooth, where one is known."""
        raise ValueError(f"the smoothness of {type(self).__name__} is not known: pass step=")

    def batch_gradient(self) -> Array:
        """Return the gradient of the last batch's mean loss at the current iterate."""
        raise ValueError(f"{type(self).__name__} has no batches: use OnlineProjectedGradient")

    def batch_smoothness(self) -> float:
        """Return the smoothness of the last batch's mean loss."""
        return self.smoothness()

    # State -------------------------------------------------------------------------------------

    @abstractmethod
    def state_dict(self) -> State:
        """Return everything as plain arrays and JSON-able values."""

    def _base_state(self) -> State:
        return {
            "objective": type(self).__name__,
            "shape": None if self.shape is None else list(self.shape),
            "n_observations": self.n_observations,
            "iterate": None if self._iterate is None else self._iterate.state_dict(),
        }

    def _load_base(self, state: State) -> None:
        self.shape = None if state["shape"] is None else tuple(state["shape"])
        self.n_observations = int(state["n_observations"])
        if state["iterate"] is not None:
            iterate = iterate_from_state(state["iterate"])
            if iterate.shape != self.shape:
                raise ValueError(f"theta has shape {iterate.shape}, not {self.shape}")
            self._set_iterate(iterate)

    def _needs_data(self) -> None:
        if self.n_observations == 0:
            raise ValueError("nothing has been observed yet: call observe(X, y) first")


def _same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, (int, float)) and bool(one == other))


class PickledByState:
    """A pickle holds the state of the objective, its loss (which may be the user's own), its owner.

    Data that were on a GPU go to one again if there is one here; all others, those of workers
    too, go to the memory of this process.
    """

    def __getstate__(self) -> State:
        one: Any = self
        loss, owner = getattr(one, "loss", None), (one._owner, one._constraint)
        return {"state": one.state_dict(), "loss": loss, "owner": owner, "device": one.device}

    def __setstate__(self, state: State) -> None:
        parts: dict[str, Any] = {"device": here(state["device"]).device}
        if "loss" in state["state"]:
            parts["loss"] = state["loss"]
        vars(self).update(vars(type(self).from_state(state["state"], **parts)))  # type: ignore[attr-defined]
        self._owner, self._constraint = state["owner"]


def other_place(old: Place, device: Any, workers: Any, log_dir: Any) -> Place | None:
    """Return the place that is asked for; None if the data are there already."""
    if workers == old.workers and device in (old.device, workers and "auto"):
        return None  # what "auto" means was decided when the workers started
    new = check_place(device, workers, log_dir)
    return None if (new.device, new.workers) == (old.device, old.workers) else new


def spectral_norm_squared(rows: Any, weights: Array) -> float:
    """Return the largest eigenvalue of X' diag(w) X / sum(w) for a small dense or sparse batch."""
    scaled = np.sqrt(weights / weights.sum())[:, None] * (
        rows.toarray() if hasattr(rows, "toarray") else rows
    )
    gram = scaled @ scaled.T if scaled.shape[0] <= scaled.shape[1] else scaled.T @ scaled
    return float(np.linalg.eigvalsh(gram)[-1])
