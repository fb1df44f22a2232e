"""The paper's two boxes, and pairwise steps, in plain dense numpy.

They are written independently of the library. Nothing is carried: every round recomputes
predictions, gradient and theta from scratch.
"""

import numpy as np
from scipy.optimize import brentq


def l1_lmo(gradient, radius):
    vertex = np.zeros(gradient.size)
    i = np.argmax(np.abs(gradient))
    vertex[i] = -radius * (1 if gradient.ravel()[i] >= 0 else -1)
    return vertex.reshape(gradient.shape)


def simplex_lmo(gradient, radius):
    vertex = np.zeros(gradient.size)
    vertex[np.argmin(gradient)] = radius
    return vertex


def trace_lmo(gradient, radius):
    u, _, vt = np.linalg.svd(gradient)
    return -radius * np.outer(u[:, 0], vt[0])


def birkhoff_lmo(gradient, _radius=None):
    from itertools import permutations

    n = gradient.shape[0]
    best = min(permutations(range(n)), key=lambda p: sum(gradient[i, p[i]] for i in range(n)))
    vertex = np.zeros((n, n))
    vertex[np.arange(n), best] = 1.0
    return vertex


class MeanLoss:
    """F_t and its gradient at any theta, from all rows seen."""

    def __init__(self, derivative, shape):
        self.derivative, self.shape = derivative, shape
        self.X, self.y, self.w = [], [], []

    def add(self, X, y, w=None):
        self.X.append(np.reshape(X, (len(X), -1)))
        self.y.append(y)
        self.w.append(np.ones(len(y)) if w is None else w)

    def gradient(self, theta):
        X, y, w = np.vstack(self.X), np.concatenate(self.y), np.concatenate(self.w)
        slopes = self.derivative(X @ theta.ravel(), y)
        return ((w * slopes) @ X / w.sum()).reshape(self.shape)


def online_fw(batches, derivative, shape, lmo, radius, step, inner_steps=1):
    """Algorithm 1; returns every theta_t (after each round) and every gap."""
    past, theta, n, thetas, gaps = MeanLoss(derivative, shape), np.zeros(shape), 0, [], []
    for batch in batches:
        past.add(*batch)
        for _ in range(inner_steps):
            n += 1
            g = past.gradient(theta)
            a = lmo(g, radius)
            gap = np.sum(g * (theta - a))
            theta = theta + step(n) * (a - theta)
        thetas.append(theta)
        gaps.append(gap)
    return thetas, gaps


def online_aw(batches, derivative, shape, lmo, radius, step, inner_steps=1):
    """Algorithm 2; returns thetas, AW gaps, kinds, step counters and the final weights."""
    past, n = MeanLoss(derivative, shape), 0
    atoms, weights = [], []
    thetas, gaps, kinds, counters = [], [], [], []
    theta = np.zeros(shape)
    for batch in batches:
        past.add(*batch)
        for _ in range(inner_steps):
            g = past.gradient(theta)
            fw = lmo(g, radius)
            if atoms:
                k = int(np.argmax([np.sum(a * g) for a in atoms]))
                gap = np.sum(g * (atoms[k] - fw))
            else:
                gap = np.sum(g * (theta - fw))
            # How far line 5 is from a tie; where both directions are equally good they are the
            # same direction, and rounding decides what the step is called.
            margin = np.sum(g * (2 * theta - fw - atoms[k])) if atoms else np.inf
            if margin >= 0:
                n, kind = n + 1, "fw"
                gamma = step(n)
                weights = [(1 - gamma) * w for w in weights]
                same = [i for i, a in enumerate(atoms) if np.array_equal(a, fw)]
                if same:
                    weights[same[0]] += gamma
                else:
                    atoms.append(fw)
                    weights.append(gamma)
            else:
                w = weights[k]
                gamma_max = np.inf if w >= 1 else w / (1 - w)
                if gamma_max >= step(n):
                    n, kind = n + 1, "away"
                    gamma = step(n)
                    weights = [(1 + gamma) * w for w in weights]
                    weights[k] -= gamma
                else:
                    kind = "drop"
                    weights = [(1 + gamma_max) * w for w in weights]
                    del atoms[k], weights[k]
            theta = sum(w * a for w, a in zip(weights, atoms, strict=True))
        thetas.append(theta)
        gaps.append(gap)
        kinds.append(kind if abs(margin) > 1e-9 else "tie")
        counters.append(n)
    return thetas, gaps, kinds, counters, weights


def searched(past, theta, direction, longest):
    """The c in [0, longest] where the mean loss is smallest along theta + c direction."""

    def slope(c):
        return np.sum(past.gradient(theta + c * direction) * direction)

    if slope(0.0) >= 0:
        return 0.0
    return longest if slope(longest) <= 0 else brentq(slope, 0.0, longest, xtol=1e-15)


def online_pairwise(batches, derivative, shape, lmo, radius, step, inner_steps=1, blended=False):
    """Pairwise steps, theta + c (s - v), by ``step`` (None: searched) or blended with FW steps.

    Returns thetas, gaps, kinds, step counters, and the final weights. The combination is a list of
    (vertex, weight), theta is always its sum.
    """
    past, n, held = MeanLoss(derivative, shape), 0, []
    thetas, gaps, kinds, counters = [], [], [], []

    def theta():
        return sum((w * a for a, w in held), np.zeros(shape))

    def give(vertex, weight):
        for i, (a, w) in enumerate(held):
            if np.array_equal(a, vertex):
                held[i] = (a, w + weight)
                return
        held.append((vertex, weight))

    for batch in batches:
        past.add(*batch)
        for _ in range(inner_steps):
            at = theta()
            g = past.gradient(at)
            s = lmo(g, radius)
            gap, kind = np.sum(g * (at - s)), "fw"
            if held:
                scores = [np.sum(a * g) for a, _ in held]
                i, best = int(np.argmax(scores)), int(np.argmin(scores))
                v, w = held[i]
                fw_gap, gap = gap, np.sum(g * (v - s))
                end = held[best][0] if blended else s
                is_held = any(np.array_equal(a, end) for a, _ in held)
                if np.array_equal(v, end) or (blended and scores[i] - scores[best] < fw_gap):
                    kind = "fw"
                elif step is None:
                    gamma = searched(past, at, end - v, w)
                    kind = "drop" if is_held and gamma == w else "pairwise"
                elif w >= step(n):
                    gamma, kind = step(n + 1), "pairwise"
                else:
                    gamma, kind = w, "drop" if is_held else "fw"
            n += kind != "drop"
            if kind == "fw":
                whole = 1.0 if not held else None
                gamma = whole or (step(n) if step else searched(past, at, s - at, 1.0))
                held = [(a, (1 - gamma) * w) for a, w in held if gamma < 1]
                give(s, gamma)
            else:
                held[i] = (v, w - gamma)
                give(end, gamma)
                held = [(a, w) for a, w in held if w > 0]
            if gamma == 0.0:
                break
        thetas.append(theta())
        gaps.append(gap)
        kinds.append(kind)
        counters.append(n)
    return thetas, gaps, kinds, counters, [w for _, w in held]
