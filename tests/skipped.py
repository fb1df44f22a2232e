"""One line that says which tests were skipped, and what to do so that they run."""

import re
from collections import Counter
from typing import NamedTuple


class Kind(NamedTuple):
    """Tests that need the same thing."""

    needs: str
    how: str
    #: Of the reasons for which they are skipped.
    words: str


KINDS = (
    Kind("an NVIDIA GPU", "on a machine with one: pytest -m gpu -n 0", r"GPU|CUDA|CuPy|cupy"),
    Kind(
        "real data", "ofw data fetch, then ONLINEFW_DATA=FOLDER pytest", "ONLINEFW_DATA|data folder"
    ),
    Kind("Ray", "pip install '.[ray]'", r"\b[Rr]ay\b"),
    Kind("other packages", "pip install '.[test]'", r"could not import|is not installed"),
    Kind("another machine", "pytest -rs tells what they need", ""),
)


def skipped_line(reports):
    """Return how many were skipped by kind, and how each kind runs; None if all ran."""
    counts = Counter(kind_of(report) for report in reports)
    if not counts:
        return None
    said = [f"{counts[kind]:,} for {kind.needs} ({kind.how})" for kind in KINDS if counts[kind]]
    return f"{counts.total():,} skipped: {'; '.join(said)}"


def kind_of(report):
    """Return what a skipped test needs: by its marker, or by the reason that it gave."""
    if "gpu" in getattr(report, "keywords", ()):  # a whole file that is skipped has none
        return KINDS[0]
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return next(kind for kind in KINDS if re.search(kind.words, reason))
