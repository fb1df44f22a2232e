"""Text from the data that a spreadsheet would run as a formula."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from onlinefw.cli.spreadsheet import safe_text

from ..readers.writing import write
from .running import ofw_says, ratings, refusal, rows

FORMULAS = ["=1+1", "+A1", "-2+3", "@SUM(A1)", "\tx", "＝1"]  # noqa: RUF001


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_a_quote(text):
    assert safe_text(text) == f"'{text}"


@pytest.mark.parametrize("text", ["film-7", "a=b", "", "-7", "+1.5", "-1e-5", "7"])
def test_other_text_and_numbers_stay_as_they_are(text):
    assert safe_text(text) == text


@given(st.text())
def test_what_is_safe_begins_like_no_formula(text):
    safe = safe_text(text)
    assert safe in (text, f"'{text}")
    if safe[:1] in tuple("=+-@\t\r\n"):
        float(safe)


def ratings_of_formulas(tmp_path):
    columns = ratings(120)
    columns["=person"] = ["=1+1" if user == "u1" else user for user in columns.pop("user")]
    columns["item"] = [int(item) - 4 for item in columns["item"]]
    data, model = write(tmp_path / "ratings.csv", columns), tmp_path / "m.ofw"
    ofw_says("fit", "matrix", data, "--user", "=person", "--radius", "5", "-o", model)
    return data, model


def test_predictions_of_pairs(tmp_path):
    data, model = ratings_of_formulas(tmp_path)
    out = {name: tmp_path / f"{name}.csv" for name in ("plain", "safe")}
    ofw_says("predict", model, data, "-o", out["plain"])
    ofw_says("predict", model, data, "-o", out["safe"], "--spreadsheet-safe")
    plain, safe = (csv.read_csv(path).to_pydict() for path in out.values())
    assert list(plain) == ["=person", "item", "prediction"] and "=1+1" in plain["=person"]
    assert list(safe) == ["'=person", "item", "prediction"]
    assert safe["'=person"] == [safe_text(user) for user in plain["=person"]]
    assert "'=1+1" in safe["'=person"] and min(safe["item"]) < 0
    assert (safe["item"], safe["prediction"]) == (plain["item"], plain["prediction"])


def test_predicted_labels(tmp_path):
    columns = rows(target="label")
    columns["target"] = [f"={label}" for label in columns["target"]]
    data, model = write(tmp_path / "rows.csv", columns), tmp_path / "m.ofw"
    ofw_says("fit", "classification", data, "--radius", "5", "-o", model)
    assert '"=yes"' in ofw_says("predict", model, data)
    said = ofw_says("predict", model, data, "--spreadsheet-safe")
    assert '"\'=yes"' in said and '"=yes"' not in said


def test_recommended_items(tmp_path):
    data, model = tmp_path / "ratings.csv", tmp_path / "m.ofw"
    columns = ratings(120, items="=item{}")
    ofw_says("fit", "matrix", write(data, columns), "--radius", "5", "-o", model)
    command = ["recommend", model, "--user", "u1", "--seen"]
    assert ofw_says(*command).startswith("=item")
    assert all(line[:2] == "'=" for line in ofw_says(*command, "--spreadsheet-safe").splitlines())
    as_json = json.loads(ofw_says(*command, "--spreadsheet-safe", "--json"))
    assert as_json[0]["item"].startswith("=item"), "JSON is not for spreadsheets"


def test_parquet_holds_no_formulas(tmp_path):
    data, model = ratings_of_formulas(tmp_path)
    line = refusal("predict", model, data, "-o", tmp_path / "p.parquet", "--spreadsheet-safe")
    assert "--spreadsheet-safe is for CSV" in line
