"""The name of this program, for messages that show a command to type."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

__all__ = ["as_called"]


def as_called() -> str:
    """Return ``ofw``, or its path as it was typed where the shell would not find it by name."""
    typed = sys.argv[0]
    if shutil.which("ofw") or Path(typed).stem != "ofw":
        return "ofw"
    return shlex.quote(typed)
