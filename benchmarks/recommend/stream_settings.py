"""Settings of the recommenders that stream.py compares, and the grids they were chosen from."""

from __future__ import annotations

#: Our own lines, by name.
OURS: dict[str, dict] = {"the default": {}}

#: The peers, with what was best on the validation part (stream.py --tune; grids were extended
#: where the best was at an edge).
PEERS: dict[str, dict] = {
    "popularity": {},
    "popularity that fades": {"half_life": 4000},
    "item-item cosine": {"shrinkage": 3.0},
    "river BiasedMF": {"k": 10, "rate": 0.02, "l2": 0.02, "negatives": 2, "passes": 1},
    "river FunkMF": {"k": 40, "rate": 0.1, "l2": 0.02, "negatives": 2, "passes": 5},
    "FluRS MF": {"k": 10, "learn_rate": 0.1, "l2_reg": 0.1, "passes": 1},
    "FluRS BPRMF": {"k": 10, "learn_rate": 0.1, "l2_reg": 0.0, "passes": 10},
    "implicit ALS": {
        "factors": 64,
        "regularization": 30.0,
        "alpha": 10.0,
        "iterations": 15,
        "refit": 1000,
    },
}

#: The peers as their packages set them; river learns no clicks that did not happen.
_RIVER_DEFAULTS = {"k": 10, "rate": 0.01, "l2": 0.0, "negatives": 0, "passes": 1}
_FLURS_DEFAULTS = {"k": 40, "learn_rate": 0.003, "l2_reg": 0.01, "passes": 1}
DEFAULTS: dict[str, dict] = {
    "river BiasedMF": _RIVER_DEFAULTS,
    "river FunkMF": _RIVER_DEFAULTS,
    "FluRS MF": _FLURS_DEFAULTS,
    "FluRS BPRMF": _FLURS_DEFAULTS,
    "implicit ALS": {
        "factors": 100,
        "regularization": 0.01,
        "alpha": 1.0,
        "iterations": 15,
        "refit": 1000,
    },
}

#: What --tune tries: one stage after another, each with every combination of what it names, the
#: rest as the stages before it found best.
_RIVER = [
    {"rate": [0.02, 0.05, 0.1], "negatives": [0, 2, 8]},
    {"passes": [1, 5]},
    {"k": [5, 10, 40], "l2": [0.0, 0.02]},
    {"rate": [0.005, 0.01, 0.2], "l2": [0.02, 0.05, 0.1]},
]
_FLURS = [
    {"learn_rate": [0.003, 0.03, 0.1], "passes": [1, 10]},
    {"k": [10, 100], "l2_reg": [0.0, 0.01, 0.1]},
    {"learn_rate": [0.1, 0.2], "passes": [1, 3, 30]},
]
GRIDS: dict[str, list[dict[str, list]]] = {
    "popularity that fades": [{"half_life": [250, 500, 1000, 2000, 4000, 8000]}],
    "item-item cosine": [{"shrinkage": [0.0, 1.0, 3.0, 10.0, 30.0, 100.0]}],
    "river BiasedMF": _RIVER,
    "river FunkMF": _RIVER,
    "FluRS MF": _FLURS,
    "FluRS BPRMF": _FLURS,
    "implicit ALS": [
        {"regularization": [0.3, 3.0, 10.0, 30.0], "alpha": [1.0, 3.0, 10.0, 30.0]},
        {"factors": [8, 16, 32, 64]},
        {"regularization": [30.0, 60.0, 100.0], "alpha": [10.0, 20.0, 40.0]},
    ],
}
