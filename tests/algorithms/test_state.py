"""A resumed run equals an uninterrupted one, bit for bit, from plain values."""

import copy
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import onlinefw as ofw
from onlinefw.algorithms import Corrective
from onlinefw.baselines import OnlineProjectedGradient, StochasticProjectedGradient
from onlinefw.losses import Logistic, Loss, Sigmoid, Square
from onlinefw.objectives import (
    GradientOracle,
    LinearObjective,
    ObservedEntries,
    RunningBiases,
    RunningLeastSquares,
)
from onlinefw.sets import (
    Box,
    ConvexSet,
    L1Ball,
    Product,
    Simplex,
    TraceNormBall,
    WeightedTraceNormBall,
)
from onlinefw.steps import Harmonic, LineSearch, Power

from ..catalogue import POLYTOPES, SETS, name
from .test_online_fw import stream


def through_files(state, folder):
    """Write arrays to npz and the rest to JSON, and read both back: nothing else is needed."""
    arrays = {}

    def split(value):
        if isinstance(value, np.ndarray):
            arrays[key := f"a{len(arrays)}"] = value
            return {"array": key}
        if isinstance(value, dict):
            return {k: split(v) for k, v in value.items()}
        if isinstance(value, list):
            return [split(v) for v in value]
        return value

    def join(value):
        if isinstance(value, dict):
            return (
                loaded[value["array"]]
                if set(value) == {"array"}
                else {k: join(v) for k, v in value.items()}
            )
        return [join(v) for v in value] if isinstance(value, list) else value

    text = json.dumps(split(state))
    np.savez(folder / "state.npz", **arrays)
    with np.load(folder / "state.npz", allow_pickle=False) as loaded:
        return join(json.loads(text))


def assert_same_run(make, batches, cut, folder, **parts):
    whole = make()
    rounds = [whole.observe(*batch) for batch in batches]
    first = make()
    for batch in batches[:cut]:
        first.observe(*batch)
    second = type(first).from_state(through_files(first.state_dict(), folder), **parts)
    resumed = [second.observe(*batch) for batch in batches[cut:]]
    assert repr(resumed) == repr(rounds[cut:])
    np.testing.assert_array_equal(np.asarray(second.theta), np.asarray(whole.theta))
    assert second.certificate() == whole.certificate()
    if hasattr(whole, "active_set"):
        np.testing.assert_array_equal(second.active_set.weights, whole.active_set.weights)


LEARNERS = {
    "O-FW": lambda obj, c: ofw.OnlineFrankWolfe(obj, c, step=Power(0.75), inner_steps=2),
    "O-AW": lambda obj, c: ofw.OnlineAwayFrankWolfe(obj, c, step=Harmonic(3)),
    "pairwise": lambda obj, c: ofw.OnlinePairwiseFrankWolfe(obj, c, step=Harmonic(3)),
    "pairwise, searched": lambda obj, c: ofw.OnlinePairwiseFrankWolfe(
        obj, c, LineSearch(), inner_steps=2
    ),
    "blended": lambda obj, c: ofw.OnlinePairwiseFrankWolfe(obj, c, blended=True),
    "O-PG": lambda obj, c: OnlineProjectedGradient(obj, c),
    "O-PG fixed": lambda obj, c: OnlineProjectedGradient(obj, c, step=0.1),
    "sPG": lambda obj, c: StochasticProjectedGradient(obj, c),
}
OBJECTIVES = {
    "logistic": (lambda: LinearObjective(Logistic()), np.asarray),
    "sigmoid, sparse": (lambda: LinearObjective(Sigmoid(3.0)), sp.csr_array),
    "least squares": (lambda: RunningLeastSquares(9), np.asarray),
}


@pytest.mark.parametrize("learner", list(LEARNERS))
@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_resumed_equals_uninterrupted(learner, objective, rng, tmp_path):
    make_objective, kind = OBJECTIVES[objective]
    batches = [(kind(X), np.sign(y)) for X, y in stream(rng, 60, (9,))]
    assert_same_run(lambda: LEARNERS[learner](make_objective(), L1Ball(1.0)), batches, 35, tmp_path)


