"""``ofw inspect``: what a model is, what it has seen, how good it is."""

import pytest

from onlinefw import load

from ..readers.writing import write
from .running import ofw_json, ofw_says, ratings, refusal, rows

FAST = ("--radius", "3", "--batch-size", "20", "--test-fraction", "0.2")


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
    assert facts["certificate"] == pytest.approx(told["gap"])
    size = "rank" if kind == "matrix" else "nonzeros"
    assert facts[size] == told[size]
    assert facts["radius"] == pytest.approx(3.0)
    said = ofw_says("inspect", out)
    for name in facts:
        assert f"{name}:" in said


def test_the_largest_coefficients_come_first_with_their_names(tmp_path):
    out, _ = fitted(tmp_path, "regression")
    largest = ofw_json("inspect", out, "--top", "2")["largest coefficients"]
    coef = dict(zip("abc", load(out).coef_, strict=True))
    assert list(largest) == sorted(coef, key=lambda name: -abs(coef[name]))[:2]
    assert all(largest[name] == coef[name] for name in largest)


def test_the_classes_are_named(tmp_path):
    assert ofw_json("inspect", fitted(tmp_path, "classification")[0])["classes"] == ["no", "yes"]


@pytest.mark.parametrize("kind", ["matrix", "regression"])
def test_the_learning_curve_is_drawn(tmp_path, kind):
    out, _ = fitted(tmp_path, kind)
    ofw_says("inspect", out, "--plot", tmp_path / "curve.png")
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
