"""Ids that were forgotten are not found, keep their place empty, and leave others as they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.readers.id_tables import IntegerTable, TextTable, table_from_state

integers = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(integers, unique=True, min_size=1, max_size=200), st.randoms())
def test_all_others_are_found_where_they_were(ids, random):
    table = IntegerTable()
    table.append(np.array(ids, np.int64))
    gone = random.sample(range(len(ids)), random.randrange(len(ids)))
    for k in gone:
        table.forget(k)
    for one in (table, table_from_state(table.state_dict())):
        expected = [-1 if k in gone else k for k in range(len(ids))]
        assert [one.get(i) for i in ids] == expected
        assert one.indices(np.array(ids, np.int64)).tolist() == expected
        assert one.ids.tolist() == [None if k in gone else i for k, i in enumerate(ids)]
        one.append(np.array(ids, np.int64)[gone])  # they come back as new ones
        assert [one.get(ids[k]) for k in gone] == [len(ids) + k for k in range(len(gone))]


def test_an_empty_text_is_not_one_that_was_forgotten():
    table = TextTable()
    table.append(["ann", "", "bob"])
    table.forget(0)
    again = table_from_state(table.state_dict())
    for one in (table, again):
        assert one.indices(["ann", "", "bob"]).tolist() == [-1, 1, 2]
        assert one.ids.tolist() == [None, "", "bob"]


@pytest.mark.parametrize("bad", [np.array([2]), np.array([-1]), np.array([0, 0]), [0]])
def test_a_state_that_forgets_what_is_not_there_is_refused(bad):
    table = TextTable()
    table.append(["ann", "bob"])
    with pytest.raises(ValueError, match="forgotten"):
        table_from_state({**table.state_dict(), "forgotten": bad})
