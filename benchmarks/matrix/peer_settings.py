"""Settings of the systems that peers.py compares: ours, the peers', and the grids tried."""

from __future__ import annotations

# Our own lines, by name. Radii were chosen on validation rows (accuracy.py --validate); for the
# generated set the rank of the truth is known to all, and the radius is only a cap there.
_DEFAULT = {"radius": "auto", "passes": 1}
_RATINGS = {"offsets": "joint", "weighting": "smoothed", "step": "line-search"}
_SWEEPS = {"offsets": "biases", "step": "line-search", "corrective": "ridge"}
OURS: dict[str, dict[str, dict]] = {
    "ml-100k": {
        "the default": _DEFAULT,
        "Frank-Wolfe, radius 1,000, one pass": {"radius": 1000.0, "passes": 1, **_RATINGS},
        "Frank-Wolfe, radius 1,000, three passes": {"radius": 1000.0, "passes": 3, **_RATINGS},
    },
    "ml-1m": {
        "the default": _DEFAULT,
        "Frank-Wolfe, radius 5,000, one pass": {"radius": 5000.0, "passes": 1, **_RATINGS},
        "Frank-Wolfe, radius 5,000, three passes": {"radius": 5000.0, "passes": 3, **_RATINGS},
    },
    "generated": {
        "the default": _DEFAULT,
        "one pass, rank 10 (that of the truth) sweeps, radius 80,000": {
            "radius": 80_000.0, "passes": 1, "batch_size": 400_000, **_SWEEPS,
        },
        "Frank-Wolfe, radius 50,000, one pass of 1,600 rounds": {
            "radius": 50_000.0, "passes": 1, "batch_size": 10_000, **_RATINGS,
        },
    },
}  # fmt: skip

# How the settings of the peers were found, as the tables say it.
CHOSEN = {
    "ml-100k": "Settings are the best of those tried on validation rows, a tenth of the training "
    "part (seed 0); myFM with implicit features was not tuned;",
    "ml-1m": "Settings are the best of part of a grid on validation rows, walked by hand; at the "
    "edge of what was tried, so more may be had: SoftImpute, Spark, Surprise, and river in five "
    "passes; myFM was not tuned;",
    "generated": "Settings are the rank of the truth and plain others, but for LIBMF, which has no "
    "mean to start from, needs a larger rank and step, and was tuned;",
}
PEERS: dict[str, list[tuple[str, dict]]] = {
    "ml-100k": [
        ("biases", {"damping": 4.0, "passes": 10}),
        ("myfm", {"k": 8, "passes": 300}),
        ("myfm implicit", {"k": 10, "passes": 300}),
        ("cornac", {"k": 50, "lr": 0.01, "reg": 0.08, "passes": 50}),
        ("surprise", {"k": 100, "reg": 0.08, "passes": 60}),
        ("libmf", {"k": 40, "reg": 0.08, "lr": 0.05, "passes": 20}),
        ("softimpute", {"shrinkage": 16.0, "damping": 4.0, "passes": 100}),
        ("cmfrec", {"k": 40, "reg": 12.0, "passes": 10}),
        ("spark", {"k": 30, "reg": 0.12, "passes": 15}),
        ("lenskit", {"k": 50, "reg": 0.1, "passes": 20}),
        ("river", {"k": 20, "lr": 0.02, "reg": 0.1, "passes": 5}),
        ("river", {"k": 10, "lr": 0.025, "reg": 0.02, "passes": 1}),
    ],
    "ml-1m": [
        ("biases", {"damping": 4.0, "passes": 10}),
        ("myfm", {"k": 8, "passes": 200}),
        ("myfm implicit", {"k": 10, "passes": 300}),
        ("cornac", {"k": 100, "lr": 0.01, "reg": 0.06, "passes": 50}),
        ("surprise", {"k": 100, "reg": 0.06, "passes": 40}),
        ("libmf", {"k": 80, "reg": 0.06, "lr": 0.05, "passes": 20}),
        ("softimpute", {"shrinkage": 24.0, "damping": 4.0, "passes": 50, "max_rank": 60}),
        ("cmfrec", {"k": 40, "reg": 20.0, "passes": 10}),
        ("spark", {"k": 30, "reg": 0.08, "passes": 15}),
        ("lenskit", {"k": 50, "reg": 0.1, "passes": 20}),
        ("river", {"k": 20, "lr": 0.015, "reg": 0.05, "passes": 5}),
        ("river", {"k": 10, "lr": 0.01, "reg": 0.02, "passes": 1}),
    ],
    "generated": [
        ("cornac", {"k": 10, "lr": 0.01, "reg": 0.02, "passes": 10}),
        ("cornac", {"k": 10, "lr": 0.01, "reg": 0.02, "passes": 30}),
        ("libmf", {"k": 12, "reg": 0.03, "lr": 0.2, "passes": 10}),
        ("libmf", {"k": 12, "reg": 0.03, "lr": 0.2, "passes": 20}),
        ("cmfrec", {"k": 10, "reg": 10.0, "passes": 10}),
        ("spark", {"k": 10, "reg": 0.05, "passes": 10}),
    ],
}

