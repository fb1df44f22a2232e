"""What compiled loops get is checked at the door: they trust it."""

import ctypes
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onlinefw
from onlinefw.native import Pointer, Struct, address, library, loops, struct
from onlinefw.native.library import LEVELS

Point = struct("Point", at=Pointer("real"), n=int, x=float, name=Pointer(np.uint32, optional=True))
Pair = struct("Pair", one=Struct, other=Struct, read=Pointer(np.int64, read=True))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(4, np.float32),
        np.zeros(4, ">f8"),
        np.zeros((4, 4)).T,
        np.zeros(8)[::2],
        np.zeros(33, np.uint8)[1:].view(float),  # not where its numbers may begin
        [0.0],
        None,
        1.0,
    ],
    ids=lambda x: f"{type(x).__name__}-{getattr(x, 'dtype', '')}",
)
def test_an_array_that_a_loop_cannot_take_is_refused(array):
    with pytest.raises(TypeError, match=r"takes whole arrays of float64 in C order, got \S+"):
        Point(at=array)
    with pytest.raises(TypeError, match="whole arrays"):
        address(array, np.dtype(float), read=True)


def test_a_read_only_array_is_for_reading():
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert address(frozen, np.int64, read=True) == frozen.ctypes.data
    assert Pair(read=frozen).read == frozen.ctypes.data
    with pytest.raises(TypeError, match="whole arrays"):
        address(frozen, np.int64)


def test_a_struct_has_what_it_was_given_and_keeps_it():
    array = np.zeros((2, 3), np.float32)
    point = Point(np.float32, at=array, n=6, x=0.5)
    assert (point.at, point.n, point.x, point.name) == (array.ctypes.data, 6, 0.5, None)
    assert point.kept["at"] is array
    name = np.zeros(2, np.uint32)
    assert point.set(name=name, n=7) is point
    assert (point.name, point.n, point.x) == (name.ctypes.data, 7, 0.5)
    pair = Pair(one=point)
    assert pair.one == ctypes.addressof(point) and pair.other is None
    assert pair.kept["one"] is point
    with pytest.raises(TypeError, match="float32"):
        point.set(at=np.zeros(3))
    with pytest.raises(KeyError, match="nothing"):
        point.set(nothing=3)


def test_empty_arrays_and_arrays_of_files_are_taken(tmp_path):
    empty = np.zeros((0, 3))
    assert address(empty, float) == empty.__array_interface__["data"][0]
    np.save(tmp_path / "x.npy", np.arange(5.0))
    stored = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert address(stored, float, read=True) == stored.ctypes.data


def test_a_loop_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_loop"):
        loops.of("no_such_loop", np.float32)


def structs():
    """All structs of the package, which are made in modules that say so in a line of their own."""
    root = Path(onlinefw.__file__).parent
    for path in root.rglob("*.py"):
        if re.search(r"^\w+ = struct\(", path.read_text(encoding="utf-8"), re.M):
            name = ".".join(("onlinefw", *path.relative_to(root).with_suffix("").parts))
            for one in vars(importlib.import_module(name)).values():
                if isinstance(one, type) and issubclass(one, Struct) and one is not Struct:
                    yield one


def test_structs_are_as_long_as_those_in_c():
    sizes = {one.__name__: ctypes.sizeof(one) for one in structs()}
    assert len(sizes) > 15
    assert sizes == {name: getattr(library(), f"size_of_{name}")() for name in sizes}


# Processors ---------------------------------------------------------------------------------------

NUMBERS = """
import numpy as np
from onlinefw.estimators.best_items import best_items_of_one
from onlinefw.linalg import row_products
rng = np.random.default_rng(0)
X, T = rng.standard_normal((9, 45)), rng.standard_normal((45, 2))
print(*row_products(X, T).ravel(), *best_items_of_one(T[:, 0], X, np.zeros(9), 4)[0])
"""


def with_cpu(level):
    done = subprocess.run(
        [sys.executable, "-c", NUMBERS],
        env={**os.environ, "ONLINEFW_CPU": level},
        capture_output=True,
        text=True,
    )
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize("level", LEVELS)
def test_all_levels_give_the_same_numbers_up_to_rounding(level):
    if list(LEVELS).index(level) > library().processor_level():
        pytest.skip(f"this processor cannot run {level}")
    expected, _ = with_cpu("")
    found, said = with_cpu(level)
    assert said == "" and len(found) == 22
    np.testing.assert_allclose(np.array(found, float), np.array(expected, float), rtol=1e-13)


def test_a_level_that_is_not_there_is_one_clear_error():
    _, said = with_cpu("v5")
    assert "ValueError: ONLINEFW_CPU must be one of baseline, v3, v4, got 'v5'" in said


def test_a_level_above_the_processor_is_refused(monkeypatch):
    module = sys.modules["onlinefw.native.library"]  # not the function of that name

    class Old:
        @staticmethod
        def processor_level():
            return 1

    monkeypatch.setattr(module, "_file", lambda level: Path(level) if level else None)
    monkeypatch.setattr(module, "_load", lambda level: Old)
    monkeypatch.setenv("ONLINEFW_CPU", "v4")
    with pytest.raises(ValueError, match="'v4', and this processor has no more than 'v3'"):
        module.library.__wrapped__()
