"""What the kernels of ``onlinefw.past.cuda`` compute, in numpy, with the same arguments.

Buffers are longer than what is in use, as on the device; what lies behind is not touched.
"""

import numpy as np

from onlinefw import losses


def loss_of(kind, parameter):
    """Return the loss that the kernels call by a number."""
    return (
        losses.Square(),
        losses.Bernoulli(),
        losses.Poisson(),
        losses.Exponential(parameter or 1e-3),
        losses.Logistic(),
        losses.Sigmoid(parameter or 1.0),
        losses.Correntropy(parameter or 1.0),
        losses.Gaussian(),
    )[kind]


def _slopes(kind, parameter, z, y):
    return np.clip(loss_of(kind, parameter).derivative(z, y), -1e300, 1e300)


def row_sums(defined, grid, kind, parameter, n, z, d, c, y, w, b, out):
    z, d, y, w = (one.reshape(-1)[:n] for one in (z, d, y, w))
    loss, at = loss_of(kind, parameter), z + c * d + b
    slope, bend = w * loss.derivative(at, y), w * loss.second_derivative(at, y)
    sums = (w @ loss.value(at, y), slope.sum(), bend.sum(), slope @ d, bend @ d**2)
    out[: grid[0]] = 0.0
    out[0] = sums


def row_slopes(defined, grid, kind, parameter, n, z, y, w, b, out):
    out[:n] = w[:n] * _slopes(kind, parameter, z[:n] + b, y[:n])


def row_bends(defined, grid, kind, parameter, n, z, y, w, b, out):
    out[:n] = w[:n] * loss_of(kind, parameter).model_curvature(z[:n] + b, y[:n])


def fused_rows(
    defined, grid, X, n, stride, moved, keep, step, a, z, y, w, b, kind, parameter, parts
):
    assert X.shape[1] == stride and stride % int(defined["WIDTH"]) == 0
    assert stride <= 32 * int(defined["WIDTH"]) * int(defined["CHUNKS"])
    z[:moved] = keep * z[:moved] + step * (X[:moved] @ a)
    slopes = w[:n] * _slopes(kind, parameter, z[:n] + b, y[:n])
    parts[: grid[0] * stride] = 0.0
    parts[:stride] = slopes @ X[:n]


def move_rows(defined, grid, X, n, stride, keep, step, a, z):
    z[:n] = (keep * z[:n] if keep else 0.0) + step * (X[:n] @ a)


def slope_sums(defined, grid, X, n, stride, s, parts):
    lanes = int(defined["LANES"])
    assert s.shape == (lanes, n)
    parts[: grid[1] * lanes * stride] = 0.0
    parts[: lanes * stride] = (s @ X[:n]).reshape(-1)


def some_columns(defined, grid, X, n, stride, n_chosen, indices, values, out):
    assert indices.dtype == np.int32 and len(indices) == n_chosen
    out[:n] = X[:n][:, indices] @ values


def add_parts(defined, grid, parts, n_parts, n, out):
    out[:n] = parts[: n_parts * n].reshape(n_parts, n).sum(axis=0)


def _rows(indptr, indices, data, first, n):
    assert (indptr.dtype, indices.dtype) == (np.int64, np.int32)
    for i in range(first, n):
        part = slice(indptr[i], indptr[i + 1])
        yield i, indices[part], data[part].astype(float)


def row_dots(defined, grid, indptr, indices, data, n, v, keep, step, out):
    for i, where, values in _rows(indptr, indices, data, 0, n):
        out[i] = (keep * out[i] if keep else 0.0) + step * (values @ v[where])


def segment_dots(defined, grid, cuts, n, indices, data, r, sums):
    for s in range(n):
        part = slice(cuts[s], cuts[s + 1])
        sums[s] = data[part].astype(float) @ r[indices[part]]


def add_segments(defined, grid, segments, n, sums, out):
    for j in range(n):
        out[j] = sums[segments[j] : segments[j + 1]].sum()


def scatter_tail(defined, grid, indptr, indices, data, first, n, r, out):
    for i, where, values in _rows(indptr, indices, data, first, n):
        out[where] += r[i] * values


def sparse_column(
    defined, grid, j, starts, row_indices, column_data, indptr, indices, data, first, n, out
):
    part = slice(starts[j], starts[j + 1])
    out[row_indices[part]] = column_data[part]
    for i, where, values in _rows(indptr, indices, data, first, n):
        out[i] = values[where == j].sum()


def gather_columns(defined, grid, indptr, indices, data, first, n, place, n_chosen, out):
    for i, where, values in _rows(indptr, indices, data, first, n):
        chosen = place[where] >= 0
        out[i - first, place[where[chosen]]] = values[chosen]


KERNELS = {
    one.__name__: one
    for one in (
        row_sums,
        row_slopes,
        row_bends,
        fused_rows,
        move_rows,
        slope_sums,
        some_columns,
        add_parts,
        row_dots,
        segment_dots,
        add_segments,
        scatter_tail,
        sparse_column,
        gather_columns,
    )
}
