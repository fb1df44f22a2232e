"""Real data sets: fetched once, verified, parsed and kept; or taken from the folder."""

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onlinefw import datasets
from onlinefw.datasets import DataFileError, DownloadError, Ratings, data_folder, fetch
from onlinefw.datasets.catalogue import LOADERS
from onlinefw.datasets.registry import ENTRIES

from .publisher import TINY, closed_port, mat, serving, tiny_entry, zipped

SERVED = sorted(set(TINY) - {"mug64"})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder, and no way to any publisher."""
    monkeypatch.setenv("ONLINEFW_DATA", str(tmp_path / "data"))
    nowhere = closed_port()
    for name in TINY:
        monkeypatch.setitem(ENTRIES, name, tiny_entry(name, nowhere))
    return tmp_path / "data"


@pytest.fixture
def publisher(folder, monkeypatch):
    """The tiny data sets, served on this machine."""
    with serving() as publisher:
        for name in SERVED:
            publisher.files |= TINY[name][0]
            monkeypatch.setitem(ENTRIES, name, tiny_entry(name, publisher.address))
        yield publisher


def put(folder, name):
    """Put the publisher's files of a data set into the folder by hand."""
    folder.mkdir(exist_ok=True)
    for file, content in TINY[name][0].items():
        (folder / file).write_bytes(content)


def same(one, other):
    for a, b in zip(vars(one).values(), vars(other).values(), strict=True):
        if hasattr(a, "toarray"):
            a, b = a.toarray(), b.toarray()
        np.testing.assert_array_equal(a, b)


# What comes out


@pytest.mark.parametrize(("name", "less"), [("100k", 0.0), ("1m", 0.0), ("20m", 0.5)])
def test_ratings_are_numbered_without_gaps_in_the_order_of_the_file(publisher, name, less):
    ratings = datasets.fetch_movielens(name)
    assert ratings.shape == (4, 3)
    np.testing.assert_array_equal(ratings.rows, [0, 2, 0, 1, 3])
    np.testing.assert_array_equal(ratings.cols, [0, 0, 1, 1, 2])
    np.testing.assert_array_equal(ratings.values, np.array([5, 1, 4, 3, 2]) - less)
    np.testing.assert_array_equal(ratings.row_ids, [1, 2, 3, 5])
    np.testing.assert_array_equal(ratings.col_ids, [10, 30, 40])
    np.testing.assert_array_equal(ratings.timestamps, [100, 101, 102, 103, 104])
    assert (ratings.rows.dtype, ratings.values.dtype) == (np.int32, np.float32)


def test_movielens_100k_has_the_official_folds(publisher):
    ratings = datasets.fetch_movielens("100k")
    np.testing.assert_array_equal(ratings.fold, [5, 4, 3, 2, 1])
    train, test = ratings.train_test(fold=4)
    assert (train.values.size, test.shape) == (4, ratings.shape)
    np.testing.assert_array_equal(test.rows, [2])
    with pytest.raises(ValueError, match="no fold 6; choose 1 to 5"):
        ratings.train_test(6)
    with pytest.raises(ValueError, match="no official folds"):
        datasets.fetch_movielens("1m").train_test(1)


def test_folds_kept_in_a_file_of_their_own_are_found(folder):
    folder.mkdir()
    arrays = dict(user=np.array([1, 2]), item=np.array([1, 1]), rating=np.array([3, 4]))
    np.savez_compressed(folder / "ml-100k.npz", **arrays)
    assert datasets.fetch_movielens("100k").fold is None
    np.savez_compressed(folder / "ml-100k_folds.npz", fold=np.array([2, 1]))
    np.testing.assert_array_equal(datasets.fetch_movielens("100k").fold, [2, 1])


def test_shuffled_ratings_are_the_same_ratings(rng):
    ratings = Ratings.from_ids(*rng.integers(1, 9, (3, 50)), timestamps=np.arange(50))
    shuffled = ratings.shuffled(seed=1)
    assert not np.array_equal(shuffled.timestamps, ratings.timestamps)
    same(shuffled.take(np.argsort(shuffled.timestamps)), ratings)


