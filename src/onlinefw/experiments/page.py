"""One page with the figures and the verdicts, which opens from disk: no server, no network."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from .._version import __version__
from .figures import FIGURES
from .results import Claim, Results
from .runner import Skipped

__all__ = ["page", "verdict_count"]


def verdict_count(claims: Sequence[Claim]) -> str:
    """Say how many claims hold."""
    return f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold"


def page(
    figures: Mapping[str, Results],
    pictures: Mapping[str, Path],
    *,
    quick: bool,
    skipped: Sequence[Skipped] = (),
    about: str = "",
) -> str:
    """Return the page as HTML, with the pictures inside.

    Parameters
    ----------
    figures : mapping of str to Results
        By the name of the figure, in order.
    pictures : mapping of str to Path
        The PNG of each figure; the PDF and the results.json are expected beside it.
    quick : bool
        Whether the sizes were reduced.
    skipped : sequence of Skipped
        What could not be run.
    about : str
        On what machine, for how long.
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
    return _SHELL.replace("{{body}}", "\n".join(body))


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
    """Show how many claims hold in each figure, and all that do not."""
    rows = [
        f'<tr><td><a href="#{name}">{_heading(name)}</a></td><td>{escape(results.dataset)}</td>'
        f"<td>{verdict_count(results.claims)}</td><td>{results.seconds:,.0f} s</td></tr>"
        for name, results in figures.items()
    ]
    failed = [claim for results in figures.values() for claim in results.claims if not claim.holds]
    return [
        '<div class="wide"><table><thead><tr><th>figure</th><th>data</th><th>verdicts</th>'
        "<th>runs</th></tr></thead><tbody>",
        *rows,
        "</tbody></table></div>",
        *(["<h3>What does not hold</h3>", *_claims(failed)] if failed else []),
    ]


def _claims(claims: Sequence[Claim]) -> list[str]:
    rows = []
    for claim in claims:
        kind, words = ("holds", "&#10003; holds") if claim.holds else ("fails", "&#10007; does not")
        rows.append(
            f'<tr><td><span class="{kind}">{words}</span></td><td>{escape(claim.statement)}'
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
    image = base64.b64encode(picture.read_bytes()).decode("ascii")
    folder = picture.parent.name
    return [
        f'<section id="{name}"><h2>{_heading(name)}</h2>',
        f'<figure><img alt="{_heading(name)}" src="data:image/png;base64,{image}"></figure>',
        f'<p class="files">{results.seconds:,.0f} s of runs. '
        f'<a href="{folder}/figure.pdf">PDF</a> <a href="{folder}/figure.png">PNG</a> '
        f'<a href="{folder}/results.json">results.json</a></p>',
        *_absent(name, results),
        *_claims(results.claims),
        *_extra(results.extra),
        f"<details><summary>Settings</summary><dl>{_settings(results.settings)}</dl></details>",
        "</section>",
    ]


def _absent(name: str, results: Results) -> list[str]:
    """Say which of the paper's data sets were not at hand."""
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
            lines += [f"<details><summary>{escape(name)}</summary>", *_table(value), "</details>"]
        elif value is not None:
            single[key] = value
    if single:
        lines.append(f"<p>{escape(title)}</p><dl>{_settings(single)}</dl>")
    return lines


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = [
        f"<tr>{''.join(f'<td>{_cell(row.get(name, str()))}</td>' for name in names)}</tr>"
        for row in rows
    ]
    return [
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>',
        *body,
        "</tbody></table></div>",
    ]


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(_cell(item) for item in value)
    return f"{value:.3g}" if isinstance(value, float) else escape(str(value))


def _settings(settings: Mapping[str, Any]) -> str:
    items = []
    for name, value in settings.items():
        shown = f"<dl>{_settings(value)}</dl>" if isinstance(value, Mapping) else _cell(value)
        items.append(f"<dt>{escape(name)}</dt><dd>{shown}</dd>")
    return "".join(items)


_SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Online Frank-Wolfe: the paper, reproduced</title>
<style>
:root { --ink: #1d2430; --soft: #5b6675; --line: #dfe4ea; --page: #f6f7f9; --card: #ffffff;
  --good: #1b7f4d; --bad: #b3372f; --blue: #1f5fa8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b4; --line: #323a46;
  --page: #161a20; --card: #1e242c; --good: #5cc790; --bad: #f0837b; --blue: #7db3ee; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
header, section { max-width: 1180px; margin: 0 auto 1.5rem; padding: 1.5rem 2rem; }
header { padding-top: 3rem; margin-bottom: 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.3rem; margin: 0 0 1rem; }
a { color: var(--blue); }
.wide { overflow-x: auto; margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem;
  border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 600; }
.claims td:nth-child(1) { white-space: nowrap; }
.claims td:nth-child(2) { min-width: 16rem; }
.claims td:nth-child(4), .claims td:nth-child(5) { min-width: 13rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .6rem; }
.holds { color: var(--good); font-weight: 600; }
.fails { color: var(--bad); font-weight: 600; }
.source { display: block; color: var(--soft); font-size: .8rem; }
figure { margin: 0; padding: .6rem; background: #fff; border-radius: 6px; }
img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.files { color: var(--soft); font-size: .88rem; }
.files a { margin-left: .8rem; }
.note { border-left: 4px solid var(--bad); }
details { font-size: .88rem; }
summary { cursor: pointer; color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .6rem 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
</style>
</head>
<body>
{{body}}
</body>
</html>
"""
