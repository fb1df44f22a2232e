"""Settings of the systems that peers.py compares: ours, the peers', and the grids tried."""

from __future__ import annotations

# Our own lines, by name. # TODO(matrix completion): filled in when the estimator lands.
OURS: dict[str, dict[str, dict]] = {
    "ml-100k": {"one pass": {"radius": 1000.0, "passes": 1, "batch_size": 80}},
    "ml-1m": {"one pass": {"radius": 4000.0, "passes": 1, "batch_size": 800}},
    "generated": {"one pass": {"radius": 50_000.0, "passes": 1, "batch_size": 10_000}},
}

# The peers, tuned on 8,000 validation rows of the training part (ml-100k).
PEERS: dict[str, list[tuple[str, dict]]] = {
    "ml-100k": [
        ("biases", {"damping": 4.0, "passes": 10}),
        ("myfm", {"k": 8, "passes": 300}),
        ("cornac", {"k": 50, "lr": 0.01, "reg": 0.08, "passes": 50}),
        ("surprise", {"k": 100, "reg": 0.08, "passes": 60}),
        ("libmf", {"k": 40, "reg": 0.08, "lr": 0.05, "passes": 20}),
        ("softimpute", {"shrinkage": 16.0, "damping": 4.0, "passes": 100}),
        ("cmfrec", {"k": 40, "reg": 12.0, "passes": 10}),
        ("spark", {"k": 30, "reg": 0.12, "passes": 15}),
        ("lenskit", {"k": 50, "reg": 0.1, "passes": 20}),
        ("river", {"k": 10, "lr": 0.01, "reg": 0.02, "passes": 5}),
        ("river", {"k": 10, "lr": 0.025, "reg": 0.02, "passes": 1}),
    ],
    "ml-1m": [],
    "generated": [
        ("cornac", {"k": 10, "lr": 0.01, "reg": 0.02, "passes": 10}),
        ("cornac", {"k": 10, "lr": 0.01, "reg": 0.02, "passes": 30}),
        ("libmf", {"k": 10, "reg": 0.05, "lr": 0.1, "passes": 20}),
        ("cmfrec", {"k": 10, "reg": 10.0, "passes": 10}),
        ("spark", {"k": 10, "reg": 0.05, "passes": 10}),
    ],
}

NOT_RUN: dict[str, dict[str, str]] = {}

# What peers.py --tune tries: every combination.
GRIDS: dict[str, dict[str, list]] = {
    "cornac": {"k": [50, 100], "lr": [0.01], "reg": [0.04, 0.06], "passes": [50, 100]},
    "libmf": {"k": [40, 80], "reg": [0.04, 0.06, 0.08], "lr": [0.05], "passes": [20, 40]},
    "cmfrec": {"k": [40], "reg": [12.0, 20.0], "passes": [10]},
    "lenskit": {"k": [25, 50], "reg": [0.05, 0.1, 0.2], "passes": [20]},
    "river": {"k": [10], "lr": [0.01, 0.025], "reg": [0.0, 0.02, 0.05], "passes": [1, 5]},
    "spark": {"k": [30, 60], "reg": [0.05, 0.08], "passes": [15]},
    "myfm": {"k": [8, 16], "passes": [300]},
    "surprise": {"k": [100], "reg": [0.04, 0.06], "passes": [40]},
    "softimpute": {"shrinkage": [24.0, 36.0], "damping": [4.0], "passes": [50], "max_rank": [60]},
    "biases": {"damping": [2.0, 4.0, 8.0], "passes": [10]},
}
