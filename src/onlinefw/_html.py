"""What the pages that open from disk share: one style, light and dark, and small pieces of HTML."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["POLICY", "STYLE", "cell", "definitions", "html_page", "png", "table"]


#: Pictures and styles inside the page, and nothing else: no script runs, nothing is fetched.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def html_page(
    title: str, body: Iterable[str], style: str = "", *, script: str = "", policy: str = POLICY
) -> str:
    """Return a whole page, with a title that is escaped.

    The body is lines of HTML: a header, and sections that are shown as cards. ``style`` is CSS that
    this page alone needs. A ``script`` runs only if the ``policy`` lets it.

    Examples
    --------
    >>> from onlinefw._html import html_page
    >>> "<title>a &lt; b</title>" in html_page("a < b", ["<header><h1>Two</h1></header>"])
    True
    """
    content = "\n".join(body)
    icon = ""
    if script:
        content += f"\n<script>{script}</script>"
        icon = '\n<link rel="icon" href="data:,">'  # or browsers ask the server for one
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>{icon}
<style>{STYLE}{style}</style>
</head>
<body>
{content}
</body>
</html>
"""


def png(image: bytes, alt: str) -> str:
    """Return a picture that is inside the page."""
    data = base64.b64encode(image).decode("ascii")
    return f'<figure><img alt="{escape(alt)}" src="data:image/png;base64,{data}"></figure>'


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return dicts as the rows of a table; a value that a row does not have is left empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = [
        f"<tr>{''.join(f'<td>{cell(row.get(name, str()))}</td>' for name in names)}</tr>"
        for row in rows
    ]
    return [
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>',
        *body,
        "</tbody></table></div>",
    ]


def cell(value: Any) -> str:
    """Return a value as it is shown, escaped.

    Examples
    --------
    >>> from onlinefw._html import cell
    >>> cell(0.123456), cell([1, 2]), cell("<b>")
    ('0.123', '1 to 2', '&lt;b&gt;')
    """
    if isinstance(value, list):
        return " to ".join(cell(item) for item in value)
    return f"{value:.3g}" if isinstance(value, float) else escape(str(value))


def definitions(values: Mapping[str, Any]) -> str:
    """Return names with their values, nested as they are."""
    items = []
    for name, value in values.items():
        shown = definitions(value) if isinstance(value, Mapping) else cell(value)
        items.append(f"<dt>{escape(name)}</dt><dd>{shown}</dd>")
    return f"<dl>{''.join(items)}</dl>"


STYLE = """
:root { --ink: #1d2430; --soft: #5b6675; --line: #dfe4ea; --page: #f6f7f9; --card: #ffffff;
  --good: #1b7f4d; --bad: #b3372f; --blue: #1f5fa8; --red: #d1495b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b4; --line: #323a46;
  --page: #161a20; --card: #1e242c; --good: #5cc790; --bad: #f0837b; --blue: #7db3ee;
  --red: #ef8794; } }
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
h3 { font-size: 1.05rem; margin: 1.4rem 0 .6rem; }
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
"""
