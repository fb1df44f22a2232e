"""Files as people have them are read as they are, or refused in one line that says what to do."""

import gzip
import zipfile

import numpy as np
import pytest

from onlinefw import load

from ..cli.running import assert_same_models, ofw_says, refusal

FAST = ("--batch-size", "20", "--radius", "50")
TITLES = [
    "Amélie", "Der Untergang", 'Mr. "Bean"; the film', "七人の侍", "Psycho, 1960", "Æon  Flux",
]  # fmt: skip
#: The byte order mark of UTF-8.
MARK = b"\xef\xbb\xbf"


def ratings(n=90):
    """Who rated which title how; the titles have in them what files stumble over."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(10, size=n), rng.integers(len(TITLES), size=n)
    return [(f"user-{u}", TITLES[i], 1 + (u * i) % 5) for u, i in zip(users, items, strict=True)]


def text(header="user,item,rating", delimiter=",", end="\n"):
    quoted = ['"' + title.replace('"', '""') + '"' for _, title, _ in ratings()]
    lines = [
        delimiter.join((user, title, str(rating)))
        for (user, _, rating), title in zip(ratings(), quoted, strict=True)
    ]
    return end.join([header.replace(",", delimiter), *lines]) + end


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The model of the tidiest of these files."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "a.csv").write_text(text(), encoding="utf-8")
    ofw_says("fit", "matrix", folder / "a.csv", "-o", folder / "m.ofw", *FAST)
    assert set(load(folder / "m.ofw").col_ids_) == set(TITLES)
    return folder / "m.ofw"


READ = {
    "header in capitals": ("a.csv", text("USER,ITEM,RATING").encode()),
    "other names": ("a.csv", text("Reviewer ID,Title,Stars").encode()),
    "camel case": ("a.csv", text("userId,productId,overall").encode()),
    "semicolons": ("a.csv", text(delimiter=";").encode()),
    "tabs in .txt": ("a.txt", text(delimiter="\t").encode()),
    "a byte order mark": ("a.csv", MARK + text().encode()),
    "lines of Windows": ("a.csv", text(end="\r\n").encode()),
    "all that Excel does": ("a.csv", MARK + text("User,Item,Rating", ";", "\r\n").encode()),
    "no last line end": ("a.csv", text().encode().rstrip(b"\n")),
    "blank lines": ("a.csv", text().replace("\n", "\n\n").encode()),
    "compressed": ("a.csv.gz", gzip.compress(text().encode())),
    "no known ending": ("a", text().encode()),
    "a column more": ("a.csv", text(end=",t\n").encode()),
}


@pytest.mark.parametrize("case", READ)
def test_the_same_ratings_give_the_same_model(tmp_path, plain, case):
    name, content = READ[case]
    (tmp_path / name).write_bytes(content)
    ofw_says("fit", "matrix", tmp_path / name, "-o", tmp_path / "m.ofw", *FAST)
    assert_same_models(plain, tmp_path / "m.ofw")


REFUSED = {
    "line ends of old": (text(end="\r").encode(), "lines end with a carriage return alone; end"),
    "UTF-16": (text().encode("utf-16"), "the text is UTF-16; save it as UTF-8"),
    "gzip without its name": (
        gzip.compress(text().encode()),
        "this is gzip-compressed; name it .gz, or pipe it through zcat",
    ),
    "zeros": (text().encode("utf-16-le"), "this is not text; give CSV, TSV, Parquet"),
    "Latin-1": (text().encode("latin-1", "replace"), "is not UTF-8 text"),
    "a rating that is missing": (
        text().replace(",5\n", ",\n", 1).encode(),
        "column 'rating': the cell is empty",
    ),
    "no number": (text().replace(",5\n", ",3;5\n", 1).encode(), "'3;5' is not a number"),
    "nothing": (b"", "there are no rows in it"),
    "a header only": (b"user,item,rating\n", "there are no rows in it"),
    "names that say nothing": (
        text("who,what,how much").encode(),
        "no column is obviously the user, the item or the rating; say which, such as --user who",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path, case):
    content, words = REFUSED[case]
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    line = refusal("fit", "matrix", path, "-o", tmp_path / "m.ofw", *FAST)
    assert words in line and f"{path}: " in line
    assert not (tmp_path / "m.ofw").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.csv.gz", "the gzip data are damaged"), ("a.parquet", "this is not a whole Parquet file")],
)
def test_a_name_that_promises_another_format(tmp_path, name, words):
    (tmp_path / name).write_text(text(), encoding="utf-8")
    line = refusal("fit", "matrix", tmp_path / name, "-o", tmp_path / "m.ofw", *FAST)
    assert words in line


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.xlsx", "this is a workbook; save its sheet as CSV"),
        ("a.zip", "this is a zip archive; unpack it, and name the file in it"),
        ("a.csv", "this is a zip archive; unpack it, and name the file in it"),
    ],
)
def test_workbooks_and_archives_are_called_what_they_are(tmp_path, name, words):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("ratings.csv", text())
    line = refusal("fit", "matrix", tmp_path / name, "-o", tmp_path / "m.ofw", *FAST)
    assert line.endswith(f"{tmp_path / name}: {words}")


def test_a_control_character_may_separate_cells(tmp_path, plain):
    (tmp_path / "a.txt").write_text(text(delimiter="\1"))
    separated = ("--delimiter", "\1")
    ofw_says("fit", "matrix", tmp_path / "a.txt", "-o", tmp_path / "m.ofw", *FAST, *separated)
    assert_same_models(plain, tmp_path / "m.ofw")


def test_rows_without_a_header_say_how_to_go_on(tmp_path):
    path, out = tmp_path / "mail.tsv", tmp_path / "m.ofw"
    path.write_text("ham\tok, see you then\nspam\tWINNER!! claim your prize\n" * 20)
    line = refusal("fit", "classification", path, "-o", out)
    assert "no column is obviously the target" in line
    assert line.endswith("(if line 1 is no header, say --no-header)")
    fit = ("fit", "classification", path, "-o", out, "--no-header", "--target", "1")
    assert "if the first line is a header, say --header" in (line := refusal(*fit))
    assert "say --text one-hot" in line
    ofw_says(*fit, "--text", "one-hot", "--radius", "2")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.jsonl", "a.libsvm", "a"])
@pytest.mark.parametrize("kind", ["matrix", "classification"])
def test_binary_junk_is_refused_in_one_line(tmp_path, kind, name):
    for seed in range(3):
        junk = np.random.default_rng(seed).integers(256, size=2000, dtype=np.uint8).tobytes()
        (tmp_path / name).write_bytes(junk)
        line = refusal("fit", kind, tmp_path / name, "-o", tmp_path / "m.ofw")
        assert str(tmp_path / name) in line and line.isprintable() and len(line) < 1000
