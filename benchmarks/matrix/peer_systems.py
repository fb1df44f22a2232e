"""The systems that peers.py compares: how each is fitted, and with which settings.

A system is a function ``prepare(train, **settings)`` that brings the data into the form its library
wants and returns two functions: ``fit()``, which is timed, and ``predict(rows, cols)``. Its setting
``passes`` is the number of sweeps over the data. peers.py runs this file in a process of its own
for every fit:

    python benchmarks/matrix/peer_systems.py SPLIT.npz SYSTEM SETTINGS RESULT.json
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np

THREADS = 2
WARM_UP = 1000  # ratings fitted before the clock starts, where code is compiled on first use


@dataclass(frozen=True)
class Train:
    """Training ratings: rows and columns from 0, values, and the shape of the whole matrix."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    @property
    def mean(self):
        """The mean of the values, in double precision."""
        return float(self.values.mean(dtype=float))

    def head(self, n):
        """The first n ratings."""
        return Train(self.rows[:n], self.cols[:n], self.values[:n], self.shape)

    def seen(self, rows, cols):
        """Whether both the row and the column have a rating here, for each pair."""
        known = [np.zeros(n, dtype=bool) for n in self.shape]
        known[0][self.rows] = known[1][self.cols] = True
        return known[0][rows] & known[1][cols]

    def frame(self):
        """A pandas frame of user, item, rating."""
        import pandas as pd

        return pd.DataFrame({"user": self.rows, "item": self.cols, "rating": self.values})


@dataclass(frozen=True)
class System:
    """One library: its function here, its name in the table, what it can do besides fitting."""

    prepare: Callable
    title: str
    package: str
    online: str = "no"
    certificate: str = "no"
    warm_up: bool = False


SYSTEMS: dict[str, System] = {}


def system(name, title, package, **facts):
    def register(prepare):
        SYSTEMS[name] = System(prepare, title, package, **facts)
        return prepare

    return register


def products(P, Q, rows, cols, block=1_000_000):
    """Entries of P Q', in blocks so that millions of them fit in memory."""
    out = np.empty(rows.size)
    for start in range(0, rows.size, block):
        part = slice(start, start + block)
        out[part] = np.einsum("ik,ik->i", P[rows[part]], Q[cols[part]])
    return out


@system("onlinefw", "onlinefw", "onlinefw", online="yes", certificate="yes", warm_up=True)
def onlinefw(train, radius, passes, **options):
    import onlinefw as ofw

    model = ofw.FrankWolfeMatrixCompletion(radius, shape=train.shape, epochs=passes, **options)
    X, n = np.column_stack((train.rows, train.cols)), len(train.values)
    swept = entries_swept()

    def reads():
        """How often all ratings were read: by rounds, of what was stored then, and by sweeps.

        None where ratings are learned one by one, from sums over those of a row and of a column:
        nobody counts what they read.
        """
        rounds = model.history_["reads"]
        stored = n * np.minimum(1.0, passes * np.arange(1, len(rounds) + 1) / len(rounds))
        counted = float(rounds @ stored) + sum(swept)
        return counted / n if counted else None

    return (
        lambda: model.fit(X, train.values),
        lambda rows, cols: model.predict(np.column_stack((rows, cols)), unknown="fallback"),
        reads,
    )


def entries_swept():
    """Return a list that gets the entries that corrective sweeps read from now on."""
    from onlinefw.algorithms.ridge_sweeps import _Regressions

    found, begin, sweep = [], _Regressions.__init__, _Regressions.sweep

    def begun(self, objective, *how, **more):
        self.n_entries = objective.n_entries
        begin(self, objective, *how, **more)

    def noted(self, factors, ridge, times):
        found.append(2 * times * self.n_entries)  # once for the columns, once for the rows
        return sweep(self, factors, ridge, times)

    _Regressions.__init__, _Regressions.sweep = begun, noted
    return found


