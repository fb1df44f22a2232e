"""Temporary: what ``onlinefw.datasets`` will offer. Delete when its loaders are there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array


def _path(name: str) -> Path:
    return Path(os.environ.get("ONLINEFW_DATA", ".")) / f"{name}.npz"


def available(name: str) -> bool:
    return _path({"rcv1": "rcv1-binary"}.get(name, name)).exists()


def fetch_mnist() -> Any:
    stored = np.load(_path("mnist"))
    return SimpleNamespace(
        X_train=stored["x_train"],
        y_train=stored["y_train"],
        X_test=stored["x_test"],
        y_test=stored["y_test"],
    )


def _documents(name: str) -> Any:
    stored = np.load(_path(name))
    indices = stored["indices"].astype(np.int32)
    X = csr_array((stored["data"], indices, stored["indptr"]), shape=tuple(stored["shape"]))
    y, train = stored["y"], stored["split"] == 0
    return SimpleNamespace(X_train=X[train], y_train=y[train], X_test=X[~train], y_test=y[~train])


def fetch_rcv1_binary() -> Any:
    return _documents("rcv1-binary")


def fetch_rcv1v2_subset() -> Any:
    return _documents("rcv1v2-subset")
