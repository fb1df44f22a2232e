"""Numba loops only: no decisions, no state. Functions may be long here, for speed."""
