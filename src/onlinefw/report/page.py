"""The page, put together."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from .._html import html_page
from .._version import __version__
from .._words import counted
from ..fitting.column_counts import is_rare
from . import pictures, words
from .facts import Facts

__all__ = ["report_page"]

#: Coefficients with a bar.
TOP = 20
#: Items with a bar.
POPULAR = 10
#: Inches of a picture that has the width of the page for itself.
WIDE = (12.4, 3.6)


def report_page(model: Any, file_name: str) -> str:
    """Return a page about a fitted model as HTML that needs nothing else.

    Parameters
    ----------
    model : estimator
        One of onlinefw's, fitted, or loaded from a model file.
    file_name : str
        What its file is called, for the commands that the page shows.

    Examples
    --------
    >>> import numpy as np, onlinefw as ofw
    >>> from onlinefw.report import report_page
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> page = report_page(ofw.FrankWolfeRegressor(radius=2.0).fit(X, X[:, 0]), "model.ofw")
    >>> "ofw predict model.ofw" in page
    True
    """
    facts = Facts.of(model)
    title = words.heading(facts)
    details = _factors(facts) if facts.has_pairs else _coefficients(facts)
    body = [
        f"<header><h1>{escape(title)}</h1>",
        *(f"<p>{escape(paragraph)}</p>" for paragraph in words.what_it_is(facts)),
        _made(facts),
        "</header>",
        *_scores(facts),
        *_learning(facts),
        *details,
        *_use(facts, file_name),
        f"<footer>{escape(file_name)}, page by onlinefw {escape(__version__)}</footer>",
    ]
    return html_page(f"{file_name}: {title}", body, STYLE)


def _made(facts: Facts) -> str:
    """Say when, by which version and with which command the model was made."""
    made = facts.made
    if not made.keys() >= {"date", "version", "command"}:
        return ""
    return (
        f'<p class="made">Made on {escape(made["date"])} by onlinefw {escape(made["version"])} '
        f"with <code>{escape(made['command'])}</code></p>"
    )


def _scores(facts: Facts) -> list[str]:
    """Show the scores, and how the score came down."""
    cards = [
        f'<div class="card"><b>{escape(number)}</b><span>{escape(name)}</span>'
        f"<small>{escape(how)}</small></div>"
        for number, name, how in words.score_cards(facts)
    ]
    if not cards:
        return []
    lines = ['<section id="scores"><h2>How good it is</h2>']
    lines.append(f'<div class="cards">{"".join(cards)}</div>')
    if (facts.notes.get("score over time") or {}).get("rows"):
        lines.append("<h3>Score over time</h3>")
        # On a phone the text of the wide picture would be too small to read.
        for name, size in ("score", WIDE), ("score-narrow", pictures.SIZE):
            picture = pictures.draw(name, pictures.draw_score, facts, "score over time", size)
            lines.append(f'<div class="{name}">{picture}</div>')
    return [*lines, "</section>"]


def _learning(facts: Facts) -> list[str]:
    gap = ("gap", pictures.draw_gap, facts, "the duality gap, over rounds")
    return [
        '<section id="learning"><h2>How it learned</h2><div class="pair"><div>',
        "<h3>Learning curve</h3>",
        pictures.draw("loss", pictures.draw_loss, facts, "the loss before learning, over rounds"),
        f"<p>The {escape(facts.loss)} loss of each batch before it was learned, and its mean over "
        "the last quarter of the rounds so far.</p></div><div>",
        '<h3 id="certificate">The certificate</h3>',
        *([pictures.draw(*gap)] if facts.has_gaps else []),
        f"<p>{escape(words.certificate(facts))}</p></div>",
        *_forgetting(facts),
        "</div></section>",
    ]


def _forgetting(facts: Facts) -> list[str]:
    """Show the half-life over time, if it was looked for."""
    if facts.best.half_life != "auto":
        return []
    alt = "the half-life in use, over rounds"
    return [
        '<div><h3 id="forgetting">Forgetting</h3>',
        pictures.draw("half-life", pictures.draw_half_life, facts, alt),
        "<p>The half-life of the memory that predicted best at the time; at the top nothing was "
        "forgotten. Dotted lines: the data looked as if they had changed.</p></div>",
    ]


def _coefficients(facts: Facts) -> list[str]:
    """Show the largest coefficients as bars, and how they changed over the rounds."""
    lines = ['<section id="coefficients"><h2>What it looks at</h2>']
    coefficients, names = facts.coefficients, facts.feature_names
    labels = facts.best.classes_ if len(coefficients) > 1 else [None]
    most = float(np.abs(coefficients).max())  # one scale for all classes
    for label, row in zip(labels, coefficients, strict=True):
        largest = [int(j) for j in np.argsort(-np.abs(row), kind="stable")[:TOP] if row[j] != 0.0]
        if label is not None:
            lines.append(f"<h3>For {escape(str(label))}</h3>")
        seen = [_seen(facts, j) for j in largest] if facts.columns_seen else None
        lines += _bars([(names[j], float(row[j])) for j in largest], most, seen)
        if len(largest) < np.count_nonzero(row):
            lines.append(f"<p>The largest {TOP} of {np.count_nonzero(row):,}.</p>")
    if facts.columns_seen:
        lines.append(
            "<p>Beside each coefficient: in how many rows its column was not zero. Those "
            '<span class="rare">in red</span> were seen in few rows, so their coefficients may be '
            "large by chance.</p>"
        )
    if facts.best.path_["coef"].nnz:
        lines.append("<h3>How they came and went</h3>")
        lines.append(pictures.draw("path", pictures.draw_path, facts, "coefficients, over rounds"))
    return [*lines, "</section>"]


def _seen(facts: Facts, column: int) -> str:
    """Return a cell: in how many rows the column was seen."""
    n = facts.columns_seen.get(column, 0)
    rare = " rare" if is_rare(n, facts.n_rows) else ""
    return f'<td class="seen{rare}">{counted(n, "row")}</td>'


def _bars(
    values: list[tuple[str, float]], most: float, beside: list[str] | None = None
) -> list[str]:
    """Return a table of bars, with a cell more ``beside`` each number."""
    if not values:
        return ["<p>All coefficients are zero.</p>"]
    beside = [""] * len(values) if beside is None else beside
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{value:+.4g}</td>{more}'
        f'<td class="bar"><i class="{"plus" if value > 0 else "minus"}" '
        f'style="width:{50 * abs(value) / most:.1f}%"></i></td></tr>'
        for (name, value), more in zip(values, beside, strict=True)
    ]
    return ['<div class="wide"><table class="bars"><tbody>', *rows, "</tbody></table></div>"]


def _factors(facts: Facts) -> list[str]:
    """Show the patterns of a matrix, and what it predicts."""
    if not facts.rank:
        return []
    squares = facts.factors[1] ** 2
    first = min(10, squares.size)
    share = squares[:first].sum() / squares.sum()
    lines = [
        '<section id="factors"><h2>What it has found</h2><div class="pair"><div>',
        "<h3>Patterns by weight</h3>",
        pictures.draw("values", pictures.draw_singular_values, facts, "singular values"),
        f"<p>The first {'has' if first == 1 else f'{first} have'} {share:.0%} of the sum of "
        "squares of all patterns.</p></div><div>",
        *(_popular(facts) if facts.kind == "clicks" else _predictions(facts)),
        "</div>",
    ]
    if facts.rank > 1 and facts.best.shape_[1] > 2:
        lines += [
            "<div><h3>Items in the first two patterns</h3>",
            pictures.draw("items", pictures.draw_items, facts, "items by two weights"),
            "<p>Items near each other are liked by the same users; the farthest out have their "
            "names.</p></div>",
        ]
    return [*lines, "</div></section>"]


def _predictions(facts: Facts) -> list[str]:
    return [
        "<h3>What it predicts</h3>",
        pictures.draw("predictions", pictures.draw_predictions, facts, "predictions, their spread"),
        "<p>For users and items drawn at random, rated or not.</p>",
    ]


def _popular(facts: Facts) -> list[str]:
    counts = sorted(facts.best.popularity_.items(), key=lambda one: -one[1])[:POPULAR]
    bars = _bars([(str(item), float(n)) for item, n in counts], counts[0][1])
    return ["<h3>What is popular</h3>", *bars, "<p>Events of the items that have most.</p>"]


def _use(facts: Facts, file_name: str) -> list[str]:
    commands = [
        f"<dt><code>{escape(command)}</code></dt><dd>{escape(what)}</dd>"
        for command, what in words.commands(facts, file_name)
    ]
    python = f"import onlinefw as ofw\nmodel = ofw.load({file_name!r})"
    return [
        '<section id="use"><h2>How to use it</h2>',
        f'<dl class="commands">{"".join(commands)}</dl>',
        f"<p>In Python:</p><pre><code>{escape(python)}</code></pre></section>",
    ]


STYLE = """
header p { max-width: 62rem; }
figure.plain { background: none; padding: 0; }
figure.plain svg { display: block; width: 100%; height: auto; max-width: 40rem; }
.score figure.plain svg { max-width: none; }
figure.plain svg text { font-family: system-ui, sans-serif !important; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
  gap: 1.5rem 2.5rem; }
