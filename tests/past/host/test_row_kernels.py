"""The loops over stored rows, against plain numpy in double precision."""

import numpy as np
import pytest

from onlinefw import _threads, losses
from onlinefw._threads import share
from onlinefw.kernels import bytes as byte_kernels
from onlinefw.kernels import entries, rows

KINDS = {
    "square": (losses.Square(), entries.QUADRATIC, 0.0),
    "bernoulli": (losses.Bernoulli(), entries.BERNOULLI, 0.0),
    "poisson": (losses.Poisson(), entries.POISSON, 0.0),
    "exponential": (losses.Exponential(0.1), entries.EXPONENTIAL, 0.1),
    "logistic": (losses.Logistic(), entries.LOGISTIC, 0.0),
    "sigmoid": (losses.Sigmoid(3.0), entries.SIGMOID, 3.0),
    "correntropy": (losses.Correntropy(2.0), entries.CORRENTROPY, 2.0),
}
SHAPES = [(1, 1), (3, 17), (4, 1), (17, 3), (130, 130), (131, 16), (517, 259)]
DTYPES = ["float32", "float64", "uint8"]
# One piece and more, with and without a rest; one block of rows and more, with and without a rest.
BYTE_SHAPES = [(1, 64), (3, 65), (4, 127), (128, 128), (131, 100), (517, 259)]
needs_vnni = pytest.mark.skipif(not byte_kernels.HAS_VNNI, reason="no VNNI here")


def targets(name, rng, n):
    if name in ("logistic", "sigmoid"):
        return rng.choice([-1.0, 1.0], n)
    if name == "bernoulli":
        return rng.choice([0.0, 1.0], n)
    if name == "poisson":
        return rng.poisson(2.0, n).astype(float)
    if name == "exponential":
        return rng.exponential(1.0, n) + 0.01
    return rng.standard_normal(n)


