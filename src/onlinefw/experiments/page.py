"""One page with the figures and the verdicts, which opens from disk: no server, no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from .._html import definitions, html_page, png, table
from .._version import __version__
from .figures import FIGURES
from .results import UNDECIDED, UNINFORMATIVE, Claim, Results
from .runner import Skipped

__all__ = ["page", "verdict_count"]


#: How verdicts are written.
WORDS = {
    "holds": "&#10003; holds",
    "fails": "&#10007; does not",
    UNDECIDED: "? undecided",
    UNINFORMATIVE: "&#8211; says nothing",
}


def verdict_count(claims: Sequence[Claim]) -> str:
    """Say how many claims hold, of those that could have failed."""
    number = Counter(claim.verdict for claim in claims)
    counted = len(claims) - number[UNINFORMATIVE]
    text = f"{number['holds']} of {counted} claims hold"
    if number[UNDECIDED]:
        text += f", {number[UNDECIDED]} undecided"
    if number[UNINFORMATIVE]:
        text += f" ({number[UNINFORMATIVE]} more cannot fail and are not counted)"
    return text


def page(
    figures: Mapping[str, Results],
    pictures: Mapping[str, Path],
    *,
    quick: bool,
    skipped: Sequence[Skipped] = (),
    about: str = "",
) -> str:
    """Return the page as HTML, with the pictures inside.

    ``pictures`` are the PNG of each figure; the PDF and the results.json are expected beside it.
    ``about`` says on what machine the runs were played, and for how long.
    """
    claims = [claim for results in figures.values() for claim in results.claims]
    size = (
        "A <strong>quick</strong> run: the same experiments at reduced sizes, so verdicts may "
        "differ from those of a full run."
        if quick
        else "A full run."
    )
    body = [
        "<header><h1>Online Frank-Wolfe: the paper, reproduced</h1>",
        "<p>Lafond, Wai and Moulines, <em>On the Online Frank-Wolfe Algorithms for Convex and "
        f"Non-convex Optimizations</em>, with onlinefw {escape(__version__)}. {size} "
        f"{escape(about)}</p></header>",
        f'<section id="summary"><h2>{verdict_count(claims)}</h2>',
        *_summary(figures),
        "</section>",
        *_skipped(skipped),
    ]
    for name, results in figures.items():
        body += _figure(name, results, pictures[name])
    return html_page("Online Frank-Wolfe: the paper, reproduced", body, STYLE)


def _heading(name: str) -> str:
    kind = {"f": "Figure", "t": "Table"}[name[0]]
    return f"{kind} {name[-1]}: {escape(FIGURES[name].title)}"


def _skipped(skipped: Sequence[Skipped]) -> list[str]:
    if not skipped:
        return []
    items = [
        f"<li><strong>{escape(item.figure)}, {escape(item.dataset)}</strong>: "
        f"{escape(item.why)}</li>"
        for item in skipped
    ]
    return ['<section class="note"><h2>Not run</h2><ul>', *items, "</ul></section>"]


def _summary(figures: Mapping[str, Results]) -> list[str]:
    """Show how many claims hold in each figure, and all that do not or are not counted."""
    rows = [
        f'<tr><td><a href="#{name}">{_heading(name)}</a></td><td>{escape(results.dataset)}</td>'
        f"<td>{verdict_count(results.claims)}</td><td>{results.seconds:,.0f} s</td></tr>"
        for name, results in figures.items()
    ]
    by_verdict: dict[str, list[Claim]] = {verdict: [] for verdict in WORDS}
    for results in figures.values():
        for claim in results.claims:
            by_verdict[claim.verdict].append(claim)
    titles = {
        "fails": "What does not hold",
        UNDECIDED: "What is undecided: the intervals are too wide to say",
        UNINFORMATIVE: "What is not counted: no feasible theta could be above these bounds",
    }
    return [
        '<div class="wide"><table><thead><tr><th>figure</th><th>data</th><th>verdicts</th>'
        "<th>runs</th></tr></thead><tbody>",
        *rows,
        "</tbody></table></div>",
        *(
            line
            for verdict, title in titles.items()
            if by_verdict[verdict]
            for line in (f"<h3>{title}</h3>", *_claims(by_verdict[verdict]))
        ),
    ]


def _claims(claims: Sequence[Claim]) -> list[str]:
    rows = []
    for claim in claims:
        rows.append(
            f'<tr><td><span class="{claim.verdict}">{WORDS[claim.verdict]}</span></td>'
            f"<td>{escape(claim.statement)}"
            f'<span class="source">{escape(claim.source)}</span></td>'
            f"<td>{escape(claim.dataset)}</td>"
            f"<td>{escape(claim.predicted)}</td><td>{escape(claim.measured)}</td></tr>"
        )
    return [
        '<div class="wide"><table class="claims"><thead><tr><th>verdict</th><th>claim</th>'
        "<th>data</th><th>criterion</th><th>measured</th></tr></thead><tbody>",
        *rows,
        "</tbody></table></div>",
    ]


def _figure(name: str, results: Results, picture: Path) -> list[str]:
    folder = picture.parent.name
    return [
        f'<section id="{name}"><h2>{_heading(name)}</h2>',
        png(picture.read_bytes(), f"{name}: {FIGURES[name].title}"),
        f'<p class="files">{results.seconds:,.0f} s of runs. '
        f'<a href="{folder}/figure.pdf">PDF</a> <a href="{folder}/figure.png">PNG</a> '
        f'<a href="{folder}/results.json">results.json</a></p>',
        *_absent(name, results),
        *_claims(results.claims),
        *_extra(results.extra),
        f"<details><summary>Settings</summary>{definitions(results.settings)}</details>",
        "</section>",
    ]


def _absent(name: str, results: Results) -> list[str]:
    """Say which of the paper's data sets were not available."""
    played = results.dataset.split(", ")
    absent = [dataset for dataset in FIGURES[name].of_the_paper if dataset not in played]
    if not absent:
        return []
    return [f"<p>The paper also has {escape(', '.join(absent))}; not played here.</p>"]


def _extra(extra: Mapping[str, Any], title: str = "") -> list[str]:
    """Show tables (lists of like dicts) and single numbers; pictures are in the figure already."""
    lines, single = [], {}
    for key, value in extra.items():
        name = f"{title}, {key}" if title else key
        if isinstance(value, Mapping):
            lines += _extra(value, name)
        elif key == "images":
            continue
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"<details><summary>{escape(name)}</summary>", *table(value), "</details>"]
        elif value is not None:
            single[key] = value
    if single:
        lines.append(f"<p>{escape(title)}</p>{definitions(single)}")
    return lines


STYLE = """
.claims td:nth-child(1) { white-space: nowrap; }
.claims td:nth-child(2) { min-width: 16rem; }
.claims td:nth-child(4), .claims td:nth-child(5) { min-width: 13rem; }
.holds { color: var(--good); font-weight: 600; }
.fails { color: var(--bad); font-weight: 600; }
.undecided, .uninformative { color: var(--soft); font-weight: 600; }
.source { display: block; color: var(--soft); font-size: .8rem; }
"""
