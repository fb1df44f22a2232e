"""Make tables, one after another, and say how long each took.

    ONLINEFW_DATA=folder python benchmarks/make.py core.py "matrix/accuracy.py time" ...

Each is a script below benchmarks/ and its options; ``--write`` is added. One that fails is named at
the end, and the others go on.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).parent


def main():
    failed = []
    for words in sys.argv[1:]:
        script, *options = shlex.split(words)
        started = perf_counter()
        command = [sys.executable, str(HERE / script), *options, "--write"]
        done = subprocess.run(command, check=False)
        print(f"# {words}: {perf_counter() - started:.0f} s", flush=True)
        failed += [words] if done.returncode else []
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
