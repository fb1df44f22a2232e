"""Run the pages of this folder as printed, and the drawings: their pictures land in images/."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGES = sorted(DOCS.glob("*.md"))
DRAWINGS = sorted((DOCS / "drawings").glob("*.py"))  # each saves a picture of its own name
FROM_COMMANDS = re.compile(r"report\.png|paper-\w+\.png")  # ofw demo, and make_results.py


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Return the code of a page in order: its language, itself, the output shown right below.

    Of commands those of ``ofw`` itself; the others install things.
    """
    text = page.read_text(encoding="utf-8")
    pattern = r"```(python|sh)\n(.*?)```(?:\n+```text\n(.*?)```)?"
    found = re.findall(pattern, text, flags=re.DOTALL)
    return [
        block for block in found if block[0] == "python" or re.search("^(ofw|.*\\| ofw) ", block[1])
    ]


def run(language: str, code: str, session: dict[str, object]) -> None:
    """Run a block as printed."""
    if language == "python":
        exec(compile(code, "page", "exec"), session)
    else:
        here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-ec", code], env={**os.environ, "PATH": here}, capture_output=True, text=True
        )
        print(done.stdout, end="")
        if done.returncode:
            raise RuntimeError(f"{code}: {done.stderr}")


def main() -> None:
    """Draw every picture again."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["savefig.dpi"] = 80
    (DOCS / "images").mkdir(exist_ok=True)
    os.chdir(DOCS / "images")
    for drawing in DRAWINGS:
        runpy.run_path(str(drawing))
    for page in PAGES:
        session: dict[str, object] = {}  # the blocks of a page are one session
        for language, code, _ in blocks(page):
            run(language, code, session)


if __name__ == "__main__":
    main()