def ridge_biases(train, damping, passes):
    """Row and column effects around the mean, by alternating ridge regressions."""
    effects = [np.zeros(n) for n in train.shape]
    ids = (train.rows, train.cols)
    counts = [np.bincount(i, minlength=n) + damping for i, n in zip(ids, train.shape, strict=True)]
    centred = train.values - train.mean
    for _ in range(passes):
        for k in (1, 0):
            rest = centred - effects[1 - k][ids[1 - k]]
            effects[k] = np.bincount(ids[k], rest, minlength=train.shape[k]) / counts[k]
    return effects


@system("biases", "row and column biases (ridge)", "numpy")
def biases(train, damping, passes):
    effects = []
    return (
        lambda: effects.extend(ridge_biases(train, damping, passes)),
        lambda rows, cols: train.mean + effects[0][rows] + effects[1][cols],
    )


@system("libmf", "LIBMF", "libmf")
def libmf(train, k, reg, lr, passes):
    from libmf import mf

    model = mf.MF(
        k=k,
        nr_iters=passes,
        lambda_p1=0.0,  # its default is an l1 penalty
        lambda_q1=0.0,
        lambda_p2=reg,
        lambda_q2=reg,
        eta=lr,
        nr_threads=THREADS,
        quiet=True,
    )
    X = np.column_stack((train.rows, train.cols, train.values)).astype(np.float32)

    def predict(rows, cols):  # its own predict reads the pairs column-major
        P = padded(model.p_factors(), train.shape[0])
        Q = padded(model.q_factors(), train.shape[1])
        return products(P, Q, rows, cols)

    return lambda: model.fit(X), predict


def padded(factors, n):
    """Factors of n rows or columns: NaN for those after the last that has a rating."""
    rest = np.full((n - factors.shape[0], factors.shape[1]), np.nan, factors.dtype)
    return np.concatenate((factors, rest))


@system("cmfrec", "cmfrec CMF (ALS)", "cmfrec", online="fold-in")
def cmfrec(train, k, reg, passes):
    from cmfrec import CMF
    from scipy.sparse import coo_matrix

    model = CMF(k=k, lambda_=reg, niter=passes, nthreads=THREADS, verbose=False)
    X = coo_matrix((train.values, (train.rows, train.cols)), shape=train.shape)
    return lambda: model.fit(X), lambda rows, cols: model.predict(rows, cols)


@system("surprise", "Surprise SVD", "scikit-surprise")
def surprise(train, k, reg, passes):
    from surprise import SVD, Dataset, Reader

    scale = (float(train.values.min()), float(train.values.max()))
    frame = train.frame()[["user", "item", "rating"]]
    data = Dataset.load_from_df(frame, Reader(rating_scale=scale)).build_full_trainset()
    model = SVD(n_factors=k, reg_all=reg, n_epochs=passes, random_state=0)

    def predict(rows, cols):
        pairs = zip(rows.tolist(), cols.tolist(), strict=True)
        return np.array([model.predict(row, col).est for row, col in pairs])

    return lambda: model.fit(data), predict


@system("cornac", "cornac MF", "cornac")
def cornac(train, k, lr, reg, passes):
    from cornac.data import Dataset
    from cornac.models import MF

    n_rows, n_cols = train.shape
    ids = ({i: i for i in range(n_rows)}, {i: i for i in range(n_cols)})
    rows, cols = train.rows.astype(np.int64), train.cols.astype(np.int64)
    data = Dataset(n_rows, n_cols, *ids, (rows, cols, train.values.astype(float)))
    model = MF(k=k, learning_rate=lr, lambda_reg=reg, max_iter=passes, num_threads=THREADS)

    def predict(rows, cols):
        base = model.global_mean + model.u_biases[rows] + model.i_biases[cols]
        return base + products(model.u_factors, model.i_factors, rows, cols)

    return lambda: model.fit(data), predict