@given(
    seed=st.integers(0, 10**6),
    cut=st.integers(0, 30),
    which=st.sampled_from(["O-FW", "O-AW", "pairwise", "pairwise, searched", "blended"]),
)
def test_wherever_it_is_cut(seed, cut, which, tmp_path_factory):
    rng = np.random.default_rng(seed)
    batches = list(stream(rng, 30, (6,), size=int(rng.integers(1, 9))))
    assert_same_run(
        lambda: LEARNERS[which](RunningLeastSquares(6), L1Ball(0.7)),
        batches,
        cut,
        tmp_path_factory.mktemp("state"),
    )


@pytest.mark.parametrize("case", SETS, ids=name)
def test_every_set_is_rebuilt_by_name(case, rng, tmp_path):
    constraint, shape = case
    target = rng.standard_normal(shape)

    def fn(theta, t):
        return theta - target

    assert_same_run(
        lambda: ofw.OnlineFrankWolfe(GradientOracle(fn, shape), constraint),
        [()] * 20,
        9,
        tmp_path,
        fn=fn,
    )


@pytest.mark.parametrize("learner", [ofw.OnlineAwayFrankWolfe, ofw.OnlinePairwiseFrankWolfe])
@pytest.mark.parametrize("case", POLYTOPES, ids=name)
def test_active_sets_of_every_polytope_come_back(case, learner, rng, tmp_path):
    constraint, shape = case
    target = rng.standard_normal(shape)

    def fn(theta, t):
        return theta - target

    assert_same_run(
        lambda: learner(GradientOracle(fn, shape), constraint),
        [()] * 40,
        21,
        tmp_path,
        fn=fn,
    )


def test_matrices_and_low_rank_factors(rng, tmp_path):
    batches = [(rng.standard_normal((4, 3, 5)), rng.choice([-1.0, 1.0], 4)) for _ in range(30)]
    assert_same_run(
        lambda: ofw.OnlineFrankWolfe(LinearObjective(Logistic(), shape=(3, 5)), TraceNormBall(2.0)),
        batches,
        11,
        tmp_path,
    )
    target = rng.standard_normal((8, 5))

    def fn(theta, t):
        return theta.dense() - target

    assert_same_run(
        lambda: ofw.OnlineFrankWolfe(GradientOracle(fn, (8, 5), low_rank=True), TraceNormBall(2.0)),
        [()] * 50,
        23,
        tmp_path,
        fn=fn,
    )


def completion(**options):
    """A learner of matrix entries; what is not about the objective is for the learner."""
    of_learner = {name: options.pop(name) for name in ("step", "corrective") if name in options}
    ball = options.pop("ball", TraceNormBall(9.0))
    objective = ObservedEntries((12, 17), **options)
    return ofw.OnlineFrankWolfe(objective, ball, **of_learner)


COMPLETIONS = {
    "offsets": lambda: completion(offsets=RunningBiases(2.0), dtype=float),
    "offsets, growing": lambda: completion(offsets=RunningBiases(), growing=True),
    "weighted ball": lambda: completion(
        ball=WeightedTraceNormBall(9.0, np.linspace(0.5, 2, 12), np.linspace(2, 1, 17))
    ),
    "sweeps": lambda: completion(corrective=ofw.RidgeSweeps(3, ridge=0.5)),
    "sweeps, auto": lambda: completion(
        corrective=ofw.RidgeSweeps(3, growth=1.2), offsets=RunningBiases()
    ),
    "line search": lambda: completion(step=LineSearch()),
    "line search, offsets": lambda: completion(step=LineSearch(), offsets=RunningBiases()),
}