.pair p { color: var(--soft); font-size: .92rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1.1rem; }
.card b { display: block; font-size: 1.6rem; line-height: 1.2; }
.card span { display: block; font-weight: 600; }
.card small { color: var(--soft); }
.bars th, .bars td { padding: .25rem .7rem; vertical-align: middle; }
.bars th { font-weight: 500; max-width: 22rem; overflow-wrap: anywhere; }
.bars .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bars .seen { text-align: right; white-space: nowrap; color: var(--soft); }
.rare, .bars .seen.rare { color: var(--bad); font-weight: 600; }
.made { color: var(--soft); font-size: .92rem; overflow-wrap: anywhere; }
.score-narrow { display: none; }
.bars .bar { width: 55%; min-width: 12rem; }
.bars i { display: block; height: .8rem; border-radius: 2px; }
.bars .plus { background: var(--blue); margin-left: 50%; }
.bars .minus { background: var(--red); margin-left: auto; margin-right: 50%; }
code { font: .9rem ui-monospace, Menlo, Consolas, monospace; }
pre { overflow-x: auto; }
.commands { grid-template-columns: 1fr; gap: .1rem; }
.commands dt { color: var(--ink); overflow-wrap: anywhere; }
.commands dd { color: var(--soft); margin-bottom: .6rem; }
footer { max-width: 1180px; margin: 0 auto 3rem; padding: 0 2rem; color: var(--soft);
  font-size: .85rem; }
@media (max-width: 40rem) {
  header, section { padding: 1rem; }
  footer { padding: 0 1rem; }
  h1 { font-size: 1.6rem; }
  .score { display: none; }
  .score-narrow { display: block; }
  .bars th, .bars td { padding: .25rem .35rem; }
  .bars .bar { width: 30%; min-width: 4rem; }
}
"""
