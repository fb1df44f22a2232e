"""Write results.md again from a folder that ``ofw reproduce`` made.

    ofw reproduce --out paper
    python docs/make_results.py paper

The text above the marker in results.md is written by hand and kept. A figure that is not in the
folder is named as one that was not played.
"""

from __future__ import annotations

import sys
from pathlib import Path

from onlinefw.experiments.figures import FIGURES
from onlinefw.experiments.page import verdict_count
from onlinefw.experiments.results import Results

DOCS = Path(__file__).resolve().parent
#: How verdicts are written on the page.
VERDICTS = {
    "holds": "holds",
    "fails": "**does not hold**",
    "undecided": "*undecided*",
    "uninformative": "cannot fail: not counted",
}
MARKER = "<!-- made by make_results.py from here on -->"


def cell(value: object) -> str:
    """Return a value as the cell of a table."""
    if isinstance(value, list):
        return " to ".join(cell(item) for item in value)
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|")


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return a table with a column for every key."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [
        f"| {' | '.join(name.replace('_', ' ') for name in names)} |",
        f"| {' | '.join('---' for _ in names)} |",
    ]
    return lines + [f"| {' | '.join(cell(row.get(name, '')) for name in names)} |" for row in rows]


def tables(extra: dict[str, object], title: str = "") -> list[str]:
    """Return the tables that a figure has besides its curves (all constants are on the page)."""
    lines: list[str] = []
    for key, value in extra.items():
        name = f"{title}, {key}" if title else key
        if isinstance(value, dict) and key != "constants":
            lines += tables(value, name)
        elif key != "images" and isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{name}:", "", *table(value), ""]
        elif key == "in words":
            lines += [str(value), ""]
    return lines


def section(name: str, results: Results, folder: Path) -> list[str]:
    """Return the part of the page about one figure, and copy its picture."""
    picture = DOCS / "images" / f"paper-{name}.png"
    picture.write_bytes((folder / name / "figure.png").read_bytes())
    title = FIGURES[name].title
    claims = [
        {
            "verdict": VERDICTS[claim.verdict],
            "claim": claim.statement,
            "paper": claim.source,
            "data": claim.dataset,
            "criterion": claim.predicted,
            "measured": claim.measured,
        }
        for claim in results.claims
    ]
    return [
        f"## {name}: {title}",
        "",
        f"![{title}](images/{picture.name})",
        "",
        f"{verdict_count(results.claims)}; {results.seconds:,.0f} s of runs.",
        "",
        *table(claims),
        "",
        *tables(results.extra),
    ]


def main() -> None:
    """Write the page."""
    folder = Path(sys.argv[1])
    made = {name: folder / name / "results.json" for name in FIGURES}
    figures = {name: Results.read(path) for name, path in made.items() if path.exists()}
    claims = [claim for results in figures.values() for claim in results.claims]
    page = DOCS / "results.md"
    by_hand = page.read_text(encoding="utf-8").split(MARKER)[0].rstrip() if page.exists() else ""
    seconds = sum(results.seconds for results in figures.values())
    lines = [
        by_hand,
        "",
        MARKER,
        "",
        f"**{verdict_count(claims)}** (`ofw reproduce`, {seconds / 60:.0f} minutes of runs).",
        "",
    ]
    for name, figure in FIGURES.items():
        if name in figures:
            lines += section(name, figures[name], folder)
        else:
            lines += [f"## {name}: {figure.title}", "", "Not played in this run.", ""]
    page.write_text("\n".join(lines).strip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
