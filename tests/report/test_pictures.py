"""The pictures of the page can be read: on a phone, and where names come close to each other."""

import re

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import onlinefw as ofw
from onlinefw.report import report_page
from onlinefw.report.names import LONGEST, put_names
from onlinefw.report.pictures import calm

#: Pixels of a small phone, less the padding of a section at both sides.
PHONE = 360 - 2 * 16
#: Pixels of text, and of exponents.
READABLE, SMALL = 9.5, 7.0


@pytest.fixture
def page(rng):
    X = rng.standard_normal((400, 12))
    model = ofw.FrankWolfeRegressor(radius=3.0, batch_size=20, path_size=50).fit(X, X[:, 0])
    model.notes_ = {
        "score over time": {"name": "mse", "rows": [100, 200, 400], "score": [3.0, 2.0, 1.0]},
        "summary": {"progressive": {"rows": 400, "mse": 1.0, "r2": 0.5}},
        "made": {"date": "2026-01-31 18:05 UTC", "version": "1.2", "command": "ofw fit <a>"},
    }
    return report_page(model, "m.ofw")


def test_text_is_readable_on_a_phone(page):
    pictures = re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL)
    assert len(pictures) == 5
    narrow = [picture for picture in pictures if 'id="score-figure_1"' not in picture]
    assert len(narrow) == 4
    for picture in narrow:
        width = float(re.search(r'viewBox="0 0 ([\d.]+) ', picture)[1])
        sizes = np.array(re.findall(r"font-size: ([\d.]+)px", picture), float) * PHONE / width
        assert np.median(sizes) > READABLE and sizes.min() > SMALL


def test_the_wide_picture_has_a_narrow_one_for_narrow_screens(page):
    assert page.count('<div class="score">') == page.count('<div class="score-narrow">') == 1
    narrow = page[page.index("@media (max-width") :]
    assert ".score { display: none; }" in narrow and ".score-narrow { display: block; }" in narrow


def test_date_version_and_command_are_on_the_page(page):
    said = "Made on 2026-01-31 18:05 UTC by onlinefw 1.2 with <code>ofw fit &lt;a&gt;</code>"
    assert said in page


def test_mean_squares_come_with_their_root(page):
    assert "MSE 1" in page and "RMSE 1, the size of a usual error" in page


@pytest.mark.parametrize("seed", range(5))
def test_names_do_not_lie_upon_each_other(seed):
    rng = np.random.default_rng(seed)
    figure = Figure(figsize=(5.2, 3.3), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    points = rng.standard_normal((10, 2)) * [1.0, 0.2]
    axes.plot(*points.T, "o")
    put_names(axes, points, [f"the name of film {k} {'x' * 3 * k}" for k in range(10)])
    boxes = [text.get_window_extent() for text in axes.texts]
    assert 3 <= len(boxes) <= 10
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])
    assert max(len(text.get_text()) for text in axes.texts) <= LONGEST
    assert axes.texts[0].get_text().startswith("the name of film")  # the first is never left out


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1.0, 12.0, ["1", "2", "5", "10"]),
        (2e3, 9e3, ["2k", "5k"]),
        (11.0, 14.0, ["11", "12", "13", "14"]),
    ],
)
def test_a_short_log_axis_has_few_round_numbers(low, high, shown):
    axes = Figure().subplots()
    axes.set(xscale="log", xlim=(low, high))
    calm(axes)
    axes.figure.draw_without_rendering()
    said = [label.get_text() for label in axes.get_xticklabels(which="both")]
    assert [text for text in said if text] == shown


def test_ticks_that_a_picture_has_chosen_stay():
    axes = Figure().subplots()
    axes.set(yscale="log", ylim=(1.0, 5.0))
    axes.set_yticks([1.0, 4.0], ["1", "never"])
    calm(axes)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "never"]
