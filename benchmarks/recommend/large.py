"""Clicks in the shape of MovieLens 20M: seconds to learn them in one pass, and NDCG at 10.

    python benchmarks/recommend/large.py --place host|sweeps|cuda [--clicks 20000000] [--write]

Generated clicks (``make_movielens_like``: 138,493 users x 26,744 items, popular items, active
users; what a user clicks on also follows 10 hidden factors: of three times as many entries those
with the highest values are clicks). For a sample of users the last fifth of their clicks is held
out, and what they have not had is ranked; popularity is beside it. Fewer clicks are of a smaller
matrix, as dense. The ridge of the sweeps is the best of 5, 20, 80 and 320 on other clicks
(``--clicks 600000 --seed 1``).

On the host ``FrankWolfeRecommender`` learns as it does by default: ``fit``, or every click by
itself (``--one-by-one``). On a GPU clicks come in batches, each a round of O-FW, and
``RidgeSweeps`` re-optimises the factors when the clicks have doubled, and at the end. A small run
before compiles everything. ``--write`` replaces large-PLACE.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import onlinefw as ofw
from onlinefw._threads import use_threads
from onlinefw.datasets import make_movielens_like
from onlinefw.evaluate import ranking_scores
from onlinefw.evaluate.progressive import counts_before

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

SHAPE, ALL = (138_493, 26_744), 20_000_000
DRAWN = 3  # entries of which one is a click
TOP, USERS = 10, 2_000
CUPY = ["cupy-cuda12x", "cupy-cuda13x"]  # whichever is there
_SWEEPS = (
    "{options.rounds} batches and `RidgeSweeps` of rank {options.rank}, ridge {options.ridge:g} "
    "(the best of 5, 20, 80 and 320 on 600,000 clicks of another seed)"
)
PLACES = {
    "host": "`FrankWolfeRecommender`, {options.threads} threads",
    "sweeps": f"{{options.threads}} threads: {_SWEEPS}",
    "cuda": f"GPU: {_SWEEPS}",
}


def clicks(n, seed=0):
    """Return n clicks (user, item) in order of arrival, and the shape of their matrix."""
    side = min(1.0, (n / ALL) ** 0.5)
    shape = tuple(max(50, round(side * m)) for m in SHAPE)
    data = make_movielens_like(*shape, DRAWN * n, seed=seed)
    noise = 1e-3 * np.random.default_rng(1).standard_normal(data.values.size)  # parts equal values
    liked = np.sort(np.argpartition(data.values + noise, -n)[-n:])
    return np.column_stack((data.rows[liked], data.cols[liked])).astype(np.int64), shape


def split(X, n_users):
    """Put the last fifth of the clicks of some users apart: training, test, users."""
    totals = np.bincount(X[:, 0])
    known = np.flatnonzero(totals >= 5)
    users = np.random.default_rng(0).choice(known, min(n_users, known.size), replace=False)
    sampled = np.zeros(totals.size, bool)
    sampled[users] = True
    later = sampled[X[:, 0]] & (counts_before(X[:, 0]) >= 0.8 * totals[X[:, 0]])
    return X[~later], X[later], np.sort(users)


def on_host(X, shape, options):
    model = ofw.FrankWolfeRecommender()
    return model.partial_fit(X) if options.one_by_one else model.fit(X)


def on_cuda(X, shape, options, device="cuda"):
    objective = ofw.objectives.ObservedEntries(shape, unobserved=options.alpha, device=device)
    corrective = ofw.RidgeSweeps(options.rank, ridge=options.ridge, start=len(X) // 10)
    learner = ofw.OnlineFrankWolfe(
        objective,
        ofw.sets.TraceNormBall(1e9),
        step=ofw.steps.LineSearch(),
        corrective=corrective,
    )
    play(learner, X, options.rounds)
    learner.correct()
    return learner


def play(learner, X, rounds):
    for part in np.array_split(X, rounds):
        learner.observe(part, np.ones(len(part)))


def best(scores, users, X):
    """Return the best items of each user, without those of the training part."""
    seen = np.isin(X[:, 0], users)
    scores[np.searchsorted(users, X[seen, 0]), X[seen, 1]] = -np.inf
    some = np.argpartition(-scores, TOP, axis=1)[:, :TOP]
    order = np.argsort(-np.take_along_axis(scores, some, 1), axis=1)
    return np.take_along_axis(some, order, 1).tolist()


def lists_of(model, users, X):
    """Return what is recommended to some users."""
    if isinstance(model, ofw.FrankWolfeRecommender):
        return model.recommend(users, TOP)[0].tolist()
    return best(scores_of(model, users), users, X)


def scores_of(learner, users):
    n = learner.objective.shape[1]
    rows, columns = np.repeat(users, n), np.tile(np.arange(n), users.size)
    return learner.objective.predict(rows, columns).astype(float).reshape(users.size, n)


def ndcg(learner, X, test, users, block=500):
    """Return NDCG of the learner and of popularity."""
    counts, lists, popular = np.bincount(X[:, 1], minlength=X[:, 1].max() + 1), [], []
    for part in np.array_split(users, -(-users.size // block)):
        lists += lists_of(learner, part, X)
        popular += best(np.tile(counts.astype(float), (part.size, 1)), part, X)
    relevant = [[] for _ in users]
    for k, item in zip(np.searchsorted(users, test[:, 0]), test[:, 1].tolist(), strict=True):
        relevant[k].append(item)
    return [ranking_scores(one, relevant, TOP)["ndcg"] for one in (lists, popular)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", choices=PLACES, default="host",
                        help="sweeps: what cuda does, in memory")  # fmt: skip
    parser.add_argument("--clicks", type=int, default=ALL)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alpha", type=float, default=0.2, help="of the sweeps: weight of a 0")
    parser.add_argument("--rank", type=int, default=24, help="of the sweeps")
    parser.add_argument("--ridge", type=float, default=20.0, help="of the sweeps")
    parser.add_argument("--rounds", type=int, default=20, help="how many batches")
    parser.add_argument(
        "--one-by-one", action="store_true", help="on the host, learn each click by itself"
    )
    parser.add_argument("--write", action="store_true", help="replace large-PLACE.md")
    options = parser.parse_args()
    use_threads(options.threads)
    X, shape = clicks(options.clicks, options.seed)
    X, test, users = split(X, USERS)
    run = on_host if options.place == "host" else on_cuda
    device = {"device": "cpu"} if options.place == "sweeps" else {}
    run(*clicks(20_000), options, **device)
    started, worked = perf_counter(), process_time()
    learner = run(X, shape, options, **device)
    if run is on_cuda:
        learner.objective.predict(X[:1, 0], X[:1, 1])  # waits for a GPU
    seconds, work = perf_counter() - started, process_time() - worked
    ours, popular = ndcg(learner, X, test, users)
    what = PLACES[options.place].format(options=options)
    lines = [
        f"{len(X):,} generated clicks of {shape[0]:,} users on {shape[1]:,} items (popular items, "
        "active users, 10 hidden factors), learned in one pass; then "
        f"{TOP} items for each of {users.size:,} users whose last fifth of clicks was held out. "
        "Seconds of learning, without generating and the first compilation.",
        "",
        f"| system | NDCG at {TOP} | seconds | CPU seconds |",
        "| --- | --- | --- | --- |",
        f"| onlinefw, {what} | {ours:.4f} | {seconds:.1f} | {work:.1f} |",
        f"| popularity | {popular:.4f} | | |",
    ]
    print(*lines, sep="\n")
    if options.write:
        path = Path(__file__).with_name(f"large-{options.place}.md")
        write_table(path, "Clicks in the shape of MovieLens 20M", lines, CUPY)


if __name__ == "__main__":
    main()
