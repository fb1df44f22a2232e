"""Numba loops only: no decisions, no state. The one place where speed excuses length."""