def test_digits_are_the_bytes_of_the_file(publisher):
    digits = datasets.fetch_mnist()
    np.testing.assert_array_equal(digits.X_train, np.arange(48).reshape(3, 4, 4))
    np.testing.assert_array_equal(digits.X_test.ravel(), np.arange(48, 80))
    assert digits.X_train.dtype == np.uint8
    assert digits.y_train.tolist() == [7, 0, 9]
    assert digits.y_test.tolist() == [1, 2]


def test_rcv1_rows_are_sparse_with_signs_for_labels(publisher):
    news = datasets.fetch_rcv1_binary()
    expected = np.zeros((2, 6), dtype=np.float32)
    expected[0, [0, 2]], expected[1, 1] = (0.6, 0.8), 1
    np.testing.assert_array_equal(news.X_train.toarray(), expected)
    np.testing.assert_array_equal(news.X_test.toarray(), np.eye(6)[5:])
    assert news.X_train.dtype == np.float32
    assert news.y_train.tolist() == [-1, 1]
    assert news.y_test.tolist() == [1]


def test_the_subset_leaves_out_mixed_stories_and_repeats_and_splits_with_seed_zero(publisher):
    news = datasets.fetch_rcv1v2_subset()
    expected = np.zeros((4, 6), dtype=np.float32)
    expected[[0, 1, 3], [0, 1, 4]] = 1
    expected[2, [3, 5]] = 0.6, 0.8
    labels = np.array([1, -1, 1, -1])
    test = np.random.default_rng(0).permutation(4)[3:]
    np.testing.assert_array_equal(news.X_test.toarray(), expected[test])
    np.testing.assert_array_equal(news.y_test, labels[test])
    np.testing.assert_array_equal(news.X_train.toarray(), np.delete(expected, test, axis=0))
    np.testing.assert_array_equal(news.y_train, np.delete(labels, test))


def test_the_masks_of_the_camera_are_in_the_order_of_the_picture(folder):
    put(folder, "mug64")
    camera = datasets.fetch_single_pixel("mug64")
    assert camera.masks.shape == (2, 4)  # as many as there are readings
    assert camera.y.tolist() == [5, 7]
    assert camera.image is None
    # The file's vector, reshaped by columns and flipped upside down, is the picture.
    vector = np.array([1.0, 2.0, 3.0, 4.0])
    picture = np.flipud(vector.reshape(2, 2, order="F"))
    np.testing.assert_array_equal(camera.picture(picture.ravel()), picture)
    masks = np.arange(8).reshape(2, 4) % 2
    np.testing.assert_array_equal(camera.masks @ picture.ravel(), masks @ vector)


@pytest.mark.parametrize("apart", [True, False])
def test_masks_may_be_in_the_file_of_the_readings_or_apart(folder, monkeypatch, apart):
    files = tuple(replace(file, sha256=None) for file in ENTRIES["R64"].files)
    entry = replace(ENTRIES["R64"], files=files, counts={"pixels": 4})
    monkeypatch.setitem(ENTRIES, "R64", entry)
    y, masks = np.array([[5.0], [7.0]]), np.eye(4)
    folder.mkdir()
    (folder / "R_64.mat").write_bytes(mat(y=y) if apart else mat(y=y, Phi=masks))
    if apart:
        with pytest.raises(DataFileError, match=r"R_64\.mat has no masks Phi; put Phi_64\.mat"):
            fetch("R64")
        (folder / "Phi_64.mat").write_bytes(mat(Phi=masks))
    camera = fetch("R64")
    np.testing.assert_array_equal(camera.masks @ camera.picture([1, 2, 3, 4]).ravel(), [3, 1])


def test_every_entry_has_a_loader_and_every_loader_an_entry():
    assert list(LOADERS) == list(ENTRIES)


@pytest.mark.parametrize("load", [datasets.fetch_movielens, datasets.fetch_single_pixel, fetch])
def test_an_unknown_name_is_refused_with_the_names_there_are(load):
    with pytest.raises(ValueError, match=r"(100k|R64).*'nonsense'|'nonsense'.*mug64"):
        load("nonsense")


