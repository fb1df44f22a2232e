"""Pages that are made when the site is built: the command reference and the benchmarks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
GENERATED = DOCS / "generated"

#: Where the pages of the repository point to, and where the same thing is on the site.
PLACES = {
    "](../benchmarks/": "](/generated/benchmarks/",
    "](../CONTRIBUTING.md)": "](/contributing.md)",
}


def write_generated_pages() -> None:
    """Write everything below ``generated``; a file that is right already keeps its date."""
    write(GENERATED / "commands.md", command_reference())
    for table in (ROOT / "benchmarks").rglob("*.md"):
        place = GENERATED / "benchmarks" / table.relative_to(ROOT / "benchmarks")
        write(place, table.read_text(encoding="utf-8"))


def write(path: Path, text: str) -> None:
    """Write a file unless it says so already, so that Sphinx reads only what changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def command_reference() -> str:
    """Return the commands of ``ofw`` as Markdown, from the application itself."""
    import typer
    from typer.cli import get_docs_for_click

    from onlinefw.cli.app import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="ofw")
    # The page has a title of its own, and begins with what the commands are.
    commands = re.search(r"^## .*", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^(Examples?: )(.*)$", _as_code, commands[0] if commands else "", flags=re.M)


def _as_code(example: re.Match[str]) -> str:
    return example[1] + "; ".join(f"`{command}`" for command in example[2].split("; "))


def link_inside_the_site(app: Any, page: str, source: list[str]) -> None:
    """Let links that leave the folder of the pages stay on the site."""
    for outside, inside in PLACES.items():
        source[0] = source[0].replace(outside, inside)
