"""Times of work on a device."""

import numpy as np


def milliseconds(work, repeats=50):
    """Return the median time of some work on the device, after a few times that do not count."""
    import cupy

    for _ in range(5):
        work()
    times = []
    for _ in range(repeats):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        work()
        last.record()
        last.synchronize()
        times.append(cupy.cuda.get_elapsed_time(first, last))
    return float(np.median(times))