# Where it comes from


@pytest.mark.parametrize("name", SERVED)
def test_a_data_set_is_downloaded_once_and_then_kept(publisher, folder, name):
    first = fetch(name)
    asked = len(publisher.requests)
    assert asked == len(TINY[name][0])
    for file in TINY[name][0]:
        (folder / file).unlink()
    same(fetch(name), first)
    assert len(publisher.requests) == asked
    assert os.listdir(folder) == [f"{ENTRIES[name].cache}.npz"]  # and nothing temporary


@pytest.mark.parametrize("name", sorted(TINY))
def test_a_file_put_there_by_hand_needs_no_network(folder, name):
    put(folder, name)
    first = fetch(name)
    same(fetch(name), first)
    assert (folder / f"{ENTRIES[name].cache}.npz").exists()


def test_a_kept_file_can_be_read_by_whoever_can_read_the_folder(folder):
    put(folder, "mnist")
    fetch("mnist")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((folder / "mnist.npz").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("name", ["mnist", "movielens1m", "mug64"])
def test_a_read_only_folder_is_read_and_not_written(folder, name):
    put(folder, name)
    before = sorted(os.listdir(folder))
    folder.chmod(0o555)
    try:
        fetch(name)
        assert sorted(os.listdir(folder)) == before
        with pytest.raises(DownloadError, match=r"cannot be written.*ONLINEFW_DATA"):
            fetch("rcv1")
    finally:
        folder.chmod(0o755)


def test_without_the_variable_the_folder_is_the_platforms_cache_folder(monkeypatch):
    monkeypatch.delenv("ONLINEFW_DATA", raising=False)
    assert "onlinefw" in data_folder().parts


# What goes wrong


def test_no_network_names_the_address_and_where_to_put_the_file(folder):
    with pytest.raises(DownloadError) as caught:
        fetch("movielens20m")
    message = str(caught.value)
    assert ENTRIES["movielens20m"].files[0].url in message
    assert f"put the file into {folder} as ml-20m.zip by hand" in message
    assert "no connection" in message
    assert "\n" not in message


def test_a_file_without_an_address_of_its_own_names_the_page(folder):
    with pytest.raises(DownloadError, match=r"R64\.mat.*dsp\.rice\.edu.*as R64\.mat"):
        fetch("R64")


def test_a_page_that_is_gone_says_so(publisher):
    del publisher.files["ml-1m.zip"]
    with pytest.raises(DownloadError, match="the server says 404"):
        fetch("movielens1m")


def test_a_wrong_checksum_is_refused_and_nothing_is_left(publisher, folder):
    publisher.files["ml-1m.zip"] += b"!"
    with pytest.raises(DownloadError, match="checksum other than the published sha256:"):
        fetch("movielens1m")
    assert os.listdir(folder) == []


def test_an_interrupted_download_continues_where_it_stopped(publisher, folder):
    content = publisher.files["ml-1m.zip"]
    publisher.cut = 50
    with pytest.raises(DownloadError, match="could not download"):
        fetch("movielens1m")
    assert (folder / "ml-1m.zip.part").read_bytes() == content[:50]
    publisher.cut = None
    assert fetch("movielens1m").values.size == 5
    assert publisher.requests == [("ml-1m.zip", None), ("ml-1m.zip", "bytes=50-")]
    assert sorted(os.listdir(folder)) == ["ml-1m.npz", "ml-1m.zip"]


def test_a_server_that_sends_no_parts_sends_everything_again(publisher, folder):
    folder.mkdir()
    (folder / "ml-1m.zip.part").write_bytes(publisher.files["ml-1m.zip"][:50])
    publisher.ranges = False
    assert fetch("movielens1m").values.size == 5


def test_a_part_longer_than_the_file_starts_anew(publisher, folder):
    folder.mkdir()
    (folder / "ml-1m.zip.part").write_bytes(b"x" * 10_000)
    assert fetch("movielens1m").values.size == 5
    assert [asked for _, asked in publisher.requests] == ["bytes=10000-", None]


def test_a_file_by_hand_with_a_wrong_checksum_is_refused(folder):
    put(folder, "movielens1m")
    (folder / "ml-1m.zip").write_bytes(b"not this")
    with pytest.raises(DataFileError, match=r"ml-1m\.zip has sha256 .* is known; delete it"):
        fetch("movielens1m")


@pytest.mark.parametrize("name", ["mug64", "R64"])
def test_so_is_a_file_that_has_no_address_and_one_that_is_optional(folder, name):
    folder.mkdir()
    for file in ("R64.mat", "Mug_64.mat", "Phi_64.mat"):
        (folder / file).write_bytes(b"not this")
    with pytest.raises(DataFileError, match=r"64\.mat has sha256 .*get it again from http"):
        fetch(name)


def test_every_file_has_a_sha256_but_those_of_which_nobody_states_one():
    without = {name for name, entry in ENTRIES.items() for f in entry.files if not f.sha256}
    assert without == {"rcv1", "rcv1v2-subset", "R64"}
    known = [f.sha256 for entry in ENTRIES.values() for f in entry.files if f.sha256]
    assert all(len(bytes.fromhex(digest)) == 32 for digest in known)


def test_an_md5_is_compared_only_where_there_is_no_sha256():
    raw = ENTRIES["movielens1m"].files[0]
    assert raw.md5 and raw.digest == f"sha256:{raw.sha256}"
    assert replace(raw, sha256=None).digest == f"md5:{raw.md5}"
    assert replace(raw, sha256=None, md5=None).digest is None


def unchecked(monkeypatch, name):
    monkeypatch.setitem(ENTRIES, name, tiny_entry(name, checksums=False))


@pytest.mark.parametrize("name", sorted(TINY))
@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"<html>"])
def test_a_damaged_file_is_named_and_nothing_is_kept(folder, monkeypatch, name, damage):
    unchecked(monkeypatch, name)
    put(folder, name)
    victim = folder / next(iter(TINY[name][0]))
    victim.write_bytes(damage(victim.read_bytes()))
    with pytest.raises(DataFileError) as caught:
        fetch(name)
    assert str(victim) in str(caught.value)
    assert "delete it and get it again" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (folder / f"{ENTRIES[name].cache}.npz").exists()


