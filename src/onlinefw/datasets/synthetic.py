"""The synthetic problems of the paper, and ratings in the shape of MovieLens 20M."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._typing import Array, Shape
from .rows import Rows

__all__ = [
    "Classification",
    "Entries",
    "LassoStream",
    "SinglePixel",
    "make_classifier",
    "make_lasso",
    "make_matrix_completion",
    "make_movielens_like",
    "make_single_pixel",
]


@dataclass(frozen=True)
class LassoStream:
    """Rounds y_t = A theta_bar + noise with a fixed design A.

    Attributes
    ----------
    A : ndarray (m, n)
        The design.
    theta : ndarray (n,)
        The sparse truth theta_bar.
    sigma : float
        Standard deviation of the noise.
    seed : int
        The stream is the same every time it is started.
    """

    A: Array
    theta: Array
    sigma: float
    seed: int

    def rounds(self, T: int) -> Iterator[tuple[Array, Array]]:
        """Yield (A, y_t) for t = 1, ..., T."""
        rng = np.random.default_rng([self.seed, 1])
        mean = self.A @ self.theta
        for _ in range(T):
            yield self.A, mean + self.sigma * rng.standard_normal(mean.size)

    def expected_excess(self, theta: Array) -> float:
        """Return ||A (theta - theta_bar)||^2 / 2 = f(theta) - f(theta_bar), in the paper's units.

        The paper's f sums over the m rows of a round, where ``Round.loss`` is their mean.
        """
        return 0.5 * float(np.sum(np.square(self.A @ (theta - self.theta))))


def make_lasso(
    m: int = 80, n: int = 300, sparsity: float = 0.1, sigma: float = 10.0, seed: int = 0
) -> LassoStream:
    """Make the paper's online LASSO: Gaussian design, sparse Gaussian truth, Gaussian noise.

    Parameters
    ----------
    m, n : int
        Rows per round, features.
    sparsity : float
        The share of nonzero entries of the truth.
    sigma : float
        Standard deviation of the noise.
    seed : int
        Seed of everything.

    Examples
    --------
    >>> from onlinefw.datasets import make_lasso
    >>> problem = make_lasso(seed=0)
    >>> problem.A.shape, int((problem.theta != 0).sum())
    ((80, 300), 30)
    >>> len(list(problem.rounds(3)))
    3
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    theta = np.zeros(n)
    support = rng.choice(n, size=max(1, round(sparsity * n)), replace=False)
    theta[support] = rng.standard_normal(support.size)
    return LassoStream(A, theta, sigma, seed)


@dataclass(frozen=True)
class Entries:
    """Observed entries of a matrix, in order of arrival.

    Attributes
    ----------
    rows, cols : ndarray of int32
        Where.
    values : ndarray of float
        What was observed there, with noise.
    shape : (int, int)
        The shape of the matrix.
    left, right : ndarray
        Factors of the truth: the mean of an entry is ``offset + left[row] @ right[col]`` (before
        any rounding, plus ``row_bias`` and ``col_bias`` where there are some).
    """

    rows: Array
    cols: Array
    values: Array
    shape: Shape
    left: Array
    right: Array
    offset: float = 0.0
    row_bias: Array | None = None
    col_bias: Array | None = None

    def mean(self, rows: Array, cols: Array) -> Array:
        """Return the true mean at the given entries."""
        out = self.offset + np.einsum("ik,ik->i", self.left[rows], self.right[cols])
        if self.row_bias is not None:
            out += self.row_bias[rows]
        if self.col_bias is not None:
            out += self.col_bias[cols]
        return out


