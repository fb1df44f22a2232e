"""Run the pages of this folder as printed, and the drawings: their pictures land in images/."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGES = sorted(DOCS.glob("*.md"))
DRAWINGS = sorted((DOCS / "drawings").glob("*.py"))  # each saves a picture of its own name
FROM_COMMANDS = re.compile(r"demo\.png|paper-\w+\.png")  # ofw demo, and make_results.py


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the code of a page in order, each with the output shown right below it."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", text, flags=re.DOTALL)


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
        for code, _ in blocks(page):
            exec(compile(code, page.name, "exec"), session)


if __name__ == "__main__":
    main()
