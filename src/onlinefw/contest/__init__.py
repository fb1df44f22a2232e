"""Models that learn side by side: each predicts before it learns, and the scores say who leads.

Scores of what compiled loops predict are in ``native/contest.hpp``.
"""

from .contest import Contest

__all__ = ["Contest"]