def make_matrix_completion(
    shape: Shape = (200, 5000),
    rank: int = 20,
    n_observations: int = 2_000_000,
    noise_variance: float = 3.0,
    seed: int = 0,
) -> Entries:
    """Make the paper's matrix completion problem: entries drawn uniformly with replacement.

    Examples
    --------
    >>> from onlinefw.datasets import make_matrix_completion
    >>> data = make_matrix_completion((20, 30), rank=2, n_observations=100)
    >>> data.values.shape, data.left.shape
    ((100,), (20, 2))
    """
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((shape[0], rank)), rng.standard_normal((shape[1], rank))
    rows = rng.integers(shape[0], size=n_observations, dtype=np.int32)
    cols = rng.integers(shape[1], size=n_observations, dtype=np.int32)
    values = np.einsum("ik,ik->i", left[rows], right[cols])
    values += np.sqrt(noise_variance) * rng.standard_normal(n_observations)
    return Entries(rows, cols, values, tuple(shape), left, right)


@dataclass(frozen=True)
class Classification(Rows):
    """Matrix-shaped features with labels in {-1, +1}; some training labels may be flipped."""

    theta: Array


def make_classifier(
    shape: Shape = (30, 30),
    rank: int = 10,
    n_train: int = 40_000,
    n_test: int = 20_000,
    flip: float = 0.0,
    seed: int = 0,
) -> Classification:
    """Make the paper's binary classification problem with a low-rank true classifier.

    ``flip`` is the share of training labels that are wrong; test labels are always right.

    Examples
    --------
    >>> from onlinefw.datasets import make_classifier
    >>> data = make_classifier((5, 4), rank=2, n_train=100, n_test=10, flip=0.25)
    >>> wrong = (data.X_train * data.theta).sum(axis=(1, 2)) * data.y_train < 0
    >>> data.X_test.shape, int(wrong.sum())
    ((10, 5, 4), 25)
    """
    if not 0.0 <= flip <= 1.0:
        raise ValueError(f"flip is a share between 0 and 1, got {flip}")
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    X = rng.standard_normal((n_train + n_test, *shape))
    y = np.where(X.reshape(len(X), -1) @ theta.reshape(-1) >= 0, 1.0, -1.0)
    flipped = rng.choice(n_train, size=round(flip * n_train), replace=False)
    y[flipped] *= -1.0
    return Classification(X[:n_train], y[:n_train], X[n_train:], y[n_train:], theta)


@dataclass(frozen=True)
class SinglePixel:
    """Readings of a single-pixel camera: y = masks @ image + noise, the image flat in C order.

    Attributes
    ----------
    masks : ndarray (m, n)
        One 0/1 mask per reading.
    y : ndarray (m,)
        The readings.
    image : ndarray or None
        The true picture, square, where it is known.
    """

    masks: Array
    y: Array
    image: Array | None

    def picture(self, theta: Array) -> Array:
        """Return a vector of pixels as the square picture."""
        return np.reshape(theta, (math.isqrt(self.masks.shape[1]), -1))


def make_single_pixel(
    size: int = 64, n_measurements: int = 4319, noise: float = 0.5, seed: int = 0
) -> SinglePixel:
    """Simulate a single-pixel camera that looks at a bright letter R on black.

    Each reading is the light that one random 0/1 mask lets through, plus Gaussian noise of
    standard deviation ``noise`` (one pixel of the letter has brightness 1).

    Examples
    --------
    >>> from onlinefw.datasets import make_single_pixel
    >>> camera = make_single_pixel(size=16, n_measurements=50)
    >>> camera.masks.shape, camera.image.shape
    ((50, 256), (16, 16))
    """
    rng = np.random.default_rng(seed)
    image = _letter_r(size)
    masks = rng.integers(2, size=(n_measurements, size * size)).astype(float)
    y = masks @ image.reshape(-1) + noise * rng.standard_normal(n_measurements)
    return SinglePixel(masks, y, image)


