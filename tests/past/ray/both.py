"""The same past in one process and with workers: every answer is compared."""

import numpy as np


class Both:
    """A past here and one with workers; a verb is asked of both, and their answers are close."""

    tolerance = 1e-9

    def __init__(self, here, spread):
        self.pasts = [here, spread]

    @property
    def here(self):
        return self.pasts[0]

    @property
    def spread(self):
        return self.pasts[1]

    def __getattr__(self, verb):
        def both(*args):
            here, spread = (self.in_order(verb, getattr(past, verb)(*args)) for past in self.pasts)
            assert_close(spread, here, self.tolerance)
            return spread

        return both

    def in_order(self, verb, answer):
        """Return an answer in an order that does not depend on the number of workers."""
        return answer


def assert_close(found, expected, tol):
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, tol)
    elif expected is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)