@pytest.mark.parametrize(
    "text",
    [
        "1::10::5\n",  # a column is missing
        "1::10::good::3\n",
        "1::10::::3\n",
        "1::10::5::3::4\n",
        "",
    ],
)
def test_malformed_ratings_are_refused(folder, monkeypatch, text):
    unchecked(monkeypatch, "movielens1m")
    put(folder, "movielens1m")
    (folder / "ml-1m.zip").write_bytes(zipped(**{"ml-1m/ratings.dat": text}))
    with pytest.raises(DataFileError, match=r"ml-1m\.zip"):
        fetch("movielens1m")


def test_a_flipped_bit_in_an_archive_is_noticed(folder, monkeypatch):
    unchecked(monkeypatch, "movielens20m")
    put(folder, "movielens20m")
    path = folder / "ml-20m.zip"
    content = bytearray(path.read_bytes())
    content[content.index(b"ratings.csv") + 30] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"ml-20m\.zip"):
        fetch("movielens20m")


@pytest.mark.parametrize("name", sorted(set(TINY) - {"mug64"}))
def test_a_file_with_other_counts_is_refused(folder, monkeypatch, name):
    put(folder, name)
    counts = {key: n + (key not in ("features", "side")) for key, n in TINY[name][1].items()}
    monkeypatch.setitem(ENTRIES, name, replace(ENTRIES[name], counts=counts))
    with pytest.raises(DataFileError, match="were published"):
        fetch(name)
    assert not (folder / f"{ENTRIES[name].cache}.npz").exists()


