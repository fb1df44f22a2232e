"""Ids that somebody has chosen cannot make numbering them slow."""

import numpy as np
import pytest

from onlinefw.readers import IdMap
from onlinefw.readers.id_map import IntegerTable

N = 2000
GOLDEN = 0x9E3779B97F4A7C15


def times(inverse, k):
    return (k * inverse) % 2**64


#: Integers that have the same leading bits once they are multiplied by a known factor; evenly
#: spaced ones; and ones that differ in the highest bits only.
CHOSEN = {
    "golden ratio": [times(pow(GOLDEN, -1, 2**64), k) for k in range(N)],
    "spaced": [k << 40 for k in range(N)],
    "highest bits": [k << 52 for k in range(N)],
    "in a row": range(N),
}


def steps(table, integers):
    """How many slots are looked at until each integer is found."""
    slots = np.empty(len(table), dtype=np.int64)
    used = np.flatnonzero(table._indices >= 0)
    slots[table._indices[used]] = used
    size = len(table._keys)
    return 1 + (slots[table.indices(integers)] - table._first_slots(integers)) % size


@pytest.mark.parametrize("name", CHOSEN)
def test_chosen_integers_are_found_in_few_steps(name):
    integers = np.array(CHOSEN[name], dtype=np.uint64).view(np.int64)
    table = IntegerTable()
    table.append(integers)
    assert steps(table, integers).mean() < 10.0  # 1.5 is expected; of 2000 in one place, 1000
    np.testing.assert_array_equal(table.indices(integers), np.arange(N))


def test_every_table_hashes_in_its_own_way():
    integers = np.arange(N)
    first, second = IntegerTable(), IntegerTable()
    first.append(integers), second.append(integers)
    assert (first._first_slots(integers) != second._first_slots(integers)).any()


def test_numbers_do_not_depend_on_how_a_table_hashes():
    rng = np.random.default_rng(0)
    chunks = [rng.integers(-500, 500, size=300) * 10**15 for _ in range(10)]
    known = list(dict.fromkeys(np.concatenate(chunks).tolist()))
    for _ in range(5):
        ids = IdMap()
        numbers = np.concatenate([ids.add(chunk) for chunk in chunks])
        assert ids.ids.tolist() == known
        assert [known[k] for k in numbers] == np.concatenate(chunks).tolist()
