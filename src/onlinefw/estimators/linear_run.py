"""What a regressor or classifier has learned, in the units of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._state import check_state, number
from .._typing import Array, State
from .._validation import check_whole
from ..past.place import check_place
from .history import History
from .linear_parts import LinearParts, warn_of_radius
from .opening import Opening
from .path import Path
from .race import Race
from .run import Run, read_counters, saved_half_life
from .scaling import Scaling
from .stream import Batch

__all__ = ["LinearRun", "a_piece", "check_team", "new_run", "run_from_state"]

#: ``radius="auto"``: several radii learn side by side on so many rows ...
RACE_ROWS = 20_000
#: ... of which those that are clearly worse stop, from so many rows on ...
BEATEN_FROM = 500
#: ... and before the first round this one of them predicts: twice the suggested radius.
FIRST_CHOICE = 2

#: Rows are learned so many multiplications at a time, at most: what cannot be interrupted is short.
A_PIECE = 2**24


class LinearRun(Run):
    """A run with coefficients: see :class:`~onlinefw.estimators.run.Run`.

    ``scaling`` says how rows are scaled before they are learned; coefficients and predictions are
    of the type ``precision``; ``path`` keeps coefficients over time.
    """

    def __init__(self, *run: Any, scaling: Scaling | None, precision: Any, path: Path) -> None:
        super().__init__(*run)
        self.scaling, self.precision, self.path = scaling, precision, path
        self._known: tuple[Array, Array] | None = None
        #: The first rows, while they are too few to suggest radii and scales; see ``Opening``.
        self.opening: Opening | None = None
        #: The estimated gap when a summary was saved without its past.
        self.estimate = float("nan")

    def learn(self, batch: Batch, targets: list[Any]) -> None:
        """Play a round with a batch; ``targets`` has one array for each class."""
        if self.race is not None:
            self.learn_rows(batch, targets, batch.n)
            return
        X = batch.X if self.scaling is None else self.scaling.apply(batch.X)
        rounds = self.team.learn(X, targets, batch.w, batch.ids)
        self.n_observations += batch.n
        self._note(rounds)

    # Rows as they happen --------------------------------------------------------------------------

    def room(self, batch: Batch, start: int, size: int) -> int:
        """Return how many rows, from ``start`` on, can be learned before the model changes.

        That is a number of whole rounds of ``size`` rows, which do not take long.
        """
        left = batch.n - start
        rows = a_piece(batch.X, len(self.team.learners))
        if self.opening is not None:
            rows = min(rows, self.opening.room)
        if self.race is not None:
            rows = min(rows, max(1, RACE_ROWS - self.race.n_seen))
        rows = min(-(-rows // size) * size, left)
        w = np.ones(rows) if batch.w is None else batch.w[start : start + rows]
        return self.team.room(w, size)

    def learn_rows(self, batch: Batch, targets: list[Any], size: int) -> Array:
        """Play rounds of ``size`` rows that ``room`` has found; return what was predicted for them.

        That is <coef, x> + intercept before they were learned, a column for each class.
        """
        X = batch.X if self.scaling is None else self.scaling.apply(batch.X)
        w = np.ones(batch.n) if batch.w is None else batch.w
        rounds = -(-batch.n // size)
        leader = slice(self.leader * self.n_models, (self.leader + 1) * self.n_models)
        told = self.team.foretell(X, targets * len(self.radii), w, rounds, batch.ids)
        if self.race is not None:
            losses = self.losses(told.predicted, targets * len(self.radii), len(self.radii))
            self.race.add_rows(-losses, w, size)
            if told.moved or self.race.over:
                self._choose_radii()
        self.n_observations += batch.n
        self.n_rounds += rounds - 1
        self._note(told.rounds[leader])
        return told.predicted[:, leader].astype(self.precision)

    def losses(self, predicted: Array, targets: list[Array], n_radii: int) -> Array:
        """Return the loss of every row for every radius: the mean over its classes."""
        each = zip(predicted.T, targets, strict=True)
        columns = np.column_stack([self.loss.value(z, y) for z, y in each])
        return columns.reshape(len(columns), n_radii, -1).mean(axis=2)

    def _choose_radii(self) -> None:
        """Go on with the radii that may still win the race."""
        race = self.race
        assert race is not None
        settled = self.loss.convex and self.team.learners[0].corrective is not None
        beaten = race.n_seen >= BEATEN_FROM
        self._choose(race.unbeaten(settled) if beaten else list(range(len(self.radii))))

    def use_radius(self, radius: float) -> None:
        """Go on with another radius, where one plays alone; theta shrinks if it is smaller."""
        constraint = self.parts.constraint(radius)
        shrinks = radius < self.radius or not constraint.contains_zero
        self.team.use_set(constraint, radius / self.radius if shrinks else 1.0)
        self.radii, self._known = [radius], None

    def go_on_from(self, old: Any) -> None:
        """Take the place of another run, which has learned the same rows."""
        self.turns, self.history, self.path = old.turns, old.history, old.path
        self.n_rounds, self.n_observations = old.n_rounds, old.n_observations

    def take_records(self, other: Any) -> None:
        """Go on with history and path of another run, which gets these."""
        super().take_records(other)
        self.path, other.path = other.path, self.path

    def be_silent(self) -> None:
        """Keep no records from now on."""
        super().be_silent()
        self.path = Path(0)

    def correct(self) -> None:
        """Bring theta to the optimum of now, if there is a corrective."""
        super().correct()
        self._known = None

    def forget(self, ids: list[Any]) -> None:
        """Forget the rows of these ids; correct the coefficients of every radius without them."""
        rounds = self.team.forget(ids)
        if self.opening is not None:
            self.opening.forget(ids)
        self._known = None
        if rounds:
            self._note(self._of(rounds, self.leader))
            self.n_refined += 1

    def finish(self) -> None:
        """Do so at the end of a stream."""
        super().finish()
        self._known = None

    def _note(self, rounds: list[Any]) -> None:
        self._known = None
        super()._note(rounds)
        if self.path.is_due(self.n_rounds):
            self.path.append(self.n_rounds, self.history.elapsed, self.coefficients[0])

    @property
    def coefficients(self) -> tuple[Array, Array]:
        """Coefficients (a row for each model) and intercepts, for rows as they are given."""
        known = self._known
        if known is None:
            with self.turns:  # a round that is being played ends first
                known = self._known = self._computed()
        return known

    def _computed(self) -> tuple[Array, Array]:
        learners = self.learners
        coef = np.array([np.asarray(one.theta).reshape(-1) for one in learners])
        intercept = np.array([one.objective.intercept for one in learners])
        if self.scaling is not None:
            coef, intercept = self.scaling.undo(coef, intercept)
        return coef.astype(self.precision), intercept.astype(self.precision)

    def gap_estimate(self) -> float:
        """Return the gap of the estimated gradient, the largest of all classes.

        Where rows are kept nothing is estimated: it is the certificate.
        """
        if self.parts.past != "summary":
            return self.certified()[0]
        if self.team is None:
            return self.estimate
        with self.turns:
            return max(one.gap_estimate() for one in self.learners)

    # State ----------------------------------------------------------------------------------------

    def state_dict(self, past: bool, team: bool = True) -> State:
        """Return everything; without ``past``, what predicts."""
        state = {
            **super().state_dict(past, team),
            "precision": np.dtype(self.precision).name,
            "scaling": None if self.scaling is None else self.scaling.state_dict(),
            "kept": [self.parts.past, self.parts.max_past],
            "path": self.path.state_dict(),
        }
        if past and self.opening is not None:
            state["opening"] = self.opening.state_dict()
        if not past:
            state["coef"], state["intercept"] = self.coefficients
            if self.parts.past == "summary":
                state["gap_estimate"] = self.gap_estimate()
        return state


def a_piece(X: Any, n_learners: int) -> int:
    """Return how many rows like these are predicted in a short time."""
    numbers = X.nnz / X.shape[0] if sparse.issparse(X) else X.shape[1]
    return max(1, int(A_PIECE / (1.0 + numbers * n_learners)))


def new_run(
    parts: LinearParts,
    first: Batch,
    n_models: int,
    team: Any = None,
    radius: float | None = None,
) -> LinearRun:
    """Make the run of a stream that begins with these rows, with its learners if none are given.

    With a ``radius`` none are compared: that of another run is followed.
    """
    model = parts.model
    history = History.of(model)
    path = Path(check_whole("path_size", model.path_size, 0))
    scaling = parts.scaling(first)
    seen = first if scaling is None else first._replace(X=scaling.apply(first.X))
    radii = parts.radii(seen) if radius is None else [radius]
    race = None
    if len(radii) > 1:
        life = parts.half_life
        race = Race(len(radii), rows=RACE_ROWS, middle=FIRST_CHOICE, half_life=life)
    place = (model.device, model.workers)
    if race is not None and model.workers is not None:
        check_place(*place)  # refuse a wrong place before the race, not after it
        place = ("cpu", None)
    if team is None:
        team = parts.team(radii, n_models, *place)
        if race is None and radius is None:
            warn_of_radius(parts, radii[0], seen)
    # Rows of float32 or uint8 give coefficients and predictions in single precision.
    precision = np.float64 if first.X.dtype == np.float64 else np.float32
    details: dict[str, Any] = {"scaling": scaling, "precision": precision, "path": path}
    return LinearRun(parts, team, radii, race, history, **details)


def run_from_state(model: Any, state: State, n_models: int, team: Any = None) -> LinearRun:
    """Make the run that ``state_dict`` described, with or without its past.

    A ``team`` that is given shares its past with others, which load it together.
    """
    check_state(state, "precision", "scaling", "kept", "path")
    radii, history, race = read_counters(state)
    n_features = model.n_features_in_
    past, max_past = state["kept"]
    half_life = saved_half_life(model, state)
    parts = LinearParts(model, n_features, model._loss(), past, max_past, half_life)
    if state["precision"] not in ("float32", "float64"):
        raise ValueError(f"coefficients cannot be {state['precision']!r}")
    scaling = state["scaling"]
    if team is None and "team" in state:
        check_team(state["team"], len(radii) * n_models, n_features)
        team = parts.team(radii.tolist(), n_models, "cpu", None)
    details: dict[str, Any] = {
        "scaling": None if scaling is None else Scaling.from_state(scaling, n_features),
        "precision": np.dtype(state["precision"]).type,
        "path": Path.from_state(state["path"]),
    }
    run = LinearRun(parts, team, radii.tolist(), race, history, **details)
    if team is None:
        run.n_models, run._known = n_models, _coefficients(state, n_models, n_features)
        if "gap_estimate" in state:
            run.estimate = number(state["gap_estimate"], "the estimated gap")
    run._load(state)
    if "opening" in state:
        run.opening = Opening.from_state(state["opening"], n_features)
    return run


def check_team(state: State, n: int, n_features: int) -> None:
    """Refuse the state of other learners, before memory is taken for these."""
    check_state(state, "past", "learners", "gradients")
    thetas = [one["objective"]["iterate"]["theta"] for one in state["learners"]]
    if len(thetas) != n or any(np.size(theta) != n_features for theta in thetas):
        raise ValueError(f"these are not {n} learners with {n_features} coefficients each")


def _coefficients(state: State, n_models: int, n_features: int) -> tuple[Array, Array]:
    check_state(state, "coef", "intercept", "gap")
    coef, intercept = np.asarray(state["coef"]), np.asarray(state["intercept"])
    if coef.shape != (n_models, n_features) or intercept.shape != (n_models,):
        raise ValueError(f"the coefficients have shape {coef.shape}, not {n_models, n_features}")
    if coef.dtype.name != state["precision"] or intercept.dtype != coef.dtype:
        kinds = f"{coef.dtype} and {intercept.dtype}"
        raise ValueError(f"coefficients and intercept are {kinds}, not {state['precision']}")
    return np.ascontiguousarray(coef), intercept
