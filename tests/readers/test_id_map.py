"""Ids get places in the order of their first appearance, whatever they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinefw.readers import IdMap

INTEGERS = st.integers(-(10**18) + 1, 10**18 - 1) | st.integers(0, 50) | st.integers(0, 1 << 25)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda t: t == t.strip() != ""
)


def in_order(ids):
    return list(dict.fromkeys(ids))


@given(st.lists(st.lists(INTEGERS)))
def test_integers(chunks):
    ids = IdMap()
    places = [ids.add(np.array(chunk, dtype=np.int64)) for chunk in chunks]
    flat = [i for chunk in chunks for i in chunk]
    known = in_order(flat)
    assert ids.ids.tolist() == known and len(ids) == len(known) and ids.ids.dtype == np.int64
    assert [known[p] for chunk in places for p in chunk] == flat
    if known:
        assert ids.lookup(known).tolist() == list(range(len(known)))


@given(st.lists(st.lists(INTEGERS) | st.lists(TEXTS)))
def test_integers_and_text_together(chunks):
    ids = IdMap()
    for chunk in chunks:
        given_ids = np.empty(len(chunk), dtype=object)
        given_ids[:] = chunk
        ids.add(given_ids)
    known = in_order(str(i) for chunk in chunks for i in chunk)
    assert list(map(str, ids.ids)) == known
    again = IdMap.from_state(ids.state_dict())
    assert again.ids.tolist() == ids.ids.tolist() and again.ids.dtype == ids.ids.dtype
    if known:
        assert again.lookup(known).tolist() == list(range(len(known)))


def test_unknown_ids_have_place_minus_one():
    ids = IdMap()
    ids.add([5, 10**12, -3])
    assert ids.lookup([-3, 6, 10**13, 5, -1]).tolist() == [2, -1, -1, 0, -1]
    assert ids.lookup(["5", "05", "five"]).tolist() == [0, -1, -1]
    ids.add(["five"])
    assert ids.lookup([5, 6]).tolist() == [0, -1]
    assert ids.lookup(["5", "05", "five"]).tolist() == [0, -1, 3]


def test_looking_up_adds_nothing():
    ids = IdMap()
    assert ids.lookup([1, 2]).tolist() == [-1, -1] and len(ids) == 0


@pytest.mark.parametrize("bad", [[1.5], [[1, 2]], [None], [""]])
def test_what_is_no_id(bad):
    with pytest.raises((TypeError, ValueError), match=r"ids? must be"):
        IdMap().add(bad)


def test_a_state_with_an_id_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        IdMap.from_state({"kind": "int", "ids": np.array([1, 1])})
