"""The pictures of the page: SVG that takes the colours of the page, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._typing import Array
from ..plots.frame import plain
from ..plots.history import GAP, LOSS, WINDOW, plot_history
from ..plots.path import plot_path
from .facts import Facts
from .names import put_names

__all__ = ["draw", "draw_gap", "draw_half_life", "draw_items", "draw_loss", "draw_path",
           "draw_predictions", "draw_score", "draw_singular_values", "short"]  # fmt: skip

#: Colours of the page; ink is the colour of its text.
INK = "#010203"
PAGE_COLORS = {INK: "currentColor", "#000000": "currentColor", GAP: "var(--blue)",
               LOSS: "var(--red)"}  # fmt: skip
#: Points of a scatter plot: enough to show the shape, few enough for a small page.
MOST_POINTS, MOST_VALUES, SAMPLE, NAMED = 800, 60, 20_000, 10
#: Inches of a picture, and points of its text: on a phone of 360 pixels that is text of 10.
SIZE, TEXT = (5.2, 3.3), 11.5


def draw(
    name: str,
    picture: Callable[[Any, Facts], None],
    facts: Facts,
    alt: str,
    size: tuple[float, float] = SIZE,
) -> str:
    """Return a picture as a figure of HTML.

    The name is different for every picture of a page; ``alt`` says what is seen, as plain text
    without quotes; width and height, in inches, decide how large the text is.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": name,  # the same page every time, and no id twice
        "font.size": TEXT,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
    with mpl.rc_context(style), warnings.catch_warnings():
        # The browser has letters that matplotlib's font may lack.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        picture(axes, facts)
        calm(axes)
        file = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return f'<figure class="plain" role="img" aria-label="{alt}">{_inline(file, name)}</figure>'


def calm(axes: Any) -> None:
    """Write few numbers beside the axes, so that they do not run into each other."""
    from matplotlib.ticker import FixedLocator

    for axis in (axes.xaxis, axes.yaxis):
        chosen = isinstance(axis.get_major_locator(), FixedLocator)
        if chosen or axis.get_scale() != "log":
            continue
        axis.set_minor_formatter(lambda value, _: "")
        low, high = sorted(axis.get_view_interval())
        if high < 100.0 * low:  # there is no power of ten, or one only
            ticks = round_numbers(low, high)
            axis.set_ticks(ticks, [short(tick) for tick in ticks])


def round_numbers(low: float, high: float) -> Array:
    """Return some of 1, 2, 5, 10, 20, ... between two positive numbers, or others if they are few.

    Examples
    --------
    >>> from onlinefw.report.pictures import round_numbers
    >>> round_numbers(0.8, 15.0).tolist(), round_numbers(12.0, 14.5).tolist()
    ([1.0, 2.0, 5.0, 10.0], [12.0, 13.0, 14.0])
    """
    from matplotlib.ticker import MaxNLocator

    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ticks = np.sort(np.multiply.outer((1.0, 2.0, 5.0), powers).ravel())
    ticks = ticks[(low <= ticks) & (ticks <= high)]
    if ticks.size > 1:
        return ticks
    even = np.asarray(MaxNLocator(3).tick_values(low, high))
    return even[(low <= even) & (even <= high)]


