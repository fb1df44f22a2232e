"""Forged files at every door: refused in one line or right; no crash, hang or flood of memory."""

import pytest

from .fuzz import SECONDS, run
from .targets import TARGETS

#: ``python -m tests.hostile.fuzz`` plays as many as one likes; fuzz.md has the last long run.
INPUTS = 3000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_forged_files_are_refused_in_one_line_or_right():
    counts, failures, slowest = run(list(TARGETS), INPUTS)
    assert not failures, "\n".join(failures)
    assert slowest < SECONDS
    outcomes = {what for _, what in counts}
    assert "refused" in outcomes and "used" in outcomes
    assert "refused_in_several_lines" not in outcomes
    assert counts.total() >= INPUTS
