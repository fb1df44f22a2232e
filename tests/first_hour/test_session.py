"""A newcomer's session, typed into the installed command."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .test_files_as_they_are import TITLES, ratings, text

OFW = shutil.which("ofw", path=Path(sys.executable).parent)

pytestmark = pytest.mark.skipif(OFW is None, reason="the command ofw is not installed")


@pytest.fixture
def ofw(tmp_path):
    """Type a command into a shell in an empty folder; return what it printed."""

    def typed(words, code=0):
        call = ["bash", "-c", words.replace("ofw ", f"'{OFW}' ", 1)]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stderr

    return typed


@pytest.mark.slow
def test_ratings_from_a_spreadsheet(tmp_path, ofw):
    content = b"\xef\xbb\xbf" + text("User Name,Film,Score", ";", "\r\n").encode()
    (tmp_path / "my ratings.csv.gz").write_bytes(gzip.compress(content))
    said = ofw("ofw fit matrix 'my ratings.csv.gz' -o films.ofw --test-fraction 0.2")
    assert "predict-then-learn: MSE" in said and "RMSE" in said and "written: films.ofw" in said
    user = ratings()[0][0]
    best = ofw(f"ofw recommend films.ofw --user {user} --seen -n 3")
    assert len(best.splitlines()) == 3 and any(title in best for title in TITLES)
    (tmp_path / "pairs.csv").write_text(f"user,item\n{user},七人の侍\nnobody,Amélie\n")
    wanted = ("--user", "user", "--item", "item")
    printed = ofw(f"cat pairs.csv | ofw predict films.ofw - -o - {' '.join(wanted)}")
    assert printed.splitlines()[0] == '"user","item","prediction"'
    ofw(f"ofw predict films.ofw pairs.csv -o answers.jsonl {' '.join(wanted)}")
    lines = (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line) for line in lines]
    assert [row["item"] for row in answers] == ["七人の侍", "Amélie"]
    assert all(1.0 <= row["prediction"] <= 5.0 for row in answers)
    assert "七人の侍" in lines[0]  # as it was typed, not \u4e03


@pytest.mark.slow
def test_a_table_with_gaps_and_text(tmp_path, ofw):
    rows = [(k % 40 or "NA", ("Oslo", "Rome")[k % 2], k) for k in range(300)]
    lines = [f"{size},{city},{k},{2 * (k % 40) + 9 * (k % 2)}" for size, city, k in rows]
    (tmp_path / "flats.csv").write_text("Size,City,Listing,Rent\n" + "\n".join(lines) + "\n")
    line = ofw("ofw fit regression flats.csv --target Rent -o flats.ofw", 2)  # asks all at once
    assert "'NA' is no value; City holds text and Size has gaps: say --text one-hot" in line
    line = ofw("ofw fit regression flats.csv --target Rent --missing mean -o flats.ofw", 2)
    assert "'Oslo' is not a number; leave the column out (--drop City), say --text one-hot" in line
    options = "--target Rent --missing mean --text one-hot --drop Listing"
    ofw(f"ofw fit regression flats.csv {options} -o flats.ofw --quiet")
    # The same columns in another order, without the target, with a gap and a city never seen.
    (tmp_path / "new.csv").write_text("City,Size\nRome,20\nOslo,20\nLima,\n")
    rome, oslo, lima = map(float, ofw("ofw predict flats.ofw new.csv").splitlines()[1:])
    assert rome - oslo == pytest.approx(9.0, abs=3.0)
    assert 20.0 < lima < 80.0