# What a library does when told nothing else, or what its own tutorial says (myFM, river). LIBMF's
# are those of its program mf-train: the Python package has an l1 penalty of 0.04 by default.
DOCUMENTED: dict[str, dict] = {
    "myfm": {"k": 10, "passes": 200},
    "cornac": {"k": 10, "lr": 0.01, "reg": 0.02, "passes": 20},
    "surprise": {"k": 100, "reg": 0.02, "passes": 20},
    "libmf": {"k": 8, "reg": 0.1, "lr": 0.1, "passes": 20},
    "cmfrec": {"k": 40, "reg": 10.0, "passes": 10},
    "spark": {"k": 10, "reg": 0.1, "passes": 10},
    "lenskit": {"k": 50, "reg": 0.1, "passes": 10},
    "river": {"k": 10, "lr": 0.025, "factor_lr": 0.05, "reg": 0.0, "passes": 1},
}

# Why a peer has no line; times are its time on the smaller sets, scaled by the number of ratings.
NOT_RUN: dict[str, dict[str, str]] = {
    "generated": {
        "softimpute": "a dense matrix of 15 GB in single precision",
        "myfm": "about 15 minutes by its ml-100k rate",
        "surprise": "about 10 minutes by its ml-1m rate, ratings kept as Python lists",
        "river": "about 3 minutes a pass by its ml-1m rate, and several passes needed",
        "lenskit": "about 2 minutes by its ml-1m rate",
    },
}

# What peers.py --tune tries: every combination.
GRIDS: dict[str, dict[str, list]] = {
    "cornac": {"k": [50, 100], "lr": [0.01], "reg": [0.04, 0.06, 0.08], "passes": [30, 50, 80]},
    "libmf": {"k": [40, 80], "reg": [0.04, 0.06, 0.08], "lr": [0.05], "passes": [20, 40]},
    "cmfrec": {"k": [40], "reg": [12.0, 20.0, 30.0], "passes": [10]},
    "lenskit": {"k": [25, 50], "reg": [0.05, 0.1, 0.2], "passes": [20]},
    "river": {
        "k": [10, 20],
        "lr": [0.01, 0.015, 0.025],
        "reg": [0.02, 0.05, 0.1],
        "passes": [1, 5],
    },
    "spark": {"k": [30, 60], "reg": [0.05, 0.08, 0.12], "passes": [15]},
    "myfm": {"k": [8, 16], "passes": [200]},
    "surprise": {"k": [100], "reg": [0.04, 0.06, 0.08], "passes": [40]},
    "softimpute": {
        "shrinkage": [16.0, 24.0, 36.0],
        "damping": [4.0],
        "passes": [50],
        "max_rank": [60],
    },
    "biases": {"damping": [2.0, 4.0, 8.0], "passes": [10]},
}
