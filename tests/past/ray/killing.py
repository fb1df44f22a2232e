"""Workers that are killed at random moments."""

import os
import signal

import numpy as np


def kill_before(shards, moments):
    """Kill a random worker just before the questions with these numbers."""
    rng = np.random.default_rng(0)
    ask, asked = shards.ask, iter(range(10**9))

    def wrapped(method, args):
        if next(asked) in moments:
            os.kill(shards.pids[rng.integers(shards.n)], signal.SIGKILL)
        return ask(method, args)

    shards.ask = wrapped
