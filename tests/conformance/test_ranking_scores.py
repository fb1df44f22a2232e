"""Recall, NDCG, hit rate and MRR are those of ranx (see make_ranking_facts.py)."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from onlinefw.evaluate import ranking_scores

FACTS = json.loads(Path(__file__).with_name("ranking_facts.json").read_text())["cases"]


@pytest.mark.parametrize("k", range(len(FACTS)))
def test_scores_are_those_of_ranx(k):
    case = FACTS[k]
    found = ranking_scores(case["recommended"], case["relevant"], case["n"])
    assert found["users"] == len(case["relevant"])
    for name, value in case["scores"].items():
        assert found[name] == pytest.approx(value, rel=1e-12), name


def test_ndcg_of_whole_lists_is_that_of_scikit_learn(rng):
    items, n = np.arange(15), 15
    relevant = [rng.choice(items, 4, replace=False) for _ in range(20)]
    shown = [rng.permutation(items) for _ in range(20)]
    truth = np.array([np.isin(items, one) for one in relevant], float)
    scores = np.array([np.argsort(np.argsort(-np.argsort(one))) for one in shown], float)
    lists = [one.tolist() for one in shown], [one.tolist() for one in relevant]
    assert ranking_scores(*lists, n)["ndcg"] == pytest.approx(ndcg_score(truth, scores, k=n))
