"""An experiment that takes no time: h_t = seed-dependent constant / t, played by nobody."""

from contextlib import nullcontext

import numpy as np

from onlinefw.experiments.experiment import Experiment, Run
from onlinefw.experiments.results import Results, Series
from onlinefw.experiments.verdicts import no_slower_than

ROUNDS = np.arange(2, 50)


def silent(experiment, run):
    return nullcontext(lambda done: None)


def refuse(experiment, run):
    raise AssertionError(f"{run.name} is played again")


def stored(out, figure, dataset):
    """The results that an experiment has written."""
    (path,) = (out / figure / "runs").glob(f"*/{dataset}/part.json")
    return Results.read(path)


class Toy(Experiment):
    def __init__(self, figure="fig3", dataset="toy", quick=True, seeds=2, fail=False):
        self.figure, self.dataset, self.fail = figure, dataset, fail
        self.settings = {"quick": quick, "seeds": seeds, "radii": (0.5, 1.0)}
        self.played = []

    def runs(self):
        return [Run(f"O-FW, seed {k}", 50, self.player(k)) for k in range(self.settings["seeds"])]

    def player(self, seed):
        def play(advance):
            if self.fail and seed == 1:
                raise KeyboardInterrupt
            self.played.append(seed)
            advance(50)
            return {"t": ROUNDS, "h": np.float64(1 + seed) / ROUNDS}

        return play

    def curves(self, records):
        return [
            Series.of(name, "round", "h", record["t"], record["h"], panel="h", dataset=self.dataset)
            for name, record in records.items()
        ]

    def claims(self, records):
        return [
            no_slower_than(
                ROUNDS,
                [record["h"] for record in records.values()],
                lambda t: 1.0 / t,
                "1/t",
                id="toy-rate",
                statement="h falls like 1/t <at least>",
                dataset=self.dataset,
            )
        ]
