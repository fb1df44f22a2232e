"""Settings of the recommenders that offline.py compares, and the grids they were chosen from."""

from __future__ import annotations

#: Our own lines, by name.
OURS: dict[str, dict] = {
    "the default, `fit`": {},
    "the default, `learn`, one click after another": {"verb": "learn"},
}

#: The peers, with what was best on the validation part (offline.py --tune; grids were extended
#: where the best was at an edge; those of cornac and LightFM are small, since a fit takes long).
#: implicit's ALS has 15 iterations: 30 give 0.2204 instead of 0.2203 there, in twice the time.
PEERS: dict[str, dict] = {
    "popularity": {},
    "implicit-als": {"factors": 128, "regularization": 100.0, "alpha": 10.0, "iterations": 15},
    "implicit-cosine": {"K": 400},
    "implicit-bm25": {"K": 400, "K1": 30.0, "B": 0.2},
    "lenskit-als": {"embedding_size": 128, "regularization": 100.0, "weight": 10.0, "epochs": 15},
    "lenskit-knn": {"max_nbrs": 200, "save_nbrs": 500},
    "lenskit-ease": {"regularization": 1000.0},
    "cornac-bpr": {"k": 64, "learning_rate": 0.05, "lambda_reg": 0.01, "max_iter": 100},
    "lightfm-warp": {
        "no_components": 32,
        "learning_rate": 0.05,
        "item_alpha": 1e-5,
        "epochs": 20,
    },
}

#: The peers as their packages set them, where that is something else; LightFM takes one epoch.
DEFAULTS: dict[str, dict] = {
    "implicit-als": {"factors": 100, "regularization": 0.01, "alpha": 1.0, "iterations": 15},
    "implicit-cosine": {"K": 20},
    "implicit-bm25": {"K": 20, "K1": 1.2, "B": 0.75},
    "lenskit-als": {"embedding_size": 50, "regularization": 0.1, "weight": 40.0, "epochs": 10},
    "lenskit-ease": {"regularization": 1.0},
    "cornac-bpr": {"k": 10, "learning_rate": 0.001, "lambda_reg": 0.01, "max_iter": 100},
    "lightfm-warp": {"no_components": 10, "learning_rate": 0.05, "item_alpha": 0.0, "epochs": 1},
}

#: What --tune tries: one stage after another, each with every combination of what it names, the
#: rest as the stages before it found best.
GRIDS: dict[str, list[dict[str, list]]] = {
    "implicit-als": [
        {"regularization": [1.0, 10.0, 30.0, 100.0], "alpha": [1.0, 2.0, 5.0, 10.0]},
        {"factors": [32, 64, 128], "regularization": [10.0, 30.0, 60.0]},
        {"alpha": [2.0, 3.0, 5.0, 7.0], "iterations": [15, 30]},
        {"regularization": [100.0, 200.0, 400.0], "alpha": [10.0, 20.0, 40.0]},
        {"factors": [32, 128], "iterations": [15, 30]},
        {
            "regularization": [70.0, 85.0, 100.0, 120.0],
            "alpha": [7.0, 10.0, 13.0],
            "factors": [128],
        },
    ],
    "implicit-cosine": [{"K": [20, 50, 100, 200, 400]}],
    "implicit-bm25": [
        {"K": [50, 100, 200, 400], "B": [0.0, 0.2, 0.75]},
        {"K1": [0.3, 3.0, 10.0, 30.0, 100.0]},
    ],
    "lenskit-als": [
        {"regularization": [10.0, 100.0, 200.0], "weight": [5.0, 10.0, 20.0]},
        {"embedding_size": [32, 128]},
    ],
    "lenskit-knn": [{"max_nbrs": [10, 20, 50, 100, 200], "save_nbrs": [500]}],
    "lenskit-ease": [{"regularization": [100.0, 200.0, 300.0, 500.0, 1000.0, 2000.0]}],
    "cornac-bpr": [
        {"learning_rate": [0.01, 0.05], "lambda_reg": [0.001, 0.01]},
        {"k": [32, 128]},
        {"max_iter": [200]},
    ],
    "lightfm-warp": [
        {"learning_rate": [0.02, 0.05], "item_alpha": [0.0, 1e-5]},
        {"no_components": [32, 128]},
        {"epochs": [40]},
    ],
}