@pytest.mark.parametrize(
    ("kind", "cut"),
    [(kind, cut) for k, kind in enumerate(COMPLETIONS) for cut in ((0, 13), (1, 27))[k % 2]],
)
def test_matrix_completion_with_all_its_parts(kind, cut, rng, tmp_path):
    batches = []
    for k in range(1, 29):
        shape = (12 + k, 17 + 2 * k) if "growing" in kind else (12, 17)
        X = np.column_stack([rng.integers(n, size=150) for n in shape])
        batches.append((X, rng.standard_normal(150) + 2.0))
    assert_same_run(COMPLETIONS[kind], batches, cut, tmp_path)


@pytest.mark.parametrize("kind", list(COMPLETIONS))
def test_rounds_without_data_go_on_from_a_state_too(kind, rng, tmp_path):
    learner = COMPLETIONS[kind]()
    X = np.column_stack((rng.integers(12, size=2000), rng.integers(17, size=2000)))
    y = rng.standard_normal(2000)
    for part in np.split(np.arange(2000), 8):
        learner.observe(X[part], y[part])
    other = type(learner).from_state(through_files(learner.state_dict(), tmp_path))
    for _ in range(3):
        assert repr(learner.refine()) == repr(other.refine())
    if learner.corrective is not None:
        learner.correct()
        other.correct()
    np.testing.assert_array_equal(np.asarray(learner.theta), np.asarray(other.theta))


def test_a_state_is_a_snapshot(rng):
    learner = ofw.OnlineFrankWolfe(LinearObjective(Square()), L1Ball(1.0))
    batches = list(stream(rng, 20, (5,)))
    for X, y in batches[:10]:
        learner.observe(X, y)
    state = learner.state_dict()
    before = repr(state)
    for X, y in batches[10:]:
        learner.observe(X, y)
    assert repr(state) == before


def test_a_learner_that_has_seen_nothing_can_be_saved(rng, tmp_path):
    batches = list(stream(rng, 5, (5,)))
    assert_same_run(
        lambda: ofw.OnlineAwayFrankWolfe(LinearObjective(Square()), L1Ball(1.0)),
        batches,
        0,
        tmp_path,
    )


# Parts of the user's own -------------------------------------------------------------------------


class Quartic(Loss):
    convex = True

    def value(self, z, y):
        return (z - y) ** 4

    def derivative(self, z, y):
        return 4 * (z - y) ** 3

    def second_derivative(self, z, y):
        return 12 * (z - y) ** 2


class Diamond(ConvexSet):
    is_polytope = True

    def lmo(self, direction):
        return L1Ball(1.0).lmo(direction)


def my_step(t):
    return 1.0 / t


def test_parts_of_ones_own_are_passed_in_again(rng, tmp_path):
    batches = list(stream(rng, 20, (5,)))

    def make():
        return ofw.OnlineAwayFrankWolfe(LinearObjective(Quartic()), Diamond(), step=my_step)

    assert_same_run(make, batches, 9, tmp_path, loss=Quartic(), constraint=Diamond(), step=my_step)
    learner = make()
    learner.observe(*batches[0])
    state = learner.state_dict()
    given_parts = {"loss": Quartic(), "constraint": Diamond(), "step": my_step}
    for role, named in (("loss", "Quartic"), ("constraint", "Diamond"), ("step", "my_step")):
        parts = {k: v for k, v in given_parts.items() if k != role}
        with pytest.raises(ValueError, match=rf"{role} of your own \({named}\).*{role}="):
            ofw.OnlineAwayFrankWolfe.from_state(state, **parts)


class Shrink(Corrective):
    """Scale theta down after every so many rounds."""

    def __init__(self, every=3):
        self.every, self.rounds = every, 0

    def after_round(self, objective, constraint):
        self.rounds += 1
        if self.rounds % self.every == 0:
            self.correct(objective, constraint)

    def correct(self, objective, constraint):
        objective.put(0.9 * objective.theta)


def shrinking(corrective=None):
    return ofw.OnlineFrankWolfe(
        LinearObjective(Quartic()), Diamond(), step=my_step, corrective=corrective or Shrink()
    )


