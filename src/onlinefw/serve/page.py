"""The page at ``/``: what happens now, and what the model says.

It listens to ``/events``, and asks the endpoints that everybody asks. Where a token is needed, a
browser asks for a name (any) and a password (the token), and then sends both with whatever the
page asks, ``/events`` too. Nothing comes from elsewhere, and the policy of the page lets nothing
else run or be fetched. All that the model says is put in as text.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection
from functools import cache
from importlib.resources import files

from .._html import STYLE, html_page
from .._version import __version__

__all__ = ["PAGE_HEADERS", "live_page"]


def _beside(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return what a policy calls a script or a style that may be used."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


OWN_STYLE, SCRIPT = _beside("page.css"), _beside("page.js")
POLICY = (
    f"default-src 'none'; script-src {_digest(SCRIPT)}; style-src {_digest(STYLE + OWN_STYLE)}; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)
PAGE_HEADERS = {
    "content-security-policy": f"{POLICY}; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

NUMBERS = [
    ("events", "events learned"),
    ("rate", "events a second"),
    ("refused", "events refused"),
    ("waiting", "events wait"),
    ("window", "newest 1000"),
    ("progressive", "all events"),
    ("gap", "certificate"),
]
CHARTS = [
    ("score", "Score", '<i class="one"></i>newest 1000 <i class="two"></i>all'),
    ("gaps", "Certificate", '<i class="one"></i>how far from the best of its kind, at most'),
    ("rates", "Events a second", '<i class="one"></i>learned'),
]


def live_page(verbs: Collection[str]) -> str:
    """Return the page for a model that has these verbs.

    Examples
    --------
    >>> from onlinefw.serve.page import live_page
    >>> "Recommend" in live_page({"recommend"}), "Recommend" in live_page({"predict"})
    (True, False)
    """
    return _page("recommend" in verbs)


@cache
def _page(recommends: bool) -> str:
    numbers = "".join(
        f'<div class="card"><b id="{name}">-</b><span id="{name}-name">{what}</span></div>'
        for name, what in NUMBERS
    )
    charts = "".join(
        f'<figure class="plain"><figcaption><b id="{name}-title">{title}</b> '
        f'<span class="legend">{legend}</span></figcaption>'
        f'<svg id="{name}" role="img" aria-label="{title}: nothing yet"></svg></figure>'
        for name, title, legend in CHARTS
    )
    body = [
        '<header><h1>ofw serve</h1><p id="state" role="status">Connecting.</p></header>',
        "<main>",
        f'<section aria-label="Now"><div class="cards">{numbers}</div></section>',
        f'<section><h2>Over time</h2><div class="pair">{charts}</div></section>',
        *(RECOMMEND if recommends else PREDICT),
        '<section><h2>What the model holds</h2><div id="model"><p>Nothing yet.</p></div></section>',
        "</main>",
        '<footer><a href="model">model</a> <a href="metrics">metrics</a> '
        f'<a href="openapi.json">endpoints</a> onlinefw {__version__}</footer>',
    ]
    return html_page("ofw serve", body, OWN_STYLE, script=SCRIPT, policy=POLICY)


RECOMMEND = [
    "<section><h2>Recommendations</h2>",
    '<form id="ask" data-verb="recommend"><label for="asked">User</label>',
    '<input id="asked" autocomplete="off" autocapitalize="off" spellcheck="false" required>',
    "<button>Recommend</button></form>",
    '<p id="answer" role="status">Type a user; the list stays up to date.</p>',
    '<table id="found" hidden><thead><tr><th scope="col">item</th><th scope="col">score</th>',
    "</tr></thead><tbody></tbody></table></section>",
]
PREDICT = [
    "<section><h2>Prediction</h2>",
    '<form id="ask" data-verb="predict"><label for="asked">Values of a row</label>',
    '<input id="asked" autocomplete="off" autocapitalize="off" spellcheck="false" required',
    ' aria-describedby="hint"><button>Predict</button></form>',
    '<p id="hint">Numbers with commas between them, or an object of JSON by column name.</p>',
    '<p id="answer" role="status"></p></section>',
]
