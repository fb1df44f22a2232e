"""Numba loops only: no decisions, no state. Functions may be long here, for speed.

Who may be needed without numba imports a module of this package when it calls a loop.
"""

#: How many vectors are multiplied in one read of a matrix.
LANES = 8
#: Values of F that differ by less, relatively, are the same.
ROUNDING = 1e-13