@system("lenskit", "lenskit BiasedMF (ALS)", "lenskit", online="fold-in", warm_up=True)
def lenskit(train, k, reg, passes):
    import pandas as pd
    from lenskit.als import BiasedMFScorer
    from lenskit.data import ItemList, from_interactions_df

    columns = {"user": "user_id", "item": "item_id"}
    data = from_interactions_df(train.frame().rename(columns=columns))
    model = BiasedMFScorer(embedding_size=k, regularization=reg, epochs=passes)

    def predict(rows, cols):
        out = np.empty(rows.size)
        for row, where in pd.Series(rows).groupby(rows).indices.items():
            out[where] = model(row, ItemList(item_ids=cols[where])).scores()
        return out

    return lambda: model.train(data), predict


@system("myfm", "myFM (Gibbs)", "myfm")
def myfm(train, k, passes):
    from myfm import MyFMRegressor
    from scipy.sparse import csr_matrix

    def one_hot(rows, cols):
        ones = np.ones(2 * rows.size)
        columns = np.column_stack((rows, cols + np.int64(train.shape[0]))).ravel()
        starts = 2 * np.arange(rows.size + 1)
        return csr_matrix((ones, columns, starts), shape=(rows.size, sum(train.shape)))

    model = MyFMRegressor(rank=k, random_seed=0)
    X, y = one_hot(train.rows, train.cols), train.values.astype(float)
    return (
        lambda: model.fit(X, y, n_iter=passes, group_shapes=list(train.shape)),
        lambda rows, cols: model.predict(one_hot(rows, cols)),
    )


@system("myfm implicit", "myFM (Gibbs), implicit features", "myfm")
def myfm_implicit(train, k, passes):
    """A user is known by the items of the training part, too, and an item by its users."""
    from myfm import MyFMRegressor, RelationBlock
    from scipy.sparse import csr_matrix, diags, eye, hstack

    ones = np.ones(train.rows.size)
    had = csr_matrix((ones, (train.rows, train.cols)), shape=train.shape)
    blocks = []
    for had_by in (had, had.T.tocsr()):
        scale = 1.0 / np.sqrt(np.maximum(np.diff(had_by.indptr), 1.0))
        blocks.append(csr_matrix(hstack((eye(had_by.shape[0]), diags(scale) @ had_by))))

    def of(*ids):
        pairs = zip(ids, blocks, strict=True)
        return [RelationBlock(i.astype(np.int64), block) for i, block in pairs]

    model, y = MyFMRegressor(rank=k, random_seed=0), train.values.astype(float)
    groups = [*train.shape, *train.shape[::-1]]  # users, their items, items, their users
    return (
        lambda: model.fit(None, y, of(train.rows, train.cols), n_iter=passes, group_shapes=groups),
        lambda rows, cols: model.predict(None, of(rows, cols)),
    )


@system("river", "river BiasedMF", "river", online="yes")
def river(train, k, lr, reg, passes, factor_lr=None):
    from river import optim, reco

    model = reco.BiasedMF(
        n_factors=k,
        bias_optimizer=optim.SGD(lr),
        latent_optimizer=optim.SGD(factor_lr or lr),
        l2_bias=reg,
        l2_latent=reg,
        latent_initializer=optim.initializers.Normal(mu=0.0, sigma=0.1, seed=0),
    )
    ratings = list(
        zip(train.rows.tolist(), train.cols.tolist(), train.values.tolist(), strict=True)
    )

    def fit():
        for _ in range(passes):
            for user, item, rating in ratings:
                model.learn_one(user=user, item=item, y=rating)

    def predict(rows, cols):
        pairs = zip(rows.tolist(), cols.tolist(), strict=True)
        return np.array([model.predict_one(user=row, item=col) for row, col in pairs])

    return fit, predict


