"""``ofw inspect``: what a model is, what it has seen, how good it is."""

from html import unescape

import numpy as np
import pytest

from onlinefw import FrankWolfeRegressor, load, save
from onlinefw._words import mood_in_words

from ..files.make_golden import GOLDEN
from ..readers.writing import write
from .running import ofw_json, ofw_says, ratings, refusal, rows

FAST = ("--radius", "3", "--batch-size", "20", "--test-fraction", "0.2")


#: What the text says in a sentence.
IN_WORDS = {"gap", "gap is a certificate", "certificate is informative", "largest coefficients",
            "seen in rows"}  # fmt: skip


def fitted(tmp_path, kind):
    columns = ratings() if kind == "matrix" else rows(target=_target(kind))
    data, out = write(tmp_path / "a.csv", columns), tmp_path / "m.ofw"
    return out, ofw_json("fit", kind, data, "-o", out, *FAST)


def _target(kind):
    return "number" if kind == "regression" else "label"


@pytest.mark.parametrize("kind", ["matrix", "regression", "classification"])
def test_it_tells_what_fitting_told(tmp_path, kind):
    out, told = fitted(tmp_path, kind)
    facts = ofw_json("inspect", out)
    for name in ("rounds", "rows learned", "progressive", "held out"):
        assert facts[name] == told[name]
    assert facts["gap"] == pytest.approx(told["gap"])
    convex = kind != "classification"  # the sigmoid is not
    assert facts["gap is a certificate"] is told["gap is a certificate"] is convex
    assert facts["mean loss"] == pytest.approx(told["mean loss"])
    informative = facts["certificate is informative"]
    assert (
        informative
        is told["certificate is informative"]
        is (facts["gap"] < facts["mean loss"] if convex else None)
    )
    size = "rank" if kind == "matrix" else "nonzeros"
    assert facts[size] == told[size]
    assert facts["radius"] == pytest.approx(3.0)
    said = ofw_says("inspect", out)
    if informative:
        assert f"certificate: its mean loss is at most {told['gap']:.3g} above" in said
    elif convex:
        assert f"certificate: uninformative: the gap, {told['gap']:.3g}, is larger" in said
    for name in facts.keys() - IN_WORDS:
        assert f"{name}:" in said


def test_the_largest_coefficients_come_first_with_their_names(tmp_path):
    out, _ = fitted(tmp_path, "regression")
    largest = ofw_json("inspect", out, "--top", "2")["largest coefficients"]
    coef = dict(zip("abc", load(out).coef_, strict=True))
    assert list(largest) == sorted(coef, key=lambda name: -abs(coef[name]))[:2]
    assert all(largest[name] == coef[name] for name in largest)


def test_the_classes_are_named_and_the_one_that_coefficients_speak_for(tmp_path):
    out = fitted(tmp_path, "classification")[0]
    facts = ofw_json("inspect", out)
    assert facts["classes"] == ["no", "yes"] and list(facts["largest coefficients"]) == ["yes"]
    assert "largest coefficients, for the class yes:\n" in ofw_says("inspect", out)


def test_with_several_classes_fitting_and_inspecting_count_the_same(tmp_path):
    columns = rows(240)
    columns["target"] = [f"k{k % 3}" if a > 0 else "k0" for k, a in enumerate(columns["a"])]
    data, out = write(tmp_path / "a.csv", columns), tmp_path / "m.ofw"
    fit = ("fit", "classification", data, "-o", out, "--radius", "0.5")
    told, facts = ofw_json(*fit), ofw_json("inspect", out)
    coef = load(out).coef_
    for counts in (told, facts):
        assert (counts["nonzeros"], counts["coefficients"]) == (np.count_nonzero(coef), coef.size)
    assert f"nonzeros {np.count_nonzero(coef)} of 9 coefficients" in ofw_says(*fit)
    assert facts["features used"] == coef.any(axis=0).sum()
    for label, row in zip(load(out).classes_, coef, strict=True):
        largest = facts["largest coefficients"][str(label)]
        assert largest == {n: c for n, c in zip("abc", row, strict=True) if c != 0.0}


