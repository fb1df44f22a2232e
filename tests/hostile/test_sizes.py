"""What a file declares is held against its own size before memory is taken for it."""

import io
import json
import tokenize
import tracemalloc
import zipfile

import numpy as np
import pytest

import onlinefw as ofw
from onlinefw.files import ModelFileError, container, load_checkpoint, read_header, save_checkpoint
from onlinefw.files.container import MOST_DEFLATED, MOST_JSON, read_tree, write_tree
from onlinefw.files.labels import labels_from_tree, labels_to_tree
from onlinefw.files.tree import MOST_PLACES

from ..cli.running import ofw as run_ofw
from ..cli.running import ofw_says
from .targets import learned, saved

#: What loading any small file may take: modules, buffers and the arrays of an honest model.
SLACK = 16 * 2**20
HUGE = 10**8


def load(kind, path):
    return ofw.load(path) if kind == "model" else load_checkpoint(path)


def refused(kind, path):
    """Load a forged file; return the error, after checking what it cost."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError) as error:
            load(kind, path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < SLACK + 2 * MOST_DEFLATED * path.stat().st_size
    message = str(error.value)
    assert str(path) in message and len(message.splitlines()) == 1
    return message


def put(tree, where, value):
    """Replace one value of a tree, at keys joined by dots."""
    *keys, last = where.split(".")
    for key in keys:
        tree = tree[int(key) if key.isdigit() else key]
    assert (int(last) if last.isdigit() else last) in (tree if isinstance(tree, dict) else [0, 1])
    tree[int(last) if last.isdigit() else last] = value


def forged(kind, name, path, **changes):
    """Write the file of a model that has learned, with other values."""
    with io.BytesIO(saved(kind, name)[1]) as file:  # a tree of its own
        path.write_bytes(file.getvalue())
    tree = read_tree(path, kind)[1]
    for where, value in changes.items():
        put(tree, where, value)
    write_tree(path, kind, tree, compress=True)
    return path


# Counts -------------------------------------------------------------------------------------------

ITERATE = "state.run.team.learners.0.objective.iterate"
COUNTS = {
    "features of sums": ("checkpoint", "regressor, sums", {"state.n_features_in": 1000}),
    "features of rows": ("checkpoint", "regressor, rows", {"state.n_features_in": HUGE}),
    "features of a model": ("model", "regressor, rows", {"state.n_features_in": HUGE}),
    "features of a search": (
        "checkpoint",
        "search, rows",
        {f"state.models.{k}.n_features_in": HUGE for k in range(3)},
    ),
    "radii": ("checkpoint", "regressor, rows", {"state.run.radii": np.ones(10**6)}),
    "radii of a matrix": ("checkpoint", "completion, ridge", {"state.run.radii": np.ones(10**6)}),
    "models that race": ("checkpoint", "regressor, racing", {"state.run.race.n": HUGE}),
    "models of a search": ("model", "search, rows", {"state.race.n": HUGE}),
    "rows and columns": (
        "checkpoint",
        "completion, ridge",
        {"state.run.team.learners.0.objective.shape": [HUGE, HUGE]},
    ),
    "factors that hold no byte": (
        "checkpoint",
        "completion, ridge",
        {
            "state.run.team.learners.0.objective.shape": [HUGE, HUGE],
            f"{ITERATE}.left": np.empty((HUGE, 0)),
            f"{ITERATE}.right": np.empty((HUGE, 0)),
            f"{ITERATE}.weights": np.empty(0),
        },
    ),
    "columns of a model that holds no byte": (
        "model",
        "completion, ridge",
        {
            "state.run.matrix.left": np.empty((HUGE, 0)),
            "state.run.matrix.right": np.empty((HUGE, 0)),
            "state.run.matrix.weights": np.empty(0),
        },
    ),
    "space for terms": ("checkpoint", "completion, ridge", {f"{ITERATE}.capacity": HUGE}),
    "rank of chains": (
        "checkpoint",
        "completion, auto",
        {"state.run.factors.model.rank": 250},
    ),
    "chains": (
        "checkpoint",
        "completion, auto",
        {"state.run.factors.model.count": 256},
    ),
    "rows in compressed columns": (
        "checkpoint",
        "classifier, two classes",
        {"state.run.team.past.past.rows.bulk_rows": HUGE},
    ),
    "narrow rounds": (
        "model",
        "regressor, sums",
        {f"state.run.history.columns.{name}": np.zeros(10**6, np.int8)
         for name in ("t", "loss", "gap", "gap_upper", "step_size", "kind", "reads", "seconds")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("count", COUNTS)
def test_a_count_takes_no_memory_that_the_file_does_not_fill(count, tmp_path):
    kind, name, changes = COUNTS[count]
    refused(kind, forged(kind, name, tmp_path / "forged.ofw", **changes))


def test_a_file_of_format_1_has_no_more_coefficients_than_the_limit(tmp_path, monkeypatch):
    coef = {"shape": [1, 10**9], "indptr": np.array([0, 1]), "indices": np.array([0])}
    tree = {
        "estimator": "FrankWolfeRegressor",
        "parameters": {"constraint": "l1", "radius": 1.0, "past": "all", "max_past": None},
        "coef": {**coef, "data": np.ones(1)},
        "path": {},
        "n_features_in": 10**9,
    }
    monkeypatch.setattr(container, "FORMAT_VERSION", 1)
    write_tree(tmp_path / "old.ofw", "model", tree)
    monkeypatch.undo()
    assert "at most 10,000,000 coefficients" in refused("model", tmp_path / "old.ofw")


def test_theta_has_space_for_twice_its_terms_at_most(rng):
    from onlinefw.iterates import LowRank

    theta = LowRank.from_factors(rng.normal(size=(30, 20)), np.ones(20), rng.normal(size=(40, 20)))
    theta.put(rng.normal(size=(30, 2)), np.ones(2), rng.normal(size=(40, 2)))
    assert theta.capacity <= 8
    assert LowRank.from_state(theta.state_dict()).capacity == theta.capacity


# Bytes --------------------------------------------------------------------------------------------


def archive(path, *members, header=None, kind="model", sizes=None):
    """Write any members, with a digest that fits; ``sizes`` are declared instead of true ones."""
    known = {"format": "onlinefw", "kind": kind, "format_version": 2, "onlinefw": ofw.__version__}
    text = json.dumps(known if header is None else header)
    with path.open("w+b") as file:
        digested = container._DigestedFile(file)
        with zipfile.ZipFile(digested, "w") as archive:
            archive.comment = container.DIGEST_MARK + b"0" * 64
            archive.writestr("onlinefw.json", text)
            for name, content in members:
                archive.writestr(name, content, zipfile.ZIP_DEFLATED, 9)
            for name, (packed, unpacked) in (sizes or {}).items():
                info = archive.getinfo(name)
                info.compress_size, info.file_size = packed, unpacked
        digested.write_digest()
    return path


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()


KINDS = pytest.mark.parametrize("kind", ["model", "checkpoint"])


@KINDS
def test_a_member_of_more_bytes_than_deflate_makes_is_refused(kind, tmp_path):
    sizes = {"a.npy": (100, 10**10)}
    path = archive(tmp_path / "x", ("a.npy", npy(np.ones(9))), kind=kind, sizes=sizes)
    assert "larger than it can be" in refused(kind, path)


@KINDS
@pytest.mark.parametrize("name", ["onlinefw.json", "content.json"])
def test_so_is_one_that_is_larger_than_the_file(kind, name, tmp_path):
    sizes = {name: (2**31, 2**31)}
    path = archive(tmp_path / "x", ("content.json", "{}"), kind=kind, sizes=sizes)
    assert "larger than it can be" in refused(kind, path)


@KINDS
def test_text_that_deflates_to_almost_nothing_is_no_tree(kind, tmp_path):
    bomb = "[" + "[]," * 10**7 + "0]"
    path = archive(tmp_path / "bomb", ("content.json", bomb), kind=kind)
    assert path.stat().st_size * 300 < len(bomb)
    assert "much longer than its bytes" in refused(kind, path)


def test_notes_of_the_same_kind_are_stored_as_they_are_and_load(tmp_path):
    notes = {"zeros": [0] * 10**6}
    ofw.save(learned("regressor, sums"), tmp_path / "model.ofw", notes=notes)
    assert (tmp_path / "model.ofw").stat().st_size > 10**6
    assert ofw.load(tmp_path / "model.ofw").notes_ == notes
    names = {"names": [f"feature {k}" for k in range(200_000)]}
    ofw.save(learned("regressor, sums"), tmp_path / "model.ofw", notes=names)
    assert (tmp_path / "model.ofw").stat().st_size < len(json.dumps(names)) / 2 < MOST_JSON * 10**6
    assert ofw.load(tmp_path / "model.ofw").notes_ == names


@KINDS
def test_one_array_cannot_stand_everywhere(kind, tmp_path):
    content = json.dumps([{"$array": "a"}] * 1000)
    path = archive(tmp_path / "x", ("a.npy", npy(np.ones(9))), ("content.json", content), kind=kind)
    assert f"more than {MOST_PLACES} places" in refused(kind, path)


def test_an_array_that_does_is_written_again_and_loads(tmp_path):
    array = np.arange(5.0)
    save_checkpoint({"many": [array] * 100}, tmp_path / "run.ckpt")
    many = load_checkpoint(tmp_path / "run.ckpt")["many"]
    assert len(many) == 100 and all((one == array).all() for one in many)


def test_one_long_text_among_many_does_not_widen_them_all():
    texts = ["x" * 20_000, *[""] * 20_000]
    tree = {**labels_to_tree(np.array(texts, object), "names"), "objects": False}
    tracemalloc.start()
    loaded = labels_from_tree(tree)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < SLACK and loaded.tolist() == texts
    assert (
        labels_from_tree(labels_to_tree(["ann", "bob", "a longer name"], "names")).dtype == "<U13"
    )


# One line each ------------------------------------------------------------------------------------

GOOD = {"format": "onlinefw", "kind": "model", "format_version": 2, "onlinefw": "1"}
HEADERS = {
    "no kind": {name: value for name, value in GOOD.items() if name != "kind"},
    "no version": {name: value for name, value in GOOD.items() if name != "onlinefw"},
    "a list": list(GOOD.values()),
    "a number": 7,
    "a kind that is a list": {**GOOD, "kind": []},
    "an escape": {**GOOD, "format_version": 9, "onlinefw": "\x1b[2J"},
    "two lines": {**GOOD, "format_version": 9, "onlinefw": "1\n2"},
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_of_another_form_is_refused_in_one_line(header, tmp_path):
    path = archive(tmp_path / "x.ofw", ("content.json", "{}"), header=HEADERS[header])
    for read in (read_header, ofw.load, load_checkpoint):
        with pytest.raises(ModelFileError) as error:
            read(path)
        assert str(error.value).isprintable()
    told = run_ofw("inspect", path)
    assert told.exit_code == 2 and len(told.stderr.splitlines()) == 1


NPY = {
    "brackets that do not close": b"{'descr': '<f8', 'fortran_order': False, 'shape': (9,",
    "text that does not close": b"{'descr': '<f8",
    "no dict": b"[1, 2]",
    "a call": b"{'descr': open('x'), 'fortran_order': False, 'shape': (9,)}",
    "another key": b"{'descr': '<f8', 'fortran_order': False, 'shape': (9,), 'x': 1}",
    "a shape that is no tuple": b"{'descr': '<f8', 'fortran_order': False, 'shape': 9}",
    "a negative shape": b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3, -3)}",
    "a type that is none": b"{'descr': 'x9', 'fortran_order': False, 'shape': (9,)}",
    "numbers of Python 2": b"{'descr': '<f8', 'fortran_order': False, 'shape': (9L,)}",
    "brackets without end": b"(" * 5000,
    "null bytes": b"\0" * 50,
}


@KINDS
@pytest.mark.parametrize("text", NPY)
def test_an_array_with_a_broken_header_is_refused_in_one_line(kind, text, tmp_path):
    header = NPY[text] + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(72)
    members = ("a.npy", content), ("content.json", '{"a": {"$array": "a"}}')
    assert "altered" in refused(kind, archive(tmp_path / "x", *members, kind=kind))


def test_numpy_raises_what_no_list_of_errors_would_have():
    header = NPY["text that does not close"] + b" \n"
    with pytest.raises((tokenize.TokenError, SyntaxError, ValueError)):
        np.lib.format.read_array_header_1_0(io.BytesIO(len(header).to_bytes(2, "little") + header))


@KINDS
@pytest.mark.parametrize("value", [[], [1, 2], {}, "text", 3, None, np.ones(3)])
@pytest.mark.parametrize("where", ["parameters", "state", "state.run", "state.run.history"])
def test_a_value_of_another_form_is_refused_in_one_line(kind, value, where, tmp_path):
    path = forged(kind, "regressor, sums", tmp_path / "x", **{where: value})
    if where == "parameters" and isinstance(value, dict):
        load(kind, path)  # the defaults
    elif kind == "checkpoint" and where == "state" and value is None:
        assert not load(kind, path).__sklearn_is_fitted__()  # an estimator that has not learned
    else:
        refused(kind, path)


@KINDS
def test_notes_are_a_dict(kind, tmp_path):
    path = tmp_path / "x"
    model = ofw.load(forged("model", "regressor, sums", path))
    model.notes_ = {}
    if kind == "model":
        ofw.save(model, path, notes=["a list"])
    else:
        fresh = ofw.FrankWolfeRegressor()
        fresh.notes_ = ["a list"]
        save_checkpoint(fresh, path)
    refused(kind, path)


# Honest files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [str, object])
def test_ofw_inspect_shows_a_search(labels, tmp_path, rng):
    X = rng.standard_normal((60, 4))
    y = np.where(X[:, 0] > 0, "yes", "no").astype(labels)
    search = ofw.RadiusSearch(ofw.FrankWolfeClassifier(), radii=[1.0, 4.0]).fit(X, y)
    ofw.save(search, tmp_path / "search.ofw", notes={"summary": "my own", "features": ["a"]})
    shown = ofw_says("inspect", tmp_path / "search.ofw")
    assert "RadiusSearch" in shown and "for the class yes" in shown
