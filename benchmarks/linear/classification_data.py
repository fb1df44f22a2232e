"""The two binary classification problems of peers.py, and the flipping of training labels.

A problem is ``(X_train, y_train, X_test, y_test)`` with labels in {-1, +1} and features in double
precision, so that no library has to convert them first:

``rcv1v2-subset``
    20,242 training and 3,566 test documents with 47,236 words (CSR), from
    ``fetch_rcv1v2_subset()``. Training rows arrive in the stored order, whose labels are mixed
    already.
``synthetic``
    The paper's classifier of rank 10, ``make_classifier()``: 40,000 training and 20,000 test
    matrices, 30 x 30, row by row in 900 columns (dense).
"""

from __future__ import annotations

import numpy as np

from onlinefw.datasets import fetch_rcv1v2_subset, make_classifier


def rcv1v2_subset():
    rows = fetch_rcv1v2_subset()
    return rows.X_train.astype(float), rows.y_train, rows.X_test.astype(float), rows.y_test


def synthetic(seed=0):
    made = make_classifier(seed=seed)
    X_train, X_test = (X.reshape(len(X), -1) for X in (made.X_train, made.X_test))
    return X_train, made.y_train, X_test, made.y_test


PROBLEMS = {"rcv1v2-subset": rcv1v2_subset, "synthetic": synthetic}


def flip_labels(y, share, seed=0):
    """Return a copy of y in which exactly that share of the labels is wrong."""
    rng = np.random.default_rng(seed)
    flipped = y.copy()
    flipped[rng.choice(y.size, size=round(share * y.size), replace=False)] *= -1.0
    return flipped