def test_topics_numbered_in_another_order_are_refused(folder, monkeypatch):
    import bz2

    put(folder, "rcv1v2-subset")
    name = ENTRIES["rcv1v2-subset"].files[0].name
    # From 1: C11 and CCAT would be 1 and 34, which is E11 here.
    (folder / name).write_bytes(bz2.compress(b"1,34 1:1\n71 2:1\n71 3:1\n"))
    with pytest.raises(DataFileError, match="alphabetical order"):
        fetch("rcv1v2-subset")


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"zip"])
def test_a_damaged_kept_file_is_named_with_the_remedy(folder, damage):
    put(folder, "mnist")
    fetch("mnist")
    kept = folder / "mnist.npz"
    kept.write_bytes(damage(kept.read_bytes()))
    with pytest.raises(DataFileError, match=r"mnist\.npz is damaged .* delete it"):
        fetch("mnist")


def test_a_kept_file_of_something_else_is_named_with_the_remedy(folder):
    folder.mkdir()
    np.savez_compressed(folder / "mnist.npz", x_train=np.zeros(3))
    with pytest.raises(DataFileError, match=r"no array y_train, x_test, y_test; delete it"):
        fetch("mnist")


@pytest.mark.parametrize(
    ("missing", "name"), [("pooch", "mnist"), ("pyarrow", "movielens1m")], ids=["pooch", "pyarrow"]
)
def test_without_the_extra_it_says_what_to_install(tmp_path, missing, name):
    (tmp_path / "ml-1m.zip").write_bytes(TINY["movielens1m"][0]["ml-1m.zip"])
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from dataclasses import replace\n"
        "from onlinefw.datasets import fetch, registry\n"
        "entry = registry.ENTRIES['movielens1m']\n"
        "file = replace(entry.files[0], sha256=None, md5=None)\n"
        "registry.ENTRIES['movielens1m'] = replace(entry, files=(file,))\n"
        "try:\n"
        f"    fetch({name!r})\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "ONLINEFW_DATA": str(tmp_path)},
    )
    assert f"takes {missing}: pip install 'onlinefw[cli]'" in result.stdout, result.stderr


# The real thing, where it is


def real(name):
    """Load a real data set from the folder that the environment names, and from nowhere else."""
    folder = os.environ.get("ONLINEFW_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("ONLINEFW_DATA names no folder of real data")
    from onlinefw.datasets.store import available

    if not available(name):
        pytest.skip(f"{name} is not in the folder that ONLINEFW_DATA names")
    return fetch(name)


@pytest.mark.parametrize(
    ("name", "mean"),
    [("movielens100k", 3.52986), ("movielens1m", 3.58156), ("movielens20m", 3.5255)],
)
def test_real_ratings(name, mean):
    ratings, counts = real(name), ENTRIES[name].counts
    assert ratings.shape == (counts["users"], counts["items"])
    assert ratings.values.size == counts["ratings"]
    assert ratings.values.mean(dtype=np.float64) == pytest.approx(mean, abs=1e-4)
    assert np.bincount(ratings.cols).min() > 0
    if ratings.fold is not None:
        assert np.bincount(ratings.fold).tolist() == [0] + 5 * [20_000]


def test_real_digits():
    digits = real("mnist")
    assert digits.X_train.shape == (60_000, 28, 28)
    assert np.bincount(digits.y_test).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["rcv1", "rcv1v2-subset"])
def test_real_news(name):
    news = real(name)
    assert news.X_train.shape == (20_242, 47_236)
    norms = np.sqrt(news.X_test.multiply(news.X_test).sum(axis=1))
    np.testing.assert_allclose(norms, 1.0, atol=1e-3)
    assert set(np.unique(news.y_test)) == {-1.0, 1.0}


def test_the_real_mug_is_darker_at_the_edges_of_the_picture():
    camera = real("mug64")
    assert camera.masks.shape == (4170, 4096)
    # How a reading changes with a pixel's mirror is a rough picture of the light there.
    rough = camera.picture((camera.y - camera.y.mean()) @ (camera.masks - 0.5))
    assert rough[30:50, 10:30].mean() > rough[:, -8:].mean()
