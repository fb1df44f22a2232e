"""A command on a terminal of 80 columns, and what its user sees."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from time import perf_counter

from .running import MAIN

WIDTH = 80


@dataclass
class Shown:
    """What appeared on a line, and when."""

    seconds: float
    text: str


def on_a_terminal(*args, **env):
    """Run a command as a process on a terminal; return its exit code and what it showed."""
    import pty

    ours, theirs = pty.openpty()
    plain = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR", "CI")}
    command = [sys.executable, "-c", MAIN, *map(str, args)]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**plain, "TERM": "xterm", "COLUMNS": str(WIDTH), **env},
    ) as process:
        os.close(theirs)
        shown, began = [], perf_counter()
        while piece := _read(ours):
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", piece.decode("utf-8", "replace"))
            for line in re.split(r"[\r\n]+", text):
                if line.strip():
                    shown.append(Shown(perf_counter() - began, line.rstrip()))
        os.close(ours)
    return process.returncode, shown


def _read(descriptor):
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other end is closed
        return b""