def short(number: float) -> str:
    """Return a number of at most five characters, for an axis.

    Examples
    --------
    >>> from onlinefw.report.pictures import short
    >>> short(7.0), short(60_000.0), short(2_500_000.0), short(12_345.0), short(0.0)
    ('7', '60k', '2.5M', '12.3k', '0')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _inline(file: io.StringIO, name: str) -> str:
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(<\w+ id=")', rf"\1{name}-", svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\1{name}-", svg)
    for color, of_the_page in PAGE_COLORS.items():
        svg = svg.replace(color, of_the_page)
    return svg


def draw_gap(axes: Any, facts: Facts) -> None:
    """Draw the duality gap over the rounds."""
    plot_history(facts.best, ax=(axes, _unseen()))


def draw_loss(axes: Any, facts: Facts) -> None:
    """Draw the loss paid before learning over the rounds."""
    plot_history(facts.best, ax=(_unseen(), axes))


def draw_half_life(axes: Any, facts: Facts) -> None:
    """Draw the half-life in use over the rounds, and when the data changed."""
    history, best = facts.best.history_, facts.best
    t, lives = history["t"], history["half_life"]
    known = lives[np.isfinite(lives)]
    top = 2.0 * known.max() if known.size else 1.0
    axes.step(t, np.where(np.isfinite(lives), lives, top), color=GAP, where="post")
    # Rounds may have any number of observations; on average they are alike.
    for n in best.changes_:
        axes.axvline(n * best.n_rounds_ / best.n_observations_, color=LOSS, linestyle=":")
    axes.set_yscale("log")
    lowest = known.min() if known.size else top
    axes.set_yticks([lowest, top], [f"{lowest:,.0f}" if known.size else "", "never"])
    axes.minorticks_off()
    axes.set(xlabel="round t", ylabel="half-life", ylim=(lowest / 1.5, 1.5 * top))
    plain(axes)


def _unseen() -> Any:
    from matplotlib.figure import Figure

    return Figure().subplots()


def draw_path(axes: Any, facts: Facts) -> None:
    """Draw the coefficients over the rounds."""
    plot_path(facts.best, top=8, feature_names=facts.feature_names, ax=axes)
    legend = axes.get_legend()
    for text in legend.get_texts() if legend else ():
        text.set_parse_math(False)  # a name may hold a $


def draw_score(axes: Any, facts: Facts) -> None:
    """Draw the score of all rows so far, of the last quarter of them, and of a constant guess."""
    path = facts.notes["score over time"]
    rows, score = np.asarray(path["rows"], float), np.asarray(path["score"], float)
    axes.plot(rows, score, color=INK, linewidth=1, alpha=0.5, label="all rows so far")
    axes.plot(rows, recent(rows, score), color=GAP, linewidth=2, label="the last quarter of them")
    progressive = facts.summary.get("progressive", {})
    if path["name"] == "recall":
        beside, label, ylabel = None, "", "items found among the best 10"
    elif path["name"] == "mse":
        r2 = progressive.get("r2")
        beside = None if r2 is None or r2 >= 1.0 else progressive["mse"] / (1.0 - r2)
        label, ylabel = "always the mean", "mean squared error"
    else:
        beside = progressive.get("error of the commonest label")
        label, ylabel = "always the commonest label", "share of wrong labels"
    if beside is not None:
        axes.axhline(beside, color=LOSS, linestyle=":", label=label)
    axes.set(xlabel="rows predicted", ylabel=ylabel)
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    axes.locator_params(axis="x", nbins=5)
    plain(axes)
    axes.legend(frameon=False)


def recent(rows: Array, score: Array) -> Array:
    """Return the scores of the last quarter of the rows so far, from those of all so far."""
    sums = rows * score
    before = np.searchsorted(rows, (1.0 - WINDOW) * rows, side="right") - 1
    first = before < 0
    here = np.where(first, 0.0, rows[before])
    there = np.where(first, 0.0, sums[before])
    return (sums - there) / (rows - here)


def draw_singular_values(axes: Any, facts: Facts) -> None:
    """Draw how much each pattern of the matrix weighs, from the largest."""
    values = facts.factors[1][:MOST_VALUES]
    axes.bar(np.arange(1, values.size + 1), values, color=GAP, width=0.8)
    axes.set(xlabel="pattern", ylabel="singular value")
    plain(axes)


def draw_predictions(axes: Any, facts: Facts) -> None:
    """Draw what the model predicts for users and items drawn at random."""
    rng, (rows, columns) = np.random.default_rng(0), facts.best.shape_
    pairs = rng.integers(rows, size=SAMPLE), rng.integers(columns, size=SAMPLE)
    axes.hist(facts.best.predict_entries(*pairs), bins=60, color=GAP, density=True)
    axes.set(xlabel="prediction", ylabel="share of pairs")
    axes.set_yticks([])
    plain(axes)


def draw_items(axes: Any, facts: Facts) -> None:
    """Draw the items by their weights in the first two patterns; the farthest have names."""
    _, size, right = facts.factors
    points = np.sqrt(size[:2]) * right[:, :2]
    order = np.argsort(-np.linalg.norm(points, axis=1))
    kept = order if order.size <= MOST_POINTS else np.concatenate(
        (order[:NAMED], np.random.default_rng(0).permutation(order[NAMED:])[: MOST_POINTS - NAMED])
    )  # fmt: skip
    axes.plot(*points[kept].T, "o", color=GAP, markersize=3, alpha=0.6, markeredgewidth=0)
    axes.set(xlabel="weight in the first pattern", ylabel="in the second")
    plain(axes)
    ids, far = facts.item_ids, order[:NAMED]
    names = [str(k if ids is None or k >= len(ids) else ids[k]) for k in far]
    put_names(axes, points[far], names)
