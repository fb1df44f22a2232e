"""Every table of the benchmarks says how it was made, in one form."""

import re
import runpy
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
TABLES = sorted(str(path.relative_to(BENCHMARKS)) for path in BENCHMARKS.rglob("*.md"))
TABLE = runpy.run_path(str(BENCHMARKS / "table.py"))

#: `command` on date at commit; versions; cores, load.
FACTS = re.compile(
    r"`python (?P<script>benchmarks/[\w/]+\.py)[^`]* --write\b[^`]*` "
    r"on (?P<date>\d{4}-\d\d-\d\d) at commit [0-9a-f]{7,}; "
    r"Python \d[\w.]*, numpy \d[\w.+]*(, [\w.-]+ \d[\w.+]*)*; "
    r"\d+( of \d+)? cores, load \d+\.\d at the start, \d+\.\d at the end\."
)
#: Made before tables said all this (those of a GPU need one). A table that is made again leaves it.
OLDER = {
    "gpu/matrix.md",
    "gpu/rows.md",
    "recommend/large-cuda.md",
}


def facts_of(table):
    """The match of a table's third line, which is the first after its heading."""
    return FACTS.fullmatch((BENCHMARKS / table).read_text(encoding="utf-8").split("\n")[2])


@pytest.mark.parametrize("table", sorted(set(TABLES) - OLDER))
def test_a_table_names_its_command_date_commit_versions_cores_and_load(table):
    facts = facts_of(table)
    assert facts, f"{table} does not begin with the line of benchmarks/table.py"
    assert (ROOT / facts["script"]).is_file()
    date.fromisoformat(facts["date"])


def test_the_list_of_older_tables_has_no_table_that_was_made_again():
    assert set(TABLES) >= OLDER, "tables that are gone are still listed as older"
    again = {table for table in OLDER if facts_of(table)}
    assert not again, "made again: take them out of OLDER"


def test_every_script_writes_its_table_in_this_form():
    for script in BENCHMARKS.rglob("*.py"):
        code = script.read_text(encoding="utf-8")
        if "--write" in code and script.name != "make.py":
            assert "write_table(" in code, script


def test_what_write_table_writes_is_in_this_form(tmp_path, monkeypatch):
    script = BENCHMARKS / "matrix" / "peers.py"
    monkeypatch.setattr("sys.argv", [str(script), "--data", "ml-100k", "--write"])
    monkeypatch.setitem(TABLE["facts"].__globals__, "commit", lambda: "0123abc")
    TABLE["write_table"](tmp_path / "peers.md", "Peers", ["| a |"], ["scikit-learn", "no-such"])
    title, _, facts, *rest = (tmp_path / "peers.md").read_text(encoding="utf-8").split("\n")
    assert title == "# Peers" and rest == ["", "| a |", ""]
    assert FACTS.fullmatch(facts), facts
    assert facts.startswith("`python benchmarks/matrix/peers.py --data ml-100k --write` on ")
    assert ", scikit-learn " in facts and "no-such" not in facts


def test_the_command_has_no_folder_of_the_machine(tmp_path):
    words = [str(BENCHMARKS / "core.py"), "--parts", str(tmp_path), "--only", "a b"]
    assert TABLE["command"](words) == "python benchmarks/core.py --parts FOLDER --only 'a b'"


def test_a_table_of_changed_code_says_so(tmp_path, monkeypatch):
    said = {"rev-parse": "0123abc", "status": " M src/onlinefw/steps.py"}
    monkeypatch.setitem(TABLE["commit"].__globals__, "_git", lambda word, *_: said[word])
    assert TABLE["commit"]() == "0123abc with changes"  # which FACTS does not accept
    said["rev-parse"], said["status"] = "", ""
    monkeypatch.setenv("COMMIT", "4567def")
    assert TABLE["commit"]() == "4567def"  # a copy without history