def problem(name, shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "uint8":
        X = rng.integers(0, 256, shape, dtype=np.uint8)
    else:
        X = rng.standard_normal(shape).astype(dtype)
    scale = np.sqrt(shape[1]) * (150 if dtype == "uint8" else 1)
    a = (rng.standard_normal(shape[1]) / scale).astype("float64" if dtype == "float64" else "f4")
    z, w = rng.standard_normal(shape[0]), rng.uniform(0.5, 2.0, shape[0])
    return X, a, z, targets(name, rng, shape[0]), w


def splits(n):
    """Boundaries for one thread, two threads, and blocks that may be empty or short."""
    return [
        np.array([0, n]),
        np.array([0, n // 2, n]),
        np.array([0, n // 3, n // 3, n - n // 5, n]),
    ]


def summed(kernel, blocks, X, *args):
    """Return the sum over all blocks of what a kernel sums up by block."""
    acc = np.zeros((len(blocks) - 1, X.shape[1]))
    share(kernel, blocks, X, *args, acc)
    return acc.sum(axis=0)


def totals(kind, parameter, z, y, w, b):
    """Return value, slope and curvature, and the value alone."""
    blocks = np.array([0, len(z) // 2, len(z)])
    three, one = np.zeros((2, 3)), np.zeros(2)
    share(rows.totals, blocks, kind, parameter, z, y, w, b, three)
    share(rows.values, blocks, kind, parameter, z, y, w, b, one)
    return *three.sum(axis=0), one.sum()


def tolerance(dtype):
    return 1e-12 if dtype == "float64" else 2e-6


def close(result, X, factors, exact, dtype):
    """Rounding is relative to the sum of the absolute values of what is added."""
    size = np.abs(X.astype(float)) @ np.abs(factors)
    return np.all(np.abs(result - exact) <= tolerance(dtype) * size + 1e-300)


def check_fused(kernel, name, shapes, dtype):
    loss, kind, parameter = KINDS[name]
    for seed, shape in enumerate(shapes):
        X, a, z, y, w = problem(name, shape, dtype, seed)
        exact = X.astype(float)
        for moved in {0, shape[0] // 2, shape[0]}:
            for blocks in splits(shape[0]):
                at, moving = z.copy(), (moved, 0.7, 0.3, a)
                out = summed(kernel, blocks, X, *moving, at, y, w, 0.1, kind, parameter)
                moved_to = z.copy()
                moved_to[:moved] = 0.7 * z[:moved] + 0.3 * (exact[:moved] @ a.astype(float))
                assert np.array_equal(at[moved:], z[moved:])
                np.testing.assert_allclose(at, moved_to, rtol=0, atol=tolerance(dtype))
                slopes = w * loss.derivative(at + 0.1, y)
                assert close(out, exact.T, slopes, exact.T @ slopes, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KINDS)
def test_fused_gradient(name, dtype):
    check_fused(rows.fused_gradient, name, SHAPES, dtype)


@needs_vnni
@pytest.mark.parametrize("name", KINDS)
def test_fused_bytes(name):
    check_fused(byte_kernels.fused_bytes, name, BYTE_SHAPES, "uint8")


def test_which_rows_suit_the_kernel_for_bytes():
    suits = byte_kernels.suits
    assert suits(np.zeros((2, 64), np.uint8)) == byte_kernels.HAS_VNNI
    assert not suits(np.zeros((2, 63), np.uint8))
    assert not suits(np.zeros((2, 4096), np.uint8))
    assert not suits(np.zeros((2, 64), np.float32))


@pytest.mark.parametrize("largest", [0.0, 1e-280, 1e-45, 1.0, 1e30])
def test_digits(largest):
    """Within half a unit, which is the largest number / (127 * 2**16), also at the ends."""
    numbers = largest * np.append(np.linspace(-1.0, 1.0, 1001), [1e-7, 1e-9])
    digits = np.full((3, len(numbers)), 99, np.int8)
    unit = byte_kernels._write_digits(numbers, digits)
    np.testing.assert_allclose(unit, largest / (127 * 2**16), rtol=1e-12)
    written = unit * (np.array([2.0**16, 2.0**8, 1.0]) @ digits)
    np.testing.assert_allclose(written, numbers, rtol=0, atol=0.501 * unit)


@needs_vnni
def test_bytes_at_the_extremes():
    """The largest sums there are, slopes of very different size, none at all, and unknown ones."""
    N, n = 300, 4095
    X = np.full((N, n), 255, np.uint8)
    blocks, w, y = np.array([0, N]), np.ones(N), np.zeros(N)

    def fused(a, z):
        moving, loss = (N, 1.0, 1.0, a), (entries.QUADRATIC, 0.0)
        return summed(byte_kernels.fused_bytes, blocks, X, *moving, z, y, w, 0.0, *loss)

    for sign in (-1, 1):
        a, z = np.full(n, sign, np.float32), np.zeros(N)
        out = fused(a, z)
        np.testing.assert_allclose(z, sign * 255.0 * n, rtol=1e-6)
        np.testing.assert_allclose(out, 255.0 * N * z[0], rtol=1e-6)
    a, z = np.zeros(n, np.float32), np.zeros(N)
    assert np.all(fused(a, z) == 0.0)
    assert np.all(z == 0.0)
    z[:] = 1e-3 ** np.arange(N)
    np.testing.assert_allclose(fused(a, z), 255.0 * z.sum(), rtol=1e-6)
    z[7] = np.inf
    assert np.all(fused(a, z) > 1e30)
    z[7] = np.nan
    assert np.all(np.isnan(fused(a, z)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_two_halves(dtype):
    for seed, shape in enumerate(SHAPES):
        X, a, z, y, _ = problem("square", shape, dtype, seed)
        exact = X.astype(float)
        for blocks in splits(shape[0]):
            at = z.copy()
            share(rows.move_rows, blocks, X, 0.7, 0.3, a, at)
            moved_to = 0.7 * z + 0.3 * (exact @ a.astype(float))
            np.testing.assert_allclose(at, moved_to, rtol=0, atol=tolerance(dtype))
            out = summed(rows.slope_gradient, blocks, X, y.astype(a.dtype))
            assert close(out, exact.T, y, exact.T @ y, dtype)
            out = summed(rows.slope_gradient, blocks, X, y)  # in double precision
            assert close(out, exact.T, y, exact.T @ y, "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_do_not_depend_on_timing(dtype, monkeypatch):
    suits = dtype == "uint8" and byte_kernels.HAS_VNNI
    for kernel in [rows.fused_gradient, byte_kernels.fused_bytes][: 1 + suits]:
        check_timing(kernel, dtype, monkeypatch)


def check_timing(kernel, dtype, monkeypatch):
    monkeypatch.setattr(_threads, "_wanted", 3)
    X, a, z, y, w = problem("logistic", (2000, 65), dtype)
    blocks, results = np.array([0, 700, 1400, 2000]), []
    for _ in range(5):
        at, moving = z.copy(), (2000, 0.5, 0.5, a)
        out = summed(kernel, blocks, X, *moving, at, y, w, 0.0, entries.LOGISTIC, 0.0)
        results.append((at, out))
    for at, out in results[1:]:
        assert np.array_equal(at, results[0][0])
        assert np.array_equal(out, results[0][1])


@pytest.mark.parametrize("n", [0, 1, 3, 130, 1001])
@pytest.mark.parametrize("name", KINDS)
def test_sums(name, n):
    loss, kind, parameter = KINDS[name]
    _, _, z, y, w = problem(name, (n, 1), "float64")
    z = 4.0 * z
    value, first, second, alone = totals(kind, parameter, z, y, w, -0.2)
    assert alone == value
    at = z - 0.2
    np.testing.assert_allclose(value, np.sum(w * loss.value(at, y)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(first, np.sum(w * loss.derivative(at, y)), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(
        second, np.sum(w * loss.second_derivative(at, y)), rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("name", KINDS)
def test_far_away(name):
    """Where exponentials overflow, the losses are met, infinities included; never NaN."""
    loss, kind, parameter = KINDS[name]
    y, w = targets(name, np.random.default_rng(0), 1), np.ones(1)
    for z in [-1e300, -1e10, -800.0, -1.0, 0.0, 1.0, 800.0, 1e10, 1e300]:
        at = np.array([z])
        value, first, second, alone = totals(kind, parameter, at, y, w, 0.0)
        assert not np.isnan([value, first, second]).any() and alone == value
        np.testing.assert_allclose(value, loss.value(at, y)[0], rtol=1e-13)
        np.testing.assert_allclose(first, loss.derivative(at, y)[0], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(second, loss.second_derivative(at, y)[0], rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_huge_slopes_are_not_nan(dtype):
    """exp(100) is beyond single precision, and a row has zeros."""
    X = np.zeros((5, 20), dtype=dtype)
    X[:, 3] = 1
    a, z = np.zeros(20, "f8" if dtype == "float64" else "f4"), np.full(5, 100.0)
    blocks, ones, moving = np.array([0, 5]), np.ones(5), (0, 1.0, 0.0, a)
    poisson = entries.POISSON, 0.0
    out = summed(rows.fused_gradient, blocks, X, *moving, z, ones, ones, 0.0, *poisson)
    assert out[3] > 1e30
    assert np.all(np.delete(out, 3) == 0.0)
