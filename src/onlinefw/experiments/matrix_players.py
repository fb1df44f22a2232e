"""How each algorithm of Figure 1 plays a matrix completion problem.

A player takes the problem, the batch size, the number of rounds (steps, iterations) and a function
to call after each, and returns its record. It plays a tiny problem first, so that compiling is not
timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds

from ..algorithms import Learner, OnlineFrankWolfe, Round
from ..baselines import OnlineProjectedGradient, active_alt
from ..objectives import ObservedEntries
from ..sets import TraceNormBall
from ..steps import Harmonic, LineSearch
from .experiment import Advance, Record
from .matrix_problems import MatrixProblem, synthetic_problem
from .recorder import BatchWatch, Trace, play

__all__ = ["ALT_OPTIONS", "LMO", "PLAYERS", "SVDS_TOL"]

#: How closely linear minimisations look for the top singular pair: at most so many reads, until
#: one adds less than this share of the gap. The library's own limits are for speed; here the gap
#: that is plotted has to be that of F_t, not that of a pair which is nearly the top one.
LMO = {"lmo_steps": 30, "lmo_tol": 1e-5}

#: At the end of a run the top pair of the gradient is found again, to this share of its value.
SVDS_TOL = 1e-6

#: Active ALT stops at this duality gap; the rank grows by at most ``extra`` an iteration (with
#: fewer than its usual 40 it is nearer to the optimum in the same time).
ALT_OPTIONS = {"tol": 0.01, "extra": 10}

Player = Callable[[MatrixProblem, int, int, Advance], Record]


def entries_of(problem: MatrixProblem, steps: int) -> ObservedEntries:
    """Return an objective in double precision; theta has room for so many atoms: none is cut."""
    return ObservedEntries(problem.shape, dtype=float, max_atoms=max(8, steps + 1), **LMO)  # type: ignore[arg-type]


@cache
def _warm_up(player: Player) -> None:
    """Play a tiny problem, once, so that everything is compiled.

    It has long factors, and enough entries to be merged, so that every kernel is called.
    """
    tiny = synthetic_problem((20, 9000), rank=2, n=4000, factor=1.1, seed=0)
    player(tiny, 400, 10, lambda t: None)


def _warmed_up(player: Player) -> Player:
    def play_warm(problem: MatrixProblem, batch: int, rounds: int, advance: Advance) -> Record:
        _warm_up(player)
        return player(problem, batch, rounds, advance)

    return play_warm


def play_fw(problem: MatrixProblem, batch: int, rounds: int, advance: Advance) -> Record:
    """O-FW, Algorithm 1."""
    ball = TraceNormBall(problem.radius)
    trace = _play_online(
        lambda: OnlineFrankWolfe(entries_of(problem, rounds), ball, step=Harmonic(2)),
        problem,
        batch,
        rounds,
        advance,
    )
    return {
        **_of_online(trace),
        "final gap": _final_gaps(trace.learner, ball),
        "radius": problem.radius,
        "delta": problem.delta,
        "constant": problem.constant,
        "n_matrix": int(np.prod(problem.shape)),
    }  # fmt: skip


def play_opg(problem: MatrixProblem, batch: int, rounds: int, advance: Advance) -> Record:
    """O-PG: the aggregated gradient, step 1 / L, and a projection by a full SVD."""
    ball, rank = TraceNormBall(problem.radius), min(problem.shape)
    return _of_online(_play_online(
        lambda: OnlineProjectedGradient(entries_of(problem, 2 * rank), ball),
        problem, batch, rounds, advance,
    ))  # fmt: skip


def _play_online(
    make: Callable[[], Learner], problem: MatrixProblem, batch: int, rounds: int, advance: Advance
) -> Trace:
    looks = {"measure": problem.measure}
    return play(make, lambda: problem.rounds(batch), rounds, looks, advance, warm_up=0)


def _of_online(trace: Trace) -> Record:
    return {
        "t": trace.t,
        **_against_time(trace),
        "gap": trace.gap_at(),
        "round_milliseconds": trace.round_milliseconds(min(10, len(trace.round_seconds))),
    }


def _final_gaps(learner: Any, ball: TraceNormBall) -> dict[str, float]:
    """Return the gap of the last theta: with O-FW's pair, with that of an independent solver.

    And the learner's certificate, an upper bound. The clock has stopped. ``svds`` (ARPACK) starts
    at random, with nothing from the rounds before; it uses the gradient's products alone.
    """
    objective = learner.objective
    gradient = objective.gradient()
    found = float(objective.gap(gradient, ball.lmo(gradient)))
    start = np.random.default_rng(0).standard_normal(min(gradient.shape))
    (top,) = svds(gradient, k=1, tol=SVDS_TOL, v0=start, return_singular_vectors=False)
    return {
        "found": found,
        "svds": float(gradient.theta_dot + ball.radius * top),
        "certificate": float(learner.certificate()),
    }


def play_batch(problem: MatrixProblem, batch: int, rounds: int, advance: Advance) -> Record:
    """Batch FW with line search."""
    trace = play(
        lambda: BatchFrankWolfe(problem, rounds),  # type: ignore[arg-type, return-value]
        lambda: _all_at_once(problem),
        rounds,
        {"measure": problem.measure},
        advance,
        warm_up=0,
    )
    return _against_time(trace)


class BatchFrankWolfe:
    """Batch FW by the code of O-FW: all entries in round 1, none later, and searched steps.

    The iterates are those of :func:`~onlinefw.baselines.batch_frank_wolfe`, but no objective is
    computed and no theta copied for a history: nothing but the algorithm is timed.
    """

    def __init__(self, problem: MatrixProblem, steps: int) -> None:
        ball = TraceNormBall(problem.radius)
        self._learner = OnlineFrankWolfe(entries_of(problem, steps), ball, step=LineSearch())

    @property
    def theta(self) -> Any:
        """The current iterate."""
        return self._learner.theta

    def observe(self, X: Any, y: Any) -> Round:
        """Take a step, with what is new if there is anything."""
        return self._learner.refine() if X is None else self._learner.observe(X, y)


def _all_at_once(problem: MatrixProblem) -> Iterator[tuple[Any, Any]]:
    yield problem.X, problem.y
    while True:
        yield None, None


def play_alt(problem: MatrixProblem, batch: int, rounds: int, advance: Advance) -> Record:
    """Active ALT, on all entries at once."""
    watch = BatchWatch({"measure": problem.measure}, advance)
    objective = entries_of(problem, rounds)
    objective.observe(problem.X, problem.y)
    ball = TraceNormBall(problem.radius)
    active_alt(objective, ball, max_iter=rounds, callback=watch, **ALT_OPTIONS)  # type: ignore[arg-type]
    return {"seconds": watch.seconds, "measure": watch.looks["measure"]}


def _against_time(trace: Trace) -> Record:
    return {"seconds": trace.seconds, "measure": trace.looks["measure"]}


PLAYERS: dict[str, Player] = {
    "O-FW": _warmed_up(play_fw),
    "O-PG": _warmed_up(play_opg),
    "batch FW": _warmed_up(play_batch),
    "active ALT": _warmed_up(play_alt),
}
