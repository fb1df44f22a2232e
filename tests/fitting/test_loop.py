"""Stopped after any round and resumed, a session ends as if nothing had happened."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinefw.files import ModelFileError, save_checkpoint
from onlinefw.fitting import rows
from onlinefw.fitting.loop import Checkpoint, learn, resume
from onlinefw.fitting.ratings import RatingsSession
from onlinefw.fitting.rows import RowsSession
from onlinefw.fitting.scores import SquaredError
from onlinefw.readers import RatingChunk, RowChunk, read_ratings, read_rows

from ..files.zoo import assert_same_answers

N = 240


@pytest.fixture(autouse=True, scope="module")
def _little_data_is_enough():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "FIRST_ROWS", 50)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    users, items = rng.integers(12, size=N), rng.integers(9, size=N)
    # New users keep coming.
    users = np.minimum(users, np.arange(N) // 15)
    ratings = 1.0 + (users * items) % 5 + 0.1 * rng.standard_normal(N)
    lines = (f"u{u},{i},{r:.4f}" for u, i, r in zip(users, items, ratings, strict=True))
    (folder / "matrix.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    X = rng.standard_normal((N, 4)) * [1.0, 5.0, 1.0, 1.0]
    y = X[:, 0] - 0.3 * X[:, 1] + 0.2 * rng.standard_normal(N)
    for name, target in (
        ("regression", [f"{value:.6f}" for value in y]),
        ("classification", np.where(y > 0, "yes", "no")),
        ("three", np.select([y < -1, y > 1], ["low", "high"], "middle")),
    ):
        cells = (f"{','.join(f'{v:.6f}' for v in x)},{t}" for x, t in zip(X, target, strict=True))
        (folder / f"{name}.csv").write_text("a,b,c,d,target\n" + "\n".join(cells) + "\n")
    return folder


SESSIONS = {
    "matrix": ("matrix", lambda: RatingsSession(radius=20.0, batch_size=10, test_share=0.2)),
    "matrix, racing": (
        "matrix",
        lambda: RatingsSession(batch_size=10, test_share=0.2, seed=3, corrective=None),
    ),
    "matrix, events": ("matrix", lambda: RatingsSession(batch_size=10, test_share=0.2, seed=3)),
    "matrix, one by one": ("matrix", lambda: RatingsSession(batch_size=1, test_share=0.2, seed=3)),
    "regression": (
        "regression",
        lambda: RowsSession("regression", batch_size=10, radius=2.0, test_share=0.2),
    ),
    "regression, sample": (
        "regression",
        lambda: RowsSession("regression", batch_size=10, loss="correntropy", max_past=40),
    ),
    "classification": ("classification", lambda: RowsSession("classification", batch_size=10)),
    "three classes": (
        "three",
        lambda: RowsSession("classification", batch_size=10, radius=3.0, max_past=40),
    ),
}


FEW = {"matrix, racing", "regression, sample"}


def some_slow(names):
    """Return names as parameters of a test; what differs little from another one is slow."""
    return [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in names]


def reader(folder, name, position=None):
    file = SESSIONS[name][0]
    path = str(folder / f"{file}.csv")
    # Chunks that are no multiple of the batches.
    if file == "matrix":
        return read_ratings(path, position=position, chunk_rows=64)
    return read_rows(path, labels=file != "regression", position=position, chunk_rows=64)


def uninterrupted(folder, name):
    session = SESSIONS[name][1]()
    with reader(folder, name) as chunks:
        assert learn(session, chunks)
    return session


@pytest.fixture(scope="module")
def whole(folder):
    """Uninterrupted sessions by name, made once."""
    return {name: uninterrupted(folder, name) for name in SESSIONS}


def assert_same_sessions(one, other):
    if isinstance(one, RatingsSession):
        X = np.argwhere(np.ones(one.model.shape_))
        assert one.users.ids.tolist() == other.users.ids.tolist()
        assert one.items.ids.tolist() == other.items.ids.tolist()
    else:
        X = np.random.default_rng(1).standard_normal((30, one.model.n_features_in_))
    assert_same_answers(one.model, other.model, X)
    assert one.score.summary() == other.score.summary()
    assert one.test_score().summary() == other.test_score().summary()
    counted = [(s.rounds, s.rows_read, s.rows_learned, s.n_waiting) for s in (one, other)]
    assert counted[0] == counted[1]


def stopping_after(*rounds):
    """Return a callable that says stop after these numbers of rounds, each counted anew."""
    left = iter(rounds)
    state = {"left": next(left)}

    def stop():
        state["left"] -= 1
        return state["left"] == 0

    return stop


@pytest.mark.slow
@pytest.mark.parametrize("name", some_slow(SESSIONS))
@settings(max_examples=5)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_stopped_after_any_rounds_and_resumed_it_ends_the_same(name, whole, folder, stops):
    with TemporaryDirectory() as place:
        path = Path(place) / "run.ckpt"
        session = SESSIONS[name][1]()
        for rounds in stops:
            with reader(folder, name, session.position) as chunks:
                stop = stopping_after(rounds)
                learn(session, chunks, checkpoint=Checkpoint(path), stop=stop)
            session, _ = resume(path)
        with reader(folder, name, session.position) as chunks:
            assert learn(session, chunks)
    assert_same_sessions(session, whole[name])


def test_the_race_of_radii_is_still_on_at_some_of_these_stops(folder):
    name = "matrix, racing"
    session = SESSIONS[name][1]()
    with reader(folder, name) as chunks:
        learn(session, chunks, stop=stopping_after(3))
    assert len(session.model._run.team.learners) > 1


@pytest.mark.parametrize("name", ["matrix, racing", "regression", "three classes"])
@pytest.mark.parametrize("rounds", [1, 4])
def test_from_a_pipe_it_goes_on_with_the_next_rows(name, rounds, whole, folder, tmp_path):
    """The chunks that were handed out are in the checkpoint; the next process gets the rest."""
    path = tmp_path / "run.ckpt"
    session = SESSIONS[name][1]()
    with reader(folder, name) as chunks:
        taken = list(chunks)
    given_out = iter(taken)
    assert not learn(session, given_out, checkpoint=Checkpoint(path), stop=stopping_after(rounds))
    rest = list(given_out)
    assert len(rest) < len(taken)
    session, _ = resume(path)
    assert learn(session, rest)
    assert_same_sessions(session, whole[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SESSIONS)
def test_writing_checkpoints_changes_nothing(name, whole, folder, tmp_path):
    session, checkpoint = SESSIONS[name][1](), Checkpoint(tmp_path / "run.ckpt", every=1)
    with reader(folder, name) as chunks:
        assert learn(session, chunks, checkpoint=checkpoint)
    assert_same_sessions(session, whole[name])
    assert_same_sessions(resume(checkpoint.path)[0], whole[name])
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]


def test_a_checkpoint_is_written_every_so_many_rounds_and_at_the_end(folder, tmp_path):
    written = []

    class Noting(Checkpoint):
        def write(self, session):
            written.append((session.rounds, session.rows_read))

    session = SESSIONS["matrix"][1]()
    with reader(folder, "matrix") as chunks:
        learn(session, chunks, checkpoint=Noting(tmp_path / "run.ckpt", every=6))
    assert [rounds for rounds, _ in written] == [6, 12, 18, session.rounds]
    assert written[-1] == (session.rounds, N)


def test_single_events_are_learned_many_at_a_time_and_saved_in_between(folder, tmp_path, whole):
    """With a batch of 1 the loop over events is the compiled one, not one in Python."""
    saved, played = [], []

    class Noting(Checkpoint):
        def write(self, session):
            saved.append(session.rounds)

    session = RatingsSession(batch_size=1, test_share=0.2, seed=3)
    with reader(folder, "matrix, events") as chunks:
        checkpoint = Noting(tmp_path / "run.ckpt", every=37)
        learn(session, chunks, checkpoint=checkpoint, on_round=lambda s: played.append(s.rounds))
    assert played[-1] == session.rounds == session.rows_learned
    assert len(played) <= 4 + session.rounds // 100  # there are four chunks
    assert len(saved) >= 4  # a multiple of 37 was passed in every chunk
    other = whole["matrix, events"]
    X = np.argwhere(np.ones(other.model.shape_))
    assert_same_answers(session.model, other.model, X)
    assert session.score.n == other.score.n
    assert session.score.value == pytest.approx(other.score.value)


def test_stopped_before_the_first_round_the_rows_wait_in_the_checkpoint(folder, tmp_path, whole):
    """A pipe that has given few rows ends its chunks when it is to stop."""
    path = tmp_path / "run.ckpt"
    with reader(folder, "regression") as chunks:
        taken = list(chunks)
    few, rest = _cut(taken[0], 30)
    session = SESSIONS["regression"][1]()
    assert not learn(session, [few], checkpoint=Checkpoint(path), stop=lambda: True)
    assert (session.rounds, session.rows_read) == (0, 30)
    session, _ = resume(path)
    learn(session, [rest, *taken[1:]])
    assert_same_sessions(session, whole["regression"])


def _cut(chunk, n):
    parts = (slice(None, n), slice(n, None))
    return [
        RowChunk(X=chunk.X[p], y=chunk.y[p], file="-", rows=chunk.rows[p], position=None)
        for p in parts
    ]


def test_another_file_is_no_checkpoint_of_a_session(tmp_path):
    path = tmp_path / "other.ckpt"
    for content in ({"rows": 3}, {"session": 3, "options": {}}, [1]):
        save_checkpoint(content, path)
        with pytest.raises(ModelFileError, match="is not a checkpoint of ofw fit"):
            resume(path)


def test_the_progressive_score_is_that_of_predicting_every_batch_before_learning_it(folder):
    from onlinefw.fitting.held_out import held_out

    session = SESSIONS["regression"][1]()
    with reader(folder, "regression") as chunks:
        taken = list(chunks)
    learn(session, taken)
    X, y = np.concatenate([c.X for c in taken]), np.concatenate([c.y for c in taken])
    apart = held_out(0, N, 0.2)
    X_test, y_test, X, y = X[apart], y[apart], X[~apart], y[~apart]
    # A session that is stopped after each round predicts what comes next.
    errors = []
    for k in range(1, session.rounds):
        early = SESSIONS["regression"][1]()
        learn(early, iter(taken), stop=stopping_after(k))
        batch = slice(10 * k, 10 * (k + 1))
        errors += np.square(early.model.predict(X[batch]) - y[batch]).tolist()
    assert session.score.summary()["rows"] == len(errors) == len(y) - 10
    assert session.score.value == pytest.approx(np.mean(errors))
    test_error = np.mean(np.square(session.model.predict(X_test) - y_test))
    assert session.test_score().value == pytest.approx(test_error)


def test_scoring_other_ratings_uses_the_names_and_learns_nothing(folder):
    session = uninterrupted(folder, "matrix")
    before = session.model.predict([[0, 0], [1, 1]])
    users, items = np.array(["u1", "nobody"], dtype=object), np.array([3, 4])
    score = SquaredError()
    place = {"file": "t", "rows": np.arange(2), "position": None}
    session.score_chunk(
        RatingChunk(users=users, items=items, values=np.array([1.0, 2.0]), **place), score
    )
    X = [[session.users.lookup(["u1"])[0], session.items.lookup([3])[0]], [1000, 1000]]
    X[1][1] = session.items.lookup([4])[0]
    predicted = session.model.predict(X, unknown="fallback")
    assert score.value == pytest.approx(np.mean(np.square(predicted - [1.0, 2.0])))
    assert np.array_equal(before, session.model.predict([[0, 0], [1, 1]]))
    assert len(session.users.ids) == len(set(session.users.ids))
    assert "nobody" not in session.users.ids


def test_which_rounds_are_played_does_not_depend_on_the_chunks(folder, whole):
    """But for the first: all of its chunk decides the scale and the shape."""
    session = SESSIONS["matrix"][1]()
    with read_ratings(str(folder / "matrix.csv"), chunk_rows=64) as chunks:
        first = next(chunks)
        small = list(chunks)
    pieces = [piece for chunk in small for piece in _ones(chunk)]
    learn(session, [first, *pieces])
    assert_same_sessions(session, whole["matrix"])


def _ones(chunk):
    for k in range(len(chunk.values)):
        part = slice(k, k + 1)
        yield RatingChunk(
            users=chunk.users[part],
            items=chunk.items[part],
            values=chunk.values[part],
            file="-",
            rows=chunk.rows[part],
            position=None,
        )
