"""Forged values, trees and bytes, all drawn from one generator so that a number names each."""

import copy
import math

import numpy as np

#: Numbers and texts that break what believes them.
SCALARS = [
    *(0, 1, -1, 2, 7, 255, 10**6, 10**8, 10**12, 2**31, 2**32, 2**63, -(2**63), 2**64, 10**40),
    *(0.5, -0.0, 1e-320, 1e308, -1e308, math.nan, math.inf, -math.inf),
    *(True, False, None, "", "x", "nan", "__class__", "../../etc/passwd", "\x00", "é" * 50),
]
CONTAINERS = [[], {}, [[]], {"a": 1}, [1, 2, 3], [None] * 5, [[[[[[]]]]]]]
DTYPES = ["f8", "f4", "f2", "i8", "i4", "i1", "u8", "u4", "u1", "?", "c16", "U3", "S2", "M8[s]"]


#: Whoever sets these decides how long a round takes and where: any value is fair.
LEFT_ALONE = {"inner_steps", "workers", "device"}


def forged_tree(tree, rng):
    """Return a copy with one to three places changed."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.integers(1, 4)):
        _change_one(tree, rng)
    return tree


def _change_one(tree, rng):
    places = list(_places(tree))
    holder, key = places[rng.integers(len(places))]
    act = rng.integers(10)
    if act == 0 and isinstance(holder, dict):
        del holder[key]
    elif act == 1 and isinstance(holder, dict):
        holder[f"{key}_"] = holder.pop(key)
    elif act == 2:
        other, its_key = places[rng.integers(len(places))]
        if _is_there(other, its_key):
            holder[key] = copy.deepcopy(other[its_key])
    elif act == 3:
        holder[key] = copy.deepcopy(_one_of(CONTAINERS, rng))
    elif act == 4:
        holder[key] = forged_array(np.arange(rng.integers(0, 20)), rng)
    elif isinstance(holder[key], np.ndarray):
        holder[key] = forged_array(holder[key], rng)
    else:
        holder[key] = forged_scalar(holder[key], rng)


def _places(tree):
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        if key in LEFT_ALONE:
            continue
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


def _is_there(holder, key):
    return key in holder if isinstance(holder, dict) else key < len(holder)


def _one_of(values, rng):
    return values[rng.integers(len(values))]


def forged_scalar(value, rng):
    if isinstance(value, int) and rng.random() < 0.5:  # a little off is harder to notice
        return value + int(rng.integers(-2, 3))
    return _one_of(SCALARS, rng)


def forged_array(array, rng):
    """Return an array of another type, shape, order or content."""
    act = rng.integers(6)
    if act == 0:
        try:
            return array.astype(_one_of(DTYPES, rng))
        except (ValueError, TypeError, OverflowError):
            return array[:0]
    if act == 1:
        return array[: rng.integers(0, max(1, len(array)))] if array.ndim else array.reshape(1)
    if act == 2:
        return np.concatenate((array, array)) if array.ndim else np.stack([array] * 3)
    if act == 3:
        shapes = [(1, *array.shape), (*array.shape, 1), (array.size,), (0, 5)]
        shape = _one_of(shapes, rng)
        return array.reshape(shape) if np.prod(shape) == array.size else np.zeros(shape)
    array = array.copy()
    if act == 4:
        rng.shuffle(array.reshape(-1))
        return array
    flat = array.reshape(-1)
    for _ in range(rng.integers(1, 4)):
        if flat.size and array.dtype.kind in "iuf":
            _put(flat, rng.integers(flat.size), rng)
    return array


def _put(flat, at, rng):
    value = _one_of([v for v in SCALARS if isinstance(v, (int, float))], rng)
    with np.errstate(all="ignore"):
        if flat.dtype.kind == "f":
            flat[at] = np.float64(min(value, 1e308)).astype(flat.dtype)
        elif math.isfinite(value):
            bits = 8 * flat.dtype.itemsize
            flat[at] = np.array(int(value) % 2**bits, np.uint64).astype(flat.dtype)


#: What texts are made to hold.
TOKENS = [
    *(b"", b",", b"\n", b"\r", b"\r\n", b"\t", b'"', b"'", b":", b" ", b"\x00", b"\xff\xfe", b"#"),
    *(b"nan", b"inf", b"-inf", b"1e400", b"-1e400", b"1_0", b"0x10", b"1e", b"--1", b"=1+1"),
    *(b"9" * 20, b"9" * 400, b"-1", b"4294967296", b"1000000000", b"1000000000000:1", b"0:1"),
    *(b"\xef\xbb\xbf", b"{", b"}", b"[" * 2000, b'{"a":' * 500, b"null", b"true", b"\\u0000"),
    *(b"a" * 5000, b"\xe2\x80\xa8", b"\x1b[31m", b"PAR1", b"PK\x03\x04", b"\x1f\x8b\x08"),
]


def forged_bytes(data, rng):
    """Return bytes with a few of them changed, cut, repeated, or replaced by a token."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at, end = sorted(int(k) for k in rng.integers(0, len(data) + 1, 2))
        act = rng.integers(7)
        if act == 0 and data:
            data[min(at, len(data) - 1)] = rng.integers(256)
        elif act == 1:
            del data[at:]
        elif act == 2:
            del data[at : min(end, at + 40)]
        elif act == 3:
            data[at:at] = data[at : min(end, at + 2000)]
        else:
            data[at : at + int(rng.integers(0, 4))] = _one_of(TOKENS, rng)
    return bytes(data)
