"""Linear models on a GPU: whole runs, and the passes over rows against what the device can do.

    ONLINEFW_DATA=folder python benchmarks/gpu/rows.py [--only PART ...] [--write]

Parts: ``mnist`` (class 1 against the rest, 6000 rounds of 10 images kept as bytes, every image so
far in every round; images of random bytes where mnist.npz is not in the folder), ``same`` (the
first 100 and 600 of these rounds on the device and in this process: the loss is not convex, and
the run makes rounding grow), ``fused`` (one pass over dense rows for a move and the gradient,
against reading them with cupy.sum and against two cuBLAS products), ``sparse`` (X'r and X v against
cuSPARSE), ``squares`` (RunningLeastSquares with 4096 features), ``round`` (where the time of a
round of ``mnist`` goes).

Times of passes are medians of device times; those of runs are wall times, all Python included,
after a run of 30 rounds that compiles the kernels. ``--write`` replaces rows.md.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from stopwatch import milliseconds

import onlinefw as ofw
from onlinefw.losses import Logistic, Sigmoid
from onlinefw.objectives import LinearObjective, RunningLeastSquares
from onlinefw.sets import L1Ball, TraceNormBall
from onlinefw.steps import Power

sys.path.insert(0, str(Path(__file__).parents[1]))
from table import write_table

HERE = Path(__file__).parent
SIZE = 10
CUPY = ["cupy-cuda12x", "cupy-cuda13x"]  # whichever is there


def images():
    """Return training images and labels, test images and labels, and what they are."""
    path = Path(os.environ.get("ONLINEFW_DATA", ".")) / "mnist.npz"
    if path.exists():
        stored = np.load(path)
        X, X_test = (stored[name].reshape(-1, 784) for name in ("x_train", "x_test"))
        y, y_test = (np.where(stored[name] == 1, 1.0, -1.0) for name in ("y_train", "y_test"))
        return X, y, X_test, y_test, "mnist"
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (70_000, 784), dtype=np.uint8)
    y = np.where(X @ rng.standard_normal(784) > 0.0, 1.0, -1.0)
    return X[:60_000], y[:60_000], X[60_000:], y[60_000:], "random bytes"


def learner(device, radius=1.0 / 255):
    objective = LinearObjective(Sigmoid(), shape=(28, 28), device=device)
    return ofw.OnlineFrankWolfe(objective, TraceNormBall(radius), step=Power(0.75))


def play(one, X, y, rounds):
    for t in range(rounds):
        part = slice(t * SIZE, (t + 1) * SIZE)
        last = one.observe(X[part], y[part])
    return last


def mnist():
    X, y, X_test, y_test, name = images()
    play(learner("cuda"), X, y, 30)
    one, rounds, times = learner("cuda"), len(y) // SIZE, []
    for t in range(rounds):
        part = slice(t * SIZE, (t + 1) * SIZE)
        started = perf_counter()
        last = one.observe(X[part], y[part])
        times.append(perf_counter() - started)
    wrong = np.mean(np.sign(X_test @ one.theta.reshape(-1)) != y_test)
    early, late = (1e3 * np.median(some) for some in (times[:600], times[-600:]))
    yield (
        f"{name}, {len(y):,} x 784 bytes, {rounds} rounds",
        f"**{sum(times):.2f} s** ({early:.3f} ms a round at first, {late:.3f} ms at last); "
        f"gap {last.gap:.3g}, test error {wrong:.2%}",
    )


def same():
    X, y, *_, name = images()
    for rounds in (100, 600):
        images_of = {"bytes": X[: rounds * SIZE], "doubles": X[: rounds * SIZE].astype(float)}
        found = {}
        for device, kind in product(("cpu", "cuda"), images_of):
            one = learner(device)
            play(one, images_of[kind], y, rounds)
            found[device, kind] = one.theta

        def apart(one, other, found=found):
            difference = np.abs(found[one] - found[other]).max() / np.abs(found[other]).max()
            return f"{difference:.1e}"

        yield (
            f"{name}, {rounds} rounds: theta of the GPU differs by, of its largest entry",
            f"{apart(('cuda', 'bytes'), ('cpu', 'bytes'))} (images kept as bytes), "
            f"{apart(('cuda', 'doubles'), ('cpu', 'doubles'))} (doubles); on the CPU bytes, read "
            f"in single precision, and doubles by {apart(('cpu', 'bytes'), ('cpu', 'doubles'))}",
        )


def _one_pass(rows, loss, z, y, w, slopes):
    """Move predictions along an atom and make the gradient of a sigmoid, on the device."""
    from onlinefw.past.cuda import row_kernels as kernels

    X, n, a = rows._data.buffer, len(rows), rows._scratch.a
    parts, out = rows._scratch.memory(1)
    if rows.fuses(loss):
        kernels.fused_gradient(loss.kind, X, n, n, 0.1, a, z, y, w, 0.0, parts, out)
        return
    kernels.dense_move(X, n, 0.9, 0.1, a, z)
    kernels.row_slopes(loss.kind, n, z, y, w, 0.0, slopes[0])
    kernels.slope_sums(X, n, slopes, parts, out)


def fused():
    import cupy

    from onlinefw.past.cuda.dense_rows import CudaDenseRows
    from onlinefw.past.cuda.row_loss import CudaRowLoss

    rng, loss = np.random.default_rng(0), CudaRowLoss(Sigmoid())
    for n_rows, n, dtype in (
        (60_000, 784, np.uint8),
        (600_000, 784, np.uint8),
        (200_000, 900, np.float32),
        (100_000, 900, np.float64),
        (100_000, 3072, np.float32),
    ):
        X = rng.integers(0, 256, (n_rows, n), dtype=np.uint8).astype(dtype)
        rows = CudaDenseRows((n,)).extended(X)
        z, y, w = (cupy.asarray(rng.standard_normal(n_rows)) for _ in range(3))
        buffer = rows._data.buffer
        rows._sent(rng.standard_normal(n) / 1e4)
        one_pass = partial(_one_pass, rows, loss, z, y, w, cupy.zeros((1, n_rows)))
        words = buffer.reshape(-1).view(np.uint32)
        ours, read = milliseconds(one_pass), milliseconds(lambda words=words: words.sum())
        text = f"{ours:.3f} ms, {X.nbytes / ours / 1e6:,.0f} GB/s; cupy.sum of it {read:.3f} ms"
        if dtype != np.uint8:
            there, v, r = buffer[:, :n].copy(), cupy.zeros(n, dtype), cupy.zeros(n_rows, dtype)
            products = milliseconds(lambda X=there, v=v, r=r: (X @ v, r @ X))
            text += f"; X @ v and r @ X of cuBLAS {products:.3f} ms"
        how = "one read" if rows.fuses(loss) else "two reads"
        yield f"{n_rows:,} x {n} {np.dtype(dtype).name}: move and gradient, {how}", text


def sparse():
    import cupy
    import cupyx.scipy.sparse as csp

    from onlinefw.past.cuda.sparse_rows import CudaSparseRows

    rng = np.random.default_rng(0)
    n_rows, n, per_row = 200_000, 47_236, 75
    indices = np.minimum(rng.zipf(1.3, (n_rows, per_row)) * 7 % n, n - 1)
    starts = np.arange(0, indices.size + 1, per_row)
    X = sp.csr_array((rng.random(indices.size), indices.reshape(-1), starts), shape=(n_rows, n))
    X.sum_duplicates()
    rows = CudaSparseRows((n,)).extended(X)
    r, v = cupy.asarray(rng.standard_normal(n_rows)), rng.standard_normal(n)
    out = cupy.zeros(n)
    theirs, columns = csp.csr_matrix(sp.csr_matrix(X)), csp.csr_matrix(sp.csr_matrix(X.T.tocsr()))
    v_there = cupy.asarray(v)
    pairs = (
        ("X' r", lambda: rows._add_up(r, out), lambda: columns @ r),
        ("X v", lambda: rows.matvec(v), lambda: theirs @ v_there),
    )
    for name, ours, peer in pairs:
        a, b = milliseconds(ours), milliseconds(peer)
        yield (
            f"{name}, {n_rows:,} x {n:,}, {X.nnz:,} nonzeros",
            f"{a:.3f} ms; cuSPARSE, of a matrix stored that way round, {b:.3f} ms",
        )
    labels = np.where(np.asarray(X[:20_000] @ v) > 0.0, 1.0, -1.0)
    for device in ("cuda", "cpu"):
        objective = LinearObjective(Logistic(), device=device)
        one = ofw.OnlineFrankWolfe(objective, L1Ball(100.0), step=Power(0.75))
        started, rounds = perf_counter(), 1000
        for t in range(rounds):
            part = slice(5 * t, 5 * t + 5)
            one.observe(X[part], labels[part])
        seconds = perf_counter() - started
        yield (
            f"{rounds} rounds of 5 of these rows, l1 ball, {device}",
            f"{1e3 * seconds / rounds:.3f} ms a round",
        )


def squares():
    rng = np.random.default_rng(0)
    n, size, rounds = 4096, 1024, 20
    X = rng.standard_normal((size, n))
    y = X[:, 0] - X[:, 1] + rng.standard_normal(size)
    for device in ("cuda", "cpu"):
        one = ofw.OnlineFrankWolfe(RunningLeastSquares(n, device=device), L1Ball(2.0))
        for _ in range(2):
            one.observe(X, y)
        started = perf_counter()
        for _ in range(rounds):
            last = one.observe(X, y)
        each = (perf_counter() - started) / rounds
        yield (
            f"RunningLeastSquares, {n} features, rounds of {size} rows, {device}",
            f"{1e3 * each:.2f} ms a round; gap {last.gap:.6g}",
        )


def round_():
    X, y, *_ = images()
    one = learner("cuda")
    play(one, X, y, 1000)
    profile = cProfile.Profile()
    profile.enable()
    play(one, X[10_000:], y[10_000:], 1000)
    profile.disable()
    stats = pstats.Stats(profile).sort_stats("tottime")
    stats.print_stats(18)
    yield "1000 rounds under the profiler", f"{stats.total_tt:.2f} s"


PARTS = {
    "mnist": mnist,
    "same": same,
    "fused": fused,
    "sparse": sparse,
    "squares": squares,
    "round": round_,
}


def main():
    import cupy

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS)[:-1])
    parser.add_argument("--write", action="store_true", help="replace rows.md")
    options = parser.parse_args()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = [
        f"{device}.",
        "",
        "| what | time |",
        "| --- | --- |",
    ]
    for name in options.only:
        for title, text in PARTS[name]():
            lines.append(f"| {title} | {text} |")
            print(lines[-1], flush=True)
    if options.write:
        write_table(HERE / "rows.md", "Linear models on a GPU", lines, CUPY)


if __name__ == "__main__":
    main()