def _letter_r(size: int) -> Array:
    # Unit coordinates of the pixel centres: u to the right, v down.
    v, u = np.mgrid[0:size, 0:size] / size + 0.5 / size
    stem = (np.abs(u - 0.35) < 0.05) & (np.abs(v - 0.5) < 0.3)
    ring = np.hypot((u - 0.45) / 1.2, v - 0.35)
    bowl = (np.abs(ring - 0.11) < 0.04) & (u > 0.38)
    leg = (np.abs(u - 0.45 - 0.6 * (v - 0.5)) < 0.05) & (v > 0.46) & (v < 0.8)
    return (stem | bowl | leg).astype(float)


def make_movielens_like(
    n_rows: int = 138_493,
    n_cols: int = 26_744,
    n_entries: int = 20_000_000,
    *,
    biases: bool = False,
    seed: int = 0,
) -> Entries:
    """Make ratings in the shape of MovieLens 20M: distinct entries, popular columns, half stars.

    Row activity is log-normal(0, 1.1); column popularity is proportional to
    (rank + 30)^-1.25 in shuffled order; the value is 3.5 + (0.7 / sqrt(10)) <a_row, b_col> +
    0.75 noise with 10 standard normal factors, rounded to half stars and clipped to [0.5, 5].

    Parameters
    ----------
    n_rows, n_cols, n_entries : int
        The shape, and how many distinct entries, in random order of arrival.
    biases : bool
        Add row and column effects of standard deviation 0.4 to the mean.
    seed : int
        Seed of everything.

    Examples
    --------
    >>> from onlinefw.datasets import make_movielens_like
    >>> data = make_movielens_like(200, 50, 1000)
    >>> data.values.min() >= 0.5, data.values.max() <= 5
    (np.True_, np.True_)
    """
    if n_entries > 0.5 * n_rows * n_cols:
        raise ValueError(
            f"n_entries={n_entries} distinct entries are more than half of a "
            f"{n_rows} x {n_cols} matrix; ask for fewer"
        )
    rng = np.random.default_rng(seed)
    activity = rng.lognormal(0.0, 1.1, n_rows)
    popularity = rng.permutation((np.arange(n_cols) + 30.0) ** -1.25)
    keys = _distinct_keys(rng, activity, popularity, n_entries)
    rows, cols = (keys // n_cols).astype(np.int32), (keys % n_cols).astype(np.int32)
    left = (0.7 / np.sqrt(10.0)) * rng.standard_normal((n_rows, 10))
    right = rng.standard_normal((n_cols, 10))
    row_bias = 0.4 * rng.standard_normal(n_rows) if biases else None
    col_bias = 0.4 * rng.standard_normal(n_cols) if biases else None
    data = Entries(rows, cols, np.empty(0), (n_rows, n_cols), left, right, 3.5, row_bias, col_bias)
    values = np.empty(n_entries, dtype=np.float32)
    for start in range(0, n_entries, 1_000_000):  # in pieces: the factors of 20M entries are large
        part = slice(start, start + 1_000_000)
        mean = data.mean(rows[part], cols[part])
        noisy = mean + 0.75 * rng.standard_normal(mean.size)
        values[part] = np.clip(np.round(2.0 * noisy) / 2.0, 0.5, 5.0)
    return replace(data, values=values)


def _distinct_keys(
    rng: np.random.Generator, activity: Array, popularity: Array, n_entries: int
) -> Array:
    """Draw distinct row * n_cols + col keys, rows and columns by weight, in random order."""
    row_edges = np.cumsum(activity) / activity.sum()
    col_edges = np.cumsum(popularity) / popularity.sum()
    keys = np.empty(0, dtype=np.int64)
    while keys.size < n_entries:
        draw = max(1000, int(1.5 * (n_entries - keys.size)))
        rows = np.searchsorted(row_edges, rng.random(draw), side="right")
        cols = np.searchsorted(col_edges, rng.random(draw), side="right")
        new = rows.clip(max=activity.size - 1) * np.int64(popularity.size)
        new += cols.clip(max=popularity.size - 1)
        keys = np.sort(np.concatenate((keys, new)))  # np.unique is slower here
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
    return rng.permutation(keys)[:n_entries]