def test_a_corrective_of_ones_own_goes_on_from_a_state(rng, tmp_path):
    batches = list(stream(rng, 20, (5,)))
    own = {"loss": Quartic(), "constraint": Diamond(), "step": my_step}
    assert_same_run(shrinking, batches, 10, tmp_path, corrective=Shrink(7), **own)
    state = shrinking().state_dict()
    with pytest.raises(ValueError, match=r"corrective of your own \(Shrink\).*corrective="):
        ofw.OnlineFrankWolfe.from_state(state, **own)
    with pytest.raises(ValueError, match="corrective is the class Shrink"):
        ofw.OnlineFrankWolfe.from_state(state, corrective=Shrink, **own)
    with pytest.raises(ValueError, match="RidgeSweeps corrects ObservedEntries"):
        ofw.OnlineFrankWolfe.from_state(state, corrective=ofw.RidgeSweeps(), **own)
    del state["corrective"]["state"]["rounds"]
    with pytest.raises(ValueError, match="'rounds' is missing"):
        ofw.OnlineFrankWolfe.from_state(state, corrective=Shrink(), **own)


def test_a_corrective_that_does_nothing_changes_nothing(rng):
    batches = list(stream(rng, 20, (5,)))
    one, other = (shrinking(corrective) for corrective in (Corrective(), Shrink(10**9)))
    plain = ofw.OnlineFrankWolfe(LinearObjective(Quartic()), Diamond(), step=my_step)
    for X, y in batches:
        assert one.observe(X, y) == other.observe(X, y) == plain.observe(X, y)
    one.correct()
    np.testing.assert_array_equal(one.theta, plain.theta)


def test_the_progress_of_a_built_in_corrective_is_checked():
    state = completion(corrective=ofw.RidgeSweeps(3)).state_dict()
    state["corrective"]["state"]["rank"] = -1
    with pytest.raises(ValueError, match="rank of RidgeSweeps"):
        ofw.OnlineFrankWolfe.from_state(state)


# Pickles and copies ------------------------------------------------------------------------------

PICKLED = {
    "O-FW": lambda: LEARNERS["O-FW"](LinearObjective(Logistic(), fit_intercept=True), L1Ball(1.0)),
    "O-AW": lambda: LEARNERS["O-AW"](RunningLeastSquares(9), L1Ball(1.0)),
    "pairwise": lambda: LEARNERS["pairwise"](LinearObjective(Logistic()), L1Ball(1.0)),
    "pairwise, searched": lambda: LEARNERS["pairwise, searched"](
        LinearObjective(Logistic(), fit_intercept=True), L1Ball(1.0)
    ),
    "blended": lambda: LEARNERS["blended"](RunningLeastSquares(9), L1Ball(1.0)),
    "O-PG": lambda: OnlineProjectedGradient(RunningLeastSquares(9), L1Ball(1.0)),
    "Newton steps, auto": lambda: ofw.OnlineFrankWolfe(
        LinearObjective(Logistic()), L1Ball(1.0), inner_steps="auto", corrective=ofw.NewtonSteps(4)
    ),
    "parts of one's own": lambda: shrinking(),
    "parts of one's own, away steps": lambda: ofw.OnlineAwayFrankWolfe(
        LinearObjective(Quartic()), Diamond(), step=my_step
    ),
}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("kind", list(PICKLED))
def test_a_copy_goes_on_as_the_learner_itself(kind, copied, rng):
    batches = [(X, np.sign(y)) for X, y in stream(rng, 30, (9,))]
    learner = PICKLED[kind]()
    for batch in batches[:17]:
        learner.observe(*batch)
    other = copied(learner)
    for batch in batches[17:]:
        assert other.observe(*batch) == learner.observe(*batch)
    np.testing.assert_array_equal(other.theta, learner.theta)
    assert other.certificate() == learner.certificate()
    with pytest.raises(ValueError, match="already belongs to a learner"):
        ofw.OnlineFrankWolfe(other.objective, other.constraint)


