"""Rounds that fail at any line of the package."""

import linecache
import sys
from pathlib import Path

import onlinefw

PACKAGE = str(Path(onlinefw.__file__).parent)
#: What ends a round cannot fail half-way itself: these lines undo or refuse.
LEFT_OUT = ("_whole.py",)


def _only_steers(frame):
    """Whether nothing can fail in this line, and Python does not expect it to.

    It comes back to a ``with`` to end the block, and a ``try:`` does nothing.
    """
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return line.lstrip().startswith(("with ", "try:"))


def lines_of(act, fail_at=None, error=MemoryError):
    """Run a function; return how many lines of the package it ran, and what it raised.

    At line number ``fail_at`` an error is raised, as if there were no more memory.
    """
    lines = 0

    def local(frame, event, argument):
        nonlocal lines
        if event == "line" and not _only_steers(frame):
            lines += 1
            if lines == fail_at:
                raise error(f"at {frame.f_code.co_qualname}:{frame.f_lineno}")
        return local

    def trace(frame, event, argument):
        name = frame.f_code.co_filename
        ours = name.startswith(PACKAGE) and not name.endswith(LEFT_OUT)
        return local if ours else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except error as raised:
        return lines, raised
    finally:
        sys.settrace(before)
    return lines, None