def test_the_radius_of_scaled_columns_is_said_to_be_one(tmp_path):
    given, _ = fitted(tmp_path, "regression")
    assert "radius is for" not in ofw_says("inspect", given)
    out = tmp_path / "auto.ofw"
    ofw_says("fit", "regression", tmp_path / "a.csv", "-o", out)
    said = ofw_says("inspect", out)
    assert "radius is for: columns on one scale" in said and "units of the file" in said
    (tmp_path / "a.libsvm").write_text("".join(f"{k % 2} {1 + k % 2}:1\n" for k in range(90)))
    out = tmp_path / "sparse.ofw"
    ofw_says("fit", "classification", tmp_path / "a.libsvm", "-o", out, *FAST)
    assert "radius is for" not in ofw_says("inspect", out)


@pytest.mark.parametrize("kind", ["matrix", "regression"])
def test_the_learning_curve_is_drawn(tmp_path, kind):
    out, _ = fitted(tmp_path, kind)
    said = ofw_says("inspect", out, "--plot", tmp_path / "curve.png")
    assert said.endswith(f"plot: {tmp_path / 'curve.png'}\n")
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"


def test_what_cannot_be_inspected(tmp_path):
    out, _ = fitted(tmp_path, "matrix")
    whole = out.read_bytes()
    assert "no such file" in refusal("inspect", tmp_path / "no.ofw")
    assert "does not exist" in refusal("inspect", out, "--plot", tmp_path / "no" / "curve.png")
    assert "xyz" in refusal("inspect", out, "--plot", tmp_path / "curve.xyz")
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        out.write_bytes(whole[:cut])
        line = refusal("inspect", out)
        assert "is not an onlinefw file" in line or "cut short or was altered" in line


def test_a_certificate_above_the_loss_has_no_percentage(tmp_path):
    """One plain step in a much too wide ball leaves a gap of many times the loss."""
    data, out = write(tmp_path / "a.csv", ratings()), tmp_path / "m.ofw"
    fit = ofw_says("fit", "matrix", data, "-o", out, "--radius", "1e5", "--batch-size", "240")
    says_that_it_is_uninformative(fit)
    says_that_it_is_uninformative(*pages(out, tmp_path))


def test_nor_has_that_of_a_linear_model(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = FrankWolfeRegressor("l2", 1e5, inner_steps=1, batch_size=60).fit(X, X[:, 0])
    save(model, tmp_path / "m.ofw")
    assert model.gap_ > model.mean_loss_
    says_that_it_is_uninformative(*pages(tmp_path / "m.ofw", tmp_path))


def pages(model, folder):
    """Return what is said of a model in a terminal and in a browser."""
    assert ofw_json("inspect", model)["certificate is informative"] is False
    ofw_says("report", model, "-o", folder / "page.html")
    return ofw_says("inspect", model), (folder / "page.html").read_text(encoding="utf-8")


def says_that_it_is_uninformative(*texts):
    for text in texts:
        assert "uninformative: the gap, " in text and "model may still be good" in text
        assert "of the loss)" not in text and "% of that loss" not in text


def test_a_file_that_does_not_tell_the_loss_has_the_gap_alone(tmp_path):
    facts = ofw_json("inspect", GOLDEN / "completion-ridge-v2.ofw")
    assert facts["mean loss"] is facts["certificate is informative"] is None
    assert facts["gap is a certificate"] is True
    said = ofw_says("inspect", GOLDEN / "completion-ridge-v2.ofw")
    assert "above the smallest of its radius\n" in said and "mean loss:" not in said


def test_moods_are_told_as_python_tells_them(tmp_path):
    data, out = write(tmp_path / "a.csv", ratings()), tmp_path / "m.ofw"
    ofw_says("fit", "matrix", data, "-o", out)
    facts, model = ofw_json("inspect", out), load(out)
    assert facts["mood"] == model.mood_._asdict()
    ofw_says("report", out, "-o", tmp_path / "page.html")
    page = unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    sentence = mood_in_words(*model.mood_)
    assert f"mood: {sentence}\n" in ofw_says("inspect", out)
    assert f"Mood: {sentence}.</p>" in page
