"""Rates of O-FW, O-AW and stochastic projected gradient on the paper's synthetic LASSO.

    python benchmarks/lasso_rates.py [--write]

Mean over seeds 0 to 11 of h_t, log-log slope at log-spaced rounds between 500 and 5000.
``--write`` replaces benchmarks/lasso_rates.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from table import write_table
from threadpoolctl import threadpool_limits

from onlinefw import theory
from onlinefw.datasets import make_lasso
from onlinefw.experiments.online_lasso import LEARNERS, minimum_excess, run_online_lasso

SEEDS, T = range(12), 5000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace benchmarks/lasso_rates.md")
    options = parser.parse_args()
    lines = [
        f"80 x 300, 10% sparse, noise of standard deviation 10, T = {T:,}, mean over seeds 0 to "
        f"11, slopes fitted between rounds 500 and {T:,}. h and the certificate are in the "
        "paper's units (summed over the 80 rows).",
        "",
        "| radius / true norm | learner | slope of h_t (95%) | final h | certificate | nonzeros |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for factor in (1.1, 0.15):
        problems = [make_lasso(seed=seed) for seed in SEEDS]
        radii = [factor * np.abs(problem.theta).sum() for problem in problems]
        minima = [minimum_excess(p, r) for p, r in zip(problems, radii, strict=True)]
        for label, learner_class in LEARNERS.items():
            curves = [
                run_online_lasso(p, r, T, learner_class, minimum=minimum)
                for p, r, minimum in zip(problems, radii, minima, strict=True)
            ]
            t, h = curves[0].t, np.mean([curve.h for curve in curves], axis=0)
            rate = theory.fit_rate(t[t >= 500], h[t >= 500])

            def mean(name, curves=curves):
                return np.mean([getattr(curve, name) for curve in curves])

            lines.append(
                f"| {factor} | {label} | {rate.slope:.2f} ({rate.low:.2f} to {rate.high:.2f}) | "
                f"{mean('final_h'):.3g} | {mean('final_certificate'):.3g} | "
                f"{mean('nonzeros'):.0f} |"
            )
            print(lines[-1], flush=True)
    if options.write:
        title = "Rates on the paper's synthetic LASSO"
        write_table(Path(__file__).with_suffix(".md"), title, lines)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
