"""The page of `ofw report`: what it says of each kind of model, and that it stands alone."""

import re
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import onlinefw as ofw
from onlinefw.cli.app import app
from onlinefw.report import report_page
from onlinefw.report.pictures import draw_half_life, recent

NASTY = '<b>price</b> $x_1$ & "more"'


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def report(folder, model):
    done = run("report", model, "-o", folder / "report.html")
    assert done.exit_code == 0, done.output
    assert done.output == f"page: {folder / 'report.html'}\n"
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def rows(tmp_path, rng):
    """A file of rows whose first column has a name that is HTML, and mathematics, and quotes."""
    X = rng.standard_normal((400, 4))
    names = [NASTY, "rain", "wind", "sun"]
    head = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    numbers = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.standard_normal(400)
    for target, column in (("number", numbers), ("label", np.where(numbers > 0, "hi", "lo"))):
        lines = (f"{','.join(map(str, row))},{y}" for row, y in zip(X, column, strict=True))
        (tmp_path / f"{target}.csv").write_text("\n".join([f"{head},{target}", *lines]))
    return tmp_path


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """A matrix model of a file of ratings, with a held-out score."""
    folder = tmp_path_factory.mktemp("ratings")
    data = ofw.datasets.make_movielens_like(60, 40, 900, biases=True, seed=0)
    lines = (
        f"u<{u}>,film {i},{r}" for u, i, r in zip(data.rows, data.cols, data.values, strict=True)
    )
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]))
    words = ("--test-fraction", "0.2", "--quiet", "-o", folder / "ratings.ofw")
    done = run("fit", "matrix", folder / "ratings.csv", *words)
    assert done.exit_code == 0, done.output
    return folder / "ratings.ofw"


class Page(HTMLParser):
    """Fails on tags that do not match and on ids that are there twice; collects the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.words = [], set(), []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        name = dict(attrs).get("id")
        assert name is None or name not in self.ids, name
        self.ids.add(name)
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def stands_alone(text):
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert not re.search(r"@import|url\((?!#)", text)
    assert "<script" not in text
    for target in re.findall(r'xlink:href="#([^"]+)"|url\(#([^)]+)\)', text):
        assert f'id="{"".join(target)}"' in text


def test_a_matrix_model(tmp_path, ratings):
    text = report(tmp_path, ratings)
    page, summary = Page(text), ofw.load(ratings).notes_["summary"]
    stands_alone(text)
    assert f"A model of {ofw.load(ratings).shape_[0]:,} users" in page.text
    assert f"MSE {summary['progressive']['mse']:.4g}" in page.text
    assert f"MSE {summary['held out']['mse']:.4g}" in page.text
    assert f"at most {summary['gap']:.3g} above the smallest" in page.text
    assert {"scores", "learning", "certificate", "factors", "use"} <= page.ids
    for heading in ("Score over time", "Learning curve", "Patterns by weight", "Items in the"):
        assert heading in page.text
    assert text.count("<svg") == 6  # one of them twice, for wide and for narrow screens
    assert 'aria-label="the duality gap' not in text  # single ratings have no gap: nothing to draw
    assert "film " in text and "u<" not in text  # items have names, users' names are escaped
    assert "ofw recommend ratings.ofw --user" in page.text


def changing():
    """A model of rows whose truth changes after 800 of 1,500."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 8))
    z = np.where(np.arange(1500) < 800, X[:, 0], X[:, 2])
    model = ofw.FrankWolfeRegressor(half_life="auto")
    model.learn(X, 3.0 * z + 0.3 * rng.standard_normal(1500))
    return model


def test_half_lives_over_time():
    model = changing()
    text = report_page(model, "m.ofw")
    page = Page(text)
    stands_alone(text)
    assert "forgetting" in page.ids and 'aria-label="the half-life in use, over rounds"' in text
    assert "Dotted lines: the data looked as if they had changed" in page.text
    (change,) = model.changes_
    assert f"{change:,}" in page.text
    assert (
        "forgetting" not in Page(report_page(one_half_life(), "m.ofw")).ids
    )  # nothing was looked for


def one_half_life():
    X = np.random.default_rng(0).standard_normal((40, 3))
    return ofw.FrankWolfeRegressor(radius=2.0, half_life=20.0).fit(X, X[:, 0])


@pytest.mark.parametrize("changes", [True, False])
def test_the_picture_of_half_lives_shows_those_in_use(changes):
    model = changing() if changes else ofw.FrankWolfeRegressor(half_life="auto", radius=2.0)
    if not changes:
        X = np.random.default_rng(0).standard_normal((300, 3))
        model.learn(X, X[:, 0])
    axes = Figure().subplots()
    draw_half_life(axes, SimpleNamespace(best=model))
    curve, *dotted = axes.get_lines()
    lives = model.history_["half_life"]
    forgets = np.isfinite(lives)
    low, top = axes.get_yticks()
    assert [label.get_text() for label in axes.get_yticklabels()][-1] == "never"
    np.testing.assert_array_equal(curve.get_xdata(), model.history_["t"])
    np.testing.assert_array_equal(curve.get_ydata()[forgets], lives[forgets])
    assert (curve.get_ydata()[~forgets] == top).all()
    assert [line.get_xdata()[0] for line in dotted] == model.changes_.tolist()  # a row is a round
    assert len(dotted) == changes == forgets.any()
    assert low == (lives.min() if changes else top)


