"""What a step and a round report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Outcome", "Round"]


class Outcome(NamedTuple):
    """One step on F_t. The gaps belong to theta before the step.

    ``gap`` is the algorithm's own gap (g^AW for O-AW), ``fw_gap`` is g^FW. A ``step_size`` of 0
    means that theta has not moved, which ends the round. The kinds are those of :class:`Round`.
    """

    gap: float
    fw_gap: float
    step_size: float
    kind: str


@dataclass(frozen=True, slots=True)
class Round:
    """One round: play theta_t, receive f_t, update.

    The gaps belong to theta *before* the last inner step, on F_t with the new batch included: with
    one step a round that is theta_t, the theta that was played; with several it is what the earlier
    ones have made of it. With open-loop steps theta_{t+1} can be worse. For a statement about the
    current theta call ``learner.certificate()``.

    Attributes
    ----------
    t : int
        The number of the round, from 1.
    loss : float
        Weighted mean of the batch's losses at theta_t, paid before the update.
    gap : float
        The algorithm's own duality gap: g^FW for O-FW, g^AW for O-AW and pairwise steps (g^FW
        while the active set is empty); of the last inner step.
    fw_gap : float
        g^FW = max over the set of <grad F_t, theta_t - s>; for a convex loss an upper bound on
        F_t(theta_t) - min F_t.
    step_size : float
        The step length of the last inner step.
    kind : str
        "fw", "away", "pairwise" or "drop"; "corrective" if a corrective took the step; "hold" if
        theta was good enough already (``inner_steps="auto"``), if it waits for its corrective, and
        of :class:`~onlinefw.OnlineFactors`; "pg" for projected gradient; "local" for
        :class:`~onlinefw.baselines.OnlineLocalFrankWolfe`.
    n_steps : int
        The step counter n_t after the round: inner steps advance it, drops do not.
    gap_upper : float
        An upper bound on ``fw_gap`` where the LMO is inexact (``ObservedEntries``): filled every
        ``certify_every`` rounds, nan otherwise. Where it is exact, ``fw_gap`` itself.
    reads : int
        How often the round read all entries (``ObservedEntries``; 0 for other objectives).
    """

    t: int
    loss: float
    gap: float
    fw_gap: float
    step_size: float
    kind: str
    n_steps: int
    gap_upper: float = float("nan")
    reads: int = 0
