"""The mean loss over a stream whose rows are not kept: its gradient is estimated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from .._state import check_state, describe, rebuild
from .._typing import Array, State
from .._validation import check_part, check_whole
from ..atoms import Atom, as_atom
from ..linalg import row_products
from ..losses import Loss
from ..past.place import is_compiled, new_summary
from ..sets import ConvexSet
from .half_life import check_half_life
from .lines import Parabola
from .row_objective import RowObjective, RowsBatch

__all__ = ["ESTIMATORS", "SummaryObjective", "check_place_of_summary"]

ESTIMATORS = ("diagonal", "recursive", "momentum")


def check_place_of_summary(device: Any, workers: Any) -> None:
    """Refuse places where there are no summaries."""
    if device != "cpu" or workers is not None:
        given = f"device={device!r}" if workers is None else f"workers={workers!r}"
        raise ValueError(
            f'past="summary" is kept in this process\'s memory, but {given} asks for another '
            "place: leave device and workers out"
        )


class SummaryObjective(RowObjective):
    """F_t(theta) = mean of loss(<theta, x_i> + b, y_i), of which only a summary is kept.

    For every feature there are three numbers: theta, an estimate d of the gradient, and an estimate
    D of the diagonal of the Hessian. Memory does not depend on t. ``gradient()`` and ``value()``
    are estimates, so there is no certificate: :meth:`certificate` is nan and :meth:`gap_estimate`
    is the gap of the estimated gradient.

    Parameters
    ----------
    loss : Loss
        A built-in one of :mod:`onlinefw.losses`.
    n_features : int
        The length of theta; memory is about 26 bytes for each.
    fit_intercept : bool
        Add an intercept b, outside the set.
    estimator : "diagonal", "recursive" or "momentum"
        All are d_t = (1 - rho_t) (d_{t-1} + change_t) + rho_t g_t(theta_t), where g_t is the
        gradient of the newest row. The change is that of older gradients since theta has moved: the
        newest row's g_t(theta_t) - g_t(theta_{t-1}) for "recursive" (1-SFW and ORGFW), nothing for
        "momentum", D (theta_t - theta_{t-1}) for "diagonal". The newest row tells little about it
        and with much noise, if rows are sparse: "diagonal" is much the best of them there.
    half_life : float, optional
        After so many rows a row counts half as much in the estimates ("diagonal" only: the others
        are as published), and in the mean of the losses. By default nothing is forgotten but for
        a little, since older gradients were taken at older thetas.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> objective = ofw.objectives.SummaryObjective(ofw.losses.Square(), n_features=2)
    >>> objective.observe(np.eye(2), np.array([1.0, -3.0]))  # the loss at theta = 0
    2.5
    >>> objective.gradient().round(2)  # older rows are forgotten a little
    array([-0.35,  1.94])
    """

    def __init__(
        self,
        loss: Loss,
        n_features: int,
        *,
        fit_intercept: bool = False,
        estimator: str = "diagonal",
        half_life: float | None = None,
    ) -> None:
        check_part("loss", loss, Loss, "Logistic()")
        if not is_compiled(loss):
            raise ValueError(
                f"a summary is made in compiled loops, which know the built-in losses but not "
                f"{type(loss).__name__}: use one of onlinefw.losses, or keep rows "
                "(LinearObjective)"
            )
        if estimator not in ESTIMATORS:
            raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
        half_life = check_half_life(half_life)
        if half_life is not None and estimator != "diagonal":
            raise ValueError(
                f'estimator="{estimator}" is as it was published, without a half_life: use '
                'estimator="diagonal", or half_life=None'
            )
        self.loss, self.fit_intercept, self.estimator = loss, bool(fit_intercept), estimator
        n = check_whole("n_features", n_features)
        self._shared = new_summary(loss, n, self.fit_intercept, estimator, half_life)
        super().__init__((n,))
        self._batch: Any = None

    def _new_iterate(self, shape: Any) -> Any:
        return self._shared  # theta is in the summary

    def beside(self) -> SummaryObjective:
        """Return another objective for the same rows, with a summary of its own."""
        self._check_no_rows()
        assert self.shape is not None
        more: dict[str, Any] = {"fit_intercept": self.fit_intercept, "estimator": self.estimator}
        return type(self)(self.loss, self.shape[0], half_life=self.half_life, **more)

    @property
    def half_life(self) -> float | None:
        """After how many rows a row counts half as much; None: nothing is forgotten."""
        return self._shared.half_life

    def use_place(self, device: str, workers: int | None, log_dir: Any = None) -> None:
        """Refuse every place but this process's memory."""
        check_place_of_summary(device, workers)

    def close(self) -> None:
        """Do nothing: there are no workers."""

    def mark(self) -> tuple[Any, ...]:
        """Return what is another once rows have come, for a round that fails."""
        return self.n_observations, self._shared.n_rows, self._shared.total_weight

    # Data --------------------------------------------------------------------------------------

    @property
    def intercept(self) -> float:
        """The intercept; 0 without one."""
        return self._shared.intercept

    @staticmethod
    def products_together(objectives: Sequence[SummaryObjective], X: Any) -> Array:
        """Return <theta, x> of checked rows, a column for each objective."""
        thetas = [np.asarray(one._shared.theta) for one in objectives]
        return row_products(X, np.column_stack(thetas))

    @staticmethod
    def add_together(objectives: Sequence[SummaryObjective], batch: RowsBatch) -> list[float]:
        """Let the summaries of several objectives learn rows; return each one's mean loss."""
        X, targets, w, *_ = batch
        pairs = zip(objectives, targets, strict=True)
        return [one.play(RowsBatch(X, [y], w), 0.0)[0] for one, y in pairs]

    @staticmethod
    def keep_together(objectives: Sequence[SummaryObjective]) -> None:
        """Do nothing: each has a summary of its own."""

    def play(self, batch: RowsBatch, radius: float) -> tuple[float, Array]:
        """Learn checked rows one after another, with a pairwise step on the l1 ball after each.

        A radius of 0 leaves theta as it is.

        Returns
        -------
        (float, ndarray)
            The weighted mean of the losses, and the predictions with the intercept, each of a row
            before it was learned.
        """
        X, (y,), w, *_ = batch
        paid, z = self._shared.play(X, y, w, radius)
        self.n_observations += X.shape[0]
        self._batch = (X, y, w)
        return float(paid / w.sum()), z

    # Value and gradient ------------------------------------------------------------------------

    def gradient(self) -> Array:
        """Return the estimated gradient of F_t."""
        self._needs_data()
        return self._shared.gradient

    def value(self) -> float:
        """Return the mean of the losses that were paid, an estimate of F_t, usually too large."""
        self._needs_data()
        return self._shared.value

    def certificate(self, constraint: ConvexSet) -> float:
        """Return nan: an estimated gradient certifies nothing."""
        return float("nan")

    def gap_estimate(self, constraint: ConvexSet) -> float:
        """Return <d, theta - s>, the largest over the set, of the estimated gradient d."""
        gradient = self.gradient()
        return self.gap(gradient, as_atom(constraint.lmo(gradient), gradient.shape))

    # Moving ------------------------------------------------------------------------------------

    def move(self, atom: Atom, step: float) -> None:
        """Move theta; the estimated gradient moves along the estimated curvature."""
        theta = (1.0 - step) * self._shared.theta
        atom.add_to(theta, step)
        self._shared.put(theta)

    def put(self, point: Array) -> None:
        """Put theta anywhere."""
        self._shared.put(np.array(point, dtype=float))

    def release(self) -> None:
        """Let the objective belong to no learner again, at theta = 0."""
        self._owner = self._constraint = None
        self._shared.put(np.zeros(self._shared.shape))

    def _refresh(self) -> None:
        return  # nothing is computed from theta

    def line(self, atom: Atom) -> Parabola:
        """Return the estimate of F along theta + c (atom - theta)."""
        direction = np.asarray(atom) - self._shared.theta
        bend = float(self._shared.curvature @ direction**2)
        return Parabola(self.value(), float(self.gradient() @ direction), bend)

    # State -------------------------------------------------------------------------------------

    def own_state(self) -> State:
        """Return the summary, and what it is of."""
        return {
            **self._base_state(),
            "loss": describe(self.loss),
            "fit_intercept": self.fit_intercept,
            "estimator": self.estimator,
            "half_life": self.half_life,
        }

    def past_state(self) -> State:
        """Return nothing: no rows are kept."""
        return {}

    def load_past(self, state: State) -> None:
        """Do nothing: no rows are kept."""

    def load_own(self, state: State) -> None:
        """Take over what ``own_state`` described."""
        check_state(state, "shape", "n_observations", "iterate", "estimator", "fit_intercept")
        same = (list(self.shape or ()), self.estimator, self.fit_intercept)
        if (list(state["shape"]), state["estimator"], state["fit_intercept"]) != same:
            raise ValueError(f"this is the state of another objective than {self}")
        n = state["n_observations"]
        if not isinstance(n, int) or not 0 <= n < 2**62:
            raise ValueError(f"a summary cannot be of {n!r:.40} rows")
        half_life = check_half_life(state.get("half_life"))
        self._shared.load_state(state["iterate"])
        self._shared.half_life = half_life
        self.n_observations, self._batch = n, None

    @classmethod
    def from_state(cls, state: State, *, loss: Loss | None = None, **place: Any) -> Self:
        """Make the objective that ``state_dict`` described."""
        check_place_of_summary(place.get("device", "cpu"), place.get("workers"))
        check_state(state, "loss", "shape", "fit_intercept", "estimator", "iterate")
        loss = rebuild(state["loss"], "loss", loss)
        more: dict[str, Any] = {name: state[name] for name in ("fit_intercept", "estimator")}
        more["half_life"] = state.get("half_life")
        assert loss is not None
        return cls(loss, state["shape"][0], **more).load_state(state)

    def __repr__(self) -> str:
        return (
            f"SummaryObjective({self.loss}, n_features={(self.shape or (0,))[0]}, "
            f"estimator={self.estimator!r}, n_observations={self.n_observations})"
        )