def test_a_regression(rows):
    run("fit", "regression", rows / "number.csv", "--target", "number", "--quiet", "-o",
        rows / "m.ofw")  # fmt: skip
    text = report(rows, rows / "m.ofw")
    page, model = Page(text), ofw.load(rows / "m.ofw")
    stands_alone(text)
    assert "A model that predicts number" in page.text
    assert NASTY in page.text and NASTY not in text
    for coefficient in model.coef_:
        assert f"{coefficient:+.4g}" in page.text
    assert f"MSE {model.notes_['summary']['progressive']['mse']:.4g}" in page.text
    assert "ofw predict m.ofw rows.csv" in page.text


def test_a_classification_with_a_test_file(rows):
    data = rows / "label.csv"
    run("fit", "classification", data, "--target", "label", "--test", data, "--quiet", "-o",
        rows / "m.ofw")  # fmt: skip
    page, model = Page(report(rows, rows / "m.ofw")), ofw.load(rows / "m.ofw")
    summary = model.notes_["summary"]
    assert "tells 2 classes of label apart" in page.text
    assert "The classes are hi, lo." in page.text
    assert f"{summary['test file']['error']:.2%} wrong" in page.text
    plain = summary["progressive"]["error of the commonest label"]
    assert f"always saying the commonest label: {plain:.2%}" in page.text


def several_classes(rng):
    X = rng.standard_normal((200, 3))
    y = np.select([X[:, 0] > 0.5, X[:, 1] > 0], ["<one>", "two"], "three")
    return ofw.FrankWolfeClassifier(radius=2.0, loss="logistic", batch_size=20).fit(X, y)


def search(rng):
    X = rng.standard_normal((200, 3))
    return ofw.RadiusSearch(ofw.FrankWolfeRegressor(batch_size=20), radii=[1.0, 2.0]).fit(
        X, X[:, 0]
    )


def robust(rng):
    X = rng.standard_normal((200, 3))
    return ofw.FrankWolfeClassifier(radius=2.0, batch_size=20).fit(X, X[:, 0] > 0)


def no_path(rng):
    X = rng.standard_normal((50, 3))
    return ofw.FrankWolfeRegressor(radius=2.0, path_size=0).fit(X, X[:, 0])


def all_zero(rng):
    return ofw.FrankWolfeRegressor(radius=2.0).fit(np.zeros((5, 2)), np.zeros(5))


def completion(rng):
    X = np.column_stack((rng.integers(9, size=90), rng.integers(7, size=90)))
    return ofw.FrankWolfeMatrixCompletion(5.0, batch_size=10).fit(X, rng.standard_normal(90))


def one_entry(rng):
    return ofw.FrankWolfeMatrixCompletion(5.0).fit([[0, 0]], [1.0])


MADE_IN_PYTHON = {
    several_classes: "For <one>",
    search: "predicts a number",
    robust: "not convex",
    no_path: "at most",
    all_zero: "All coefficients are zero.",
    completion: "A model of 9 users and 7 items",
    one_entry: "A model of 1 user and 1 item",
}


SLOW = {search, robust, no_path, all_zero, one_entry}


@pytest.mark.parametrize(
    "make",
    [pytest.param(m, marks=pytest.mark.slow if m in SLOW else ()) for m in MADE_IN_PYTHON],
    ids=lambda make: make.__name__,
)
def test_a_model_made_in_python_has_a_page_too(make, rng, tmp_path):
    ofw.save(make(rng), tmp_path / "model.ofw")
    text = report(tmp_path, tmp_path / "model.ofw")
    stands_alone(text)
    assert MADE_IN_PYTHON[make] in Page(text).text


def test_a_path_of_coefficients_is_drawn_with_names_as_they_are(rng):
    model = several_classes(rng)
    model.notes_ = {"features": ["a$b$c", "rain", "<i>"]}
    text = report_page(model, "m.ofw")
    Page(text)
    assert "How they came and went" in text
    assert "two: a$b$c" in unescape(text)


@pytest.mark.slow
def test_the_same_model_gives_the_same_page(rng):
    model = completion(rng)
    assert report_page(model, "m.ofw") == report_page(model, "m.ofw")


def test_commands_quote_the_name_of_the_file(rng):
    assert "ofw predict 'my model.ofw'" in Page(report_page(search(rng), "my model.ofw")).text


def test_recent_scores_are_those_of_the_last_quarter_alone(rng):
    errors = rng.random(1000)
    rows = np.arange(1.0, 1001.0)
    late = recent(rows, np.cumsum(errors) / rows)
    assert late[-1] == pytest.approx(errors[750:].mean())
    assert late[0] == pytest.approx(errors[0])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["absent.ofw"], "absent.ofw"),
        (["text.ofw"], "text.ofw is not"),
        (["good.ofw", "-o", "nowhere/r.html"], "nowhere does not exist; create it first"),
        (["good.ofw", "-o", "."], "is a folder; name a file with -o"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(words, says, rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.ofw").write_text("no model")
    ofw.save(no_path(rng), tmp_path / "good.ofw")
    done = run("report", *words)
    assert done.exit_code == 2
    assert says in done.output and done.output.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"text.ofw", "good.ofw"}