@system("spark", "Spark ALS", "pyspark", warm_up=True)
def spark(train, k, reg, passes):
    from pyspark.ml.recommendation import ALS
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(f"local[{THREADS}]")
        .config("spark.driver.memory", "8g")
        .config("spark.driver.extraJavaOptions", "-Xss16m")  # long lineages overflow the stack
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(THREADS))
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    data = session.createDataFrame(train.frame()).repartition(THREADS).cache()
    data.count()  # in memory before the clock starts
    als = ALS(rank=k, regParam=reg, maxIter=passes, numUserBlocks=THREADS, numItemBlocks=THREADS)
    als.setParams(userCol="user", itemCol="item", ratingCol="rating", seed=0)
    fitted = []

    def predict(rows, cols):
        tables = (fitted[0].userFactors, fitted[0].itemFactors)
        factors = [np.full((n, k), np.nan) for n in train.shape]
        for factor, table in zip(factors, tables, strict=True):
            table = table.toPandas()
            factor[table["id"].to_numpy()] = np.stack(table["features"].to_numpy())
        return products(*factors, rows, cols)

    return lambda: fitted.append(als.fit(data)), predict


@system("softimpute", "fancyimpute SoftImpute on bias residuals", "fancyimpute")
def softimpute(train, shrinkage, damping, passes, max_rank=None):
    import fancyimpute

    for module in (fancyimpute.solver, fancyimpute.soft_impute):
        renamed_in_sklearn(module)
    effects, filled = [], []
    model = fancyimpute.SoftImpute(
        shrinkage_value=shrinkage, max_iters=passes, max_rank=max_rank, verbose=False
    )

    def fit():
        effects.extend(ridge_biases(train, damping, 10))
        X = np.full(train.shape, np.nan, dtype=np.float32)
        rest = train.values - train.mean - effects[0][train.rows] - effects[1][train.cols]
        X[train.rows, train.cols] = rest
        filled.append(model.fit_transform(X))

    def predict(rows, cols):
        return train.mean + effects[0][rows] + effects[1][cols] + filled[0][rows, cols]

    return fit, predict


def renamed_in_sklearn(module):
    """Let a module that calls ``check_array(force_all_finite=)`` run with scikit-learn >= 1.8."""
    from sklearn.utils import check_array

    def renamed(X, force_all_finite=True, **options):
        return check_array(X, ensure_all_finite=force_all_finite, **options)

    module.check_array = renamed


def of_family():
    """Peak memory in MB and processor seconds of this process and its children (a JVM).

    They are those that live, from Linux's /proc.
    """
    parent, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            status = (folder / "status").read_text().splitlines()
            lines = dict(line.split(":\t", 1) for line in status)
            pid, peak = int(lines["Pid"]), int(lines.get("VmHWM", "0 kB").split()[0]) / 1024
            ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
            parent[pid] = int(lines["PPid"])
            spent[pid] = peak, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    total, family = np.zeros(2), {os.getpid()}
    while family:
        total += sum((np.array(spent[pid]) for pid in family if pid in spent), np.zeros(2))
        family = {pid for pid, up in parent.items() if up in family}
    return total.tolist()


def measure(split, name, settings):
    """Fit one system and return what the table says of it."""
    train = Train(split["rows"], split["cols"], split["values"], tuple(split["shape"].tolist()))
    chosen = SYSTEMS[name]
    if chosen.warm_up:
        chosen.prepare(train.head(WARM_UP), **settings)[0]()
    fit, predict, *counted = chosen.prepare(train, **settings)
    before, started = of_family()[1], perf_counter()
    fit()
    seconds = perf_counter() - started
    peak, work = of_family()
    rows, cols = split["test_rows"], split["test_cols"]
    guess = np.array(predict(rows, cols), dtype=float)
    seen = train.seen(rows, cols)
    if not np.isfinite(guess[seen]).all():
        raise ArithmeticError("the fit diverged: predictions are not finite")
    guess[~seen & np.isnan(guess)] = train.mean
    guess = np.clip(guess, train.values.min(), train.values.max())
    mse = float(np.mean((guess - split["test_values"]) ** 2))
    found = {"version": version(chosen.package), "mse": mse, "seconds": seconds, "peak": peak}
    return found | {"work": work - before, "reads": counted[0]() if counted else None}


def main():
    split, name, settings, result = sys.argv[1:]
    try:
        found = measure(np.load(split), name, json.loads(settings))
    except ImportError as error:
        found = {"error": f"not installed ({error})"}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
