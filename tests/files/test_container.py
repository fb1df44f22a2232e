"""A file holds a tree of values and arrays; whatever is wrong with it, it is refused."""

import errno
import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from onlinefw.files import ModelFileError, container, read_header
from onlinefw.files.container import read_tree, write_tree

arrays = npst.arrays(
    st.one_of(
        npst.floating_dtypes(),
        npst.integer_dtypes(),
        npst.boolean_dtypes(),
        npst.unicode_string_dtypes(min_len=1, max_len=4),
    ),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
trees = st.recursive(
    values | arrays,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4) | st.just("$array"), inner, max_size=4)
    ),
    max_leaves=12,
)


def assert_same_tree(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same_tree(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_tree(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
    else:
        assert repr(one) == repr(other)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@settings(max_examples=30)
@given(tree=trees)
def test_what_is_read_is_what_was_written(tree, folder):
    write_tree(folder / "tree.ofw", "model", tree)
    assert_same_tree(read_tree(folder / "tree.ofw", "model")[1], tree)


TREE = {"coef": np.arange(300.0), "names": ["a", "b"], "gap": float("nan"), "t": 3}


@pytest.fixture(scope="module")
def whole(folder):
    write_tree(folder / "whole.ofw", "model", TREE)
    return (folder / "whole.ofw").read_bytes()


def assert_refused(path, kind="model", match=None):
    with pytest.raises(ModelFileError, match=match) as refused:
        read_tree(path, kind)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@settings(max_examples=100)
@given(data=st.data())
def test_a_file_cut_anywhere_is_refused(data, whole, folder):
    cut = data.draw(st.integers(0, len(whole) - 1))
    (folder / "cut.ofw").write_bytes(whole[:cut])
    assert_refused(folder / "cut.ofw")


@settings(max_examples=100)
@given(data=st.data(), mask=st.integers(1, 255))
def test_a_file_with_any_byte_changed_is_refused(data, mask, whole, folder):
    changed = bytearray(whole)
    changed[data.draw(st.integers(0, len(whole) - 1))] ^= mask
    (folder / "changed.ofw").write_bytes(changed)
    assert_refused(folder / "changed.ofw")


def test_a_file_with_something_added_is_refused(whole, folder):
    for name, text in (("after.ofw", whole + b"x"), ("before.ofw", b"x" + whole)):
        (folder / name).write_bytes(text)
        assert_refused(folder / name)


@pytest.mark.parametrize("content", [b"", b"PK", b"user,item\n1,2\n", b"\x80\x04N."])
def test_a_foreign_file_is_refused(content, folder):
    (folder / "foreign").write_bytes(content)
    assert_refused(folder / "foreign", match="is not an onlinefw file")


def test_another_archive_is_refused(folder):
    np.savez(folder / "arrays.npz", a=np.ones(3))
    assert_refused(folder / "arrays.npz", match="is not an onlinefw file")


def test_a_newer_format_is_refused_with_its_version(folder, monkeypatch):
    monkeypatch.setattr(container, "FORMAT_VERSION", 3)
    monkeypatch.setattr(container, "__version__", "9.9")
    write_tree(folder / "newer.ofw", "model", TREE)
    monkeypatch.undo()
    assert_refused(folder / "newer.ofw", match=r"newer onlinefw \(9.9, format 3; .*update onlinefw")


def test_another_kind_is_refused_with_what_it_is(folder):
    write_tree(folder / "run.ckpt", "checkpoint", TREE)
    assert_refused(folder / "run.ckpt", match="is a checkpoint; read it with")
    write_tree(folder / "model.ofw", "model", TREE)
    assert_refused(folder / "model.ofw", "checkpoint", match="is a model file: it only predicts")


def test_the_header_tells_what_a_file_is(folder):
    write_tree(folder / "model.ofw", "model", TREE)
    header = read_header(folder / "model.ofw")
    assert (header["kind"], header["format_version"]) == ("model", container.FORMAT_VERSION)


def test_a_missing_file_is_said_to_be_missing(folder):
    with pytest.raises(FileNotFoundError):
        read_tree(folder / "nowhere.ofw", "model")


def test_numpy_reads_the_arrays_too(whole, folder):
    with np.load(io.BytesIO(whole), allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["coef"], TREE["coef"])


def test_the_same_tree_gives_the_same_bytes(whole, folder):
    write_tree(folder / "again.ofw", "model", TREE)
    assert (folder / "again.ofw").read_bytes() == whole


# Files made on purpose, with a digest that fits ---------------------------------------------------


HEADER = {"format": "onlinefw", "kind": "model", "format_version": 1, "onlinefw": "1.0"}


def write_archive(path, *members, compression=zipfile.ZIP_STORED):
    """Write an archive with any (name, text) as members and a digest that is right."""
    with path.open("w+b") as file:
        digested = container._DigestedFile(file)
        with zipfile.ZipFile(digested, "w", compression) as archive:
            archive.comment = container.DIGEST_MARK + b"0" * 64
            for name, text in (("onlinefw.json", json.dumps(HEADER)), *members):
                archive.writestr(name, text)
        digested.write_digest()


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def test_an_array_of_objects_is_refused(folder, tmp_path):
    class Shout:
        def __reduce__(self):
            return (tmp_path.joinpath("shout").touch, ())

    content = json.dumps({"a": {"$array": "a"}})
    write_archive(folder / "o.ofw", ("a.npy", npy(np.array([Shout()]))), ("content.json", content))
    assert_refused(folder / "o.ofw", match="holds object")
    assert not (tmp_path / "shout").exists()


def test_an_array_that_promises_more_than_there_is_is_refused_before_memory_is_taken(folder):
    text = npy(np.zeros(10**6, np.uint8))[:200].replace(b"(1000000,)", b"(99999999999999,)")
    write_archive(folder / "large.ofw", ("a.npy", text), ("content.json", "{}"))
    assert_refused(folder / "large.ofw", match="another size")


@pytest.mark.parametrize(
    "content",
    [
        "NaN",
        "[",
        '{"$array": "missing"}',
        '{"$array": ["a"]}',
        '{"$float": "__import__"}',
        '{"$dict": [["a"]]}',
        '{"$dict": [[1, 2]]}',
        '{"$call": "os.system"}',
        "[" * 100_000,
    ],
)
def test_what_is_no_tree_is_refused(content, folder):
    write_archive(folder / "tree.ofw", ("content.json", content))
    assert_refused(folder / "tree.ofw")


def test_a_member_compressed_in_another_way_is_refused(folder):
    content = ("content.json", " " * 10**6 + "{}")
    write_archive(folder / "other.ofw", content, compression=zipfile.ZIP_BZIP2)
    assert_refused(folder / "other.ofw", match="compressed by another method")


def test_compressed_files_are_small_and_hold_the_same(folder):
    tree = {"coef": np.zeros(10**6), "t": 3}
    write_tree(folder / "small.ofw", "model", tree, compress=True)
    assert (folder / "small.ofw").stat().st_size < 20_000
    np.testing.assert_array_equal(read_tree(folder / "small.ofw", "model")[1]["coef"], tree["coef"])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(folder):
    write_archive(folder / "twice.ofw", ("content.json", "{}"), ("content.json", "[]"))
    assert_refused(folder / "twice.ofw", match="same name")


# Disks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_full_disk_leaves_what_was_there_and_nothing_else(share, whole, tmp_path, monkeypatch):
    path, room = tmp_path / "model.ofw", share * len(whole)
    write_tree(path, "model", {"t": 1})
    written = 0
    write = container._DigestedFile.write

    def full(self, data):
        nonlocal written
        written += len(data)
        if written > room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(container._DigestedFile, "write", full)
    with pytest.raises(OSError, match=r"No space left on device; nothing was written.*model"):
        write_tree(path, "model", TREE)
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["model.ofw"]
    assert read_tree(path, "model")[1] == {"t": 1}


@pytest.mark.parametrize("value", [object(), {1: 2}, np.array([None]), {1, 2}, b"bytes"])
def test_what_a_file_cannot_hold_is_refused_before_it_is_opened(value, tmp_path):
    with pytest.raises(TypeError, match="a file"):
        write_tree(tmp_path / "model.ofw", "model", {"value": value})
    assert not list(tmp_path.iterdir())
