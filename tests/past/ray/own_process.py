"""Scripts that start and stop a Ray of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def run(script, **environment):
    """Run a script in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
