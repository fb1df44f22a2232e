"""Writes ranking_facts.json: what ranx says about some ranked lists.

pip install ranx==0.3.21 && python tests/conformance/make_ranking_facts.py
"""

import json
import random
from pathlib import Path

import ranx

random.seed(0)
CASES = []
for n in (1, 3, 10):
    for relevant in (1, 4, 15):
        items = [f"i{k}" for k in range(40)]
        wanted = [random.sample(items, relevant) for _ in range(25)]
        shown = [random.sample(items, 12) for _ in range(25)]
        qrels = ranx.Qrels({f"u{k}": dict.fromkeys(one, 1) for k, one in enumerate(wanted)})
        run = ranx.Run(
            {f"u{k}": {item: 12.0 - j for j, item in enumerate(one)} for k, one in enumerate(shown)}
        )
        names = {"recall": "recall", "ndcg": "ndcg", "hit_rate": "hit_rate", "mrr": "mrr"}
        found = ranx.evaluate(qrels, run, [f"{name}@{n}" for name in names.values()])
        scores = {name: float(found[f"{theirs}@{n}"]) for name, theirs in names.items()}
        CASES.append({"n": n, "recommended": shown, "relevant": wanted, "scores": scores})

facts = {"source": "ranx 0.3.21"}
target = Path(__file__).with_name("ranking_facts.json")
target.write_text(json.dumps({**facts, "cases": CASES}) + "\n")
