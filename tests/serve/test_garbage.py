"""What is there from the start is left out of collections of garbage, until it is let go."""

from __future__ import annotations

import gc
import weakref

import pytest

from onlinefw.serve.garbage import keep_for_good, let_go


class Cycle:
    def __init__(self):
        self.itself = self


@pytest.fixture
def _thawed():
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_thawed")
def test_what_was_kept_for_good_is_freed_when_it_is_let_go():
    old = Cycle()
    keep_for_good()
    still_there, used = weakref.ref(old), Cycle()
    del old
    gc.collect()
    assert still_there() is not None
    let_go()
    assert still_there() is None and used.itself is used
    assert gc.get_freeze_count() > 0


def test_nothing_is_kept_where_nothing_was():
    let_go()
    assert gc.get_freeze_count() == 0
