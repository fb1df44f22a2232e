"""Each table has all verbs of its protocol, and nothing in it is misspelt."""

import inspect

import pytest

from onlinefw.past import protocols
from onlinefw.past.ray import entries, gram, rows
from onlinefw.past.ray.entries_placement import EntriesPlacement
from onlinefw.past.ray.split_past import SplitPast
from onlinefw.past.ray.table import Verb

KINDS = {
    "rows": (protocols.RowsPast, rows.TABLE, rows.RowsPlacement),
    "gram": (protocols.GramPast, gram.TABLE, gram.GramPlacement),
    "entries": (protocols.EntriesPast, entries.TABLE, EntriesPlacement),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_verbs_are_there(kind):
    protocol, table, _ = KINDS[kind]
    verbs = [name for name, _ in inspect.getmembers(protocol, inspect.isfunction)]
    missing = [
        verb
        for verb in verbs
        if not verb.startswith("_") and verb not in table and verb not in vars(SplitPast)
    ]
    assert missing == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_noted_and_ended_exists(kind):
    _, table, placement = KINDS[kind]
    rows_of_table = {name: verb for name, verb in table.items() if isinstance(verb, Verb)}
    slots = {verb.slot or name for name, verb in rows_of_table.items() if verb.kept == "last"}
    for name, verb in rows_of_table.items():
        assert verb.note is None or callable(getattr(placement, verb.note)), name
        assert set(verb.ends) <= slots, name
        assert verb.kept in (None, "first", "log", "last"), name
