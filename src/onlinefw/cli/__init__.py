"""The command line, ``ofw``."""

from __future__ import annotations

import atexit
import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say in one line what to install for it."""
    # Otherwise Python looks through all objects for cycles when the work is done.
    atexit.register(gc.freeze)
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "onlinefw":
            raise
        print(f"ofw needs {error.name}: pip install 'onlinefw[cli]'", file=sys.stderr)
        raise SystemExit(1) from None
    app(prog_name="ofw")