@pytest.mark.parametrize("kind", ["weighted ball", "sweeps, auto"])
def test_a_pickled_matrix_completion_goes_on(kind, rng):
    learner = COMPLETIONS[kind]()
    batches = [
        (np.column_stack((rng.integers(12, size=150), rng.integers(17, size=150))), y)
        for y in rng.standard_normal((20, 150))
    ]
    for batch in batches[:11]:
        learner.observe(*batch)
    other = pickle.loads(pickle.dumps(learner))
    for batch in batches[11:]:
        assert repr(other.observe(*batch)) == repr(learner.observe(*batch))
    np.testing.assert_array_equal(np.asarray(learner.theta), np.asarray(other.theta))


def test_a_custom_set_inside_a_product_is_refused_with_the_remedy():
    product = Product([(Diamond(), 2), (Simplex(), 2)])
    learner = ofw.OnlineFrankWolfe(GradientOracle(my_step, 4), product)
    with pytest.raises(ValueError, match="Diamond"):
        ofw.OnlineFrankWolfe.from_state(learner.state_dict(), fn=my_step)


def test_the_state_of_another_class_is_refused():
    learner = ofw.OnlineFrankWolfe(RunningLeastSquares(3), Box(-1.0, 1.0))
    with pytest.raises(ValueError, match=r"OnlineFrankWolfe\.from_state"):
        ofw.OnlineAwayFrankWolfe.from_state(learner.state_dict())


def test_blended_steps_are_part_of_the_state():
    learner = LEARNERS["blended"](RunningLeastSquares(3), Box(-1.0, 1.0))
    state = learner.state_dict()
    assert ofw.OnlinePairwiseFrankWolfe.from_state(state).blended is True
    with pytest.raises(ValueError, match=r"OnlinePairwiseFrankWolfe\.from_state"):
        ofw.OnlineAwayFrankWolfe.from_state(state)
    del state["blended"]
    with pytest.raises(ValueError, match="blended"):
        ofw.OnlinePairwiseFrankWolfe.from_state(state)


def test_what_is_no_whole_state_is_refused():
    learner = ofw.OnlineFrankWolfe(RunningLeastSquares(3), Box(-1.0, 1.0))
    state = learner.state_dict()
    del state["objective"]
    for broken in ({}, [], state):
        with pytest.raises(ValueError, match=r"state_dict\(\)"):
            ofw.OnlineFrankWolfe.from_state(broken)


def test_a_misspelt_part_is_named():
    learner = ofw.OnlineFrankWolfe(GradientOracle(my_step, 4), L1Ball(1.0))
    with pytest.raises(ValueError, match="'fun'; the parts are"):
        ofw.OnlineFrankWolfe.from_state(learner.state_dict(), fun=my_step)


def test_unknown_names_in_a_state_are_refused_and_nothing_is_imported():
    learner = ofw.OnlineFrankWolfe(LinearObjective(Square(), n_features=2), L1Ball(1.0))
    state = learner.state_dict()
    state["constraint"] = {"part": "os.system", "command": "true"}
    with pytest.raises(ValueError, match=r"os\.system"):
        ofw.OnlineFrankWolfe.from_state(state)
    state = learner.state_dict()
    state["objective"]["objective"] = "Popen"
    with pytest.raises(ValueError, match="Popen"):
        ofw.OnlineFrankWolfe.from_state(state)


@pytest.mark.parametrize("name", ["t", "n_steps"])
def test_counters_below_zero_are_refused(name):
    """A step rule would have to take the power of a negative number."""
    learner = ofw.OnlineFrankWolfe(ofw.objectives.RunningLeastSquares(2), ofw.sets.L1Ball(1.0))
    learner.observe(np.eye(2), [1.0, 0.0])
    with pytest.raises(ValueError, match="the counters of the state are impossible"):
        ofw.OnlineFrankWolfe.from_state({**learner.state_dict(), name: -5})
