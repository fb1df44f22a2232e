"""A command that was typed wrongly is refused in one line that names the value and the remedy."""

from itertools import pairwise

import pytest

from .running import ofw, ofw_process, refusal

FIT = ("fit", "matrix", "a.csv", "-o", "m.ofw")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ((*FIT, "--radius", "x"), "ofw fit: --radius takes a number or auto, not 'x'"),
        (
            ("fit", "classification", *FIT[2:], "--classes", "one"),
            "ofw fit: --classes takes at least two labels, such as ham,spam, not 'one'",
        ),
        ((*FIT, "--every", "0"), "ofw fit: Invalid value for '--every': "),
        ((*FIT, "--seed", "x"), "ofw fit: Invalid value for '--seed': "),
        ((*FIT, "--raduis", "2"), "ofw fit: No such option: --raduis"),
        (("fit", "tensor", "a.csv", "-o", "m"), "'tensor' is not one of 'matrix', 'clicks'"),
        (("fit", "matrix", "-o", "m"), "ofw fit: Missing argument 'data"),
        (("fit", "matrix", "a.csv"), "ofw fit: Missing option '"),
        (("fitt",), "ofw: No such command 'fitt'"),
        (("data", "fetsch"), "ofw data: No such command 'fetsch'"),
        (("--nonsense",), "ofw: No such option: --nonsense"),
        (("recommend", "m.ofw", "extra", "--user", "1"), "ofw recommend: Got unexpected extra"),
    ],
)
def test_bad_usage_is_one_line_that_names_the_value_and_where_help_is(command, line):
    said = refusal(*command)
    assert line.lower() in said.lower()
    name = said.split(":")[0]
    assert said.endswith(f"; see {name} --help") or " takes " in said


@pytest.mark.parametrize("value", ["0", "-7", "x", "2.5"])
def test_a_number_that_is_none_or_out_of_range_is_named(value):
    line = refusal(*FIT, "--every", value)
    assert "'--every'" in line and value in line.split("'--every'")[1].split("; see")[0]


def test_the_program_says_the_same(tmp_path):
    result = ofw_process("fit", "--raduis", "2", text=True)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("ofw fit: No such option: --raduis")
    assert result.stderr.count("\n") == 1


def test_help_is_in_whole_sentences_and_lines_of_80_columns():
    for args in (["--help"], ["fit", "--help"], ["serve", "--help"], ["data", "--help"]):
        result = ofw(*args)
        assert result.exit_code == 0 and "Usage: " in result.stdout
        lines = result.stdout.splitlines()
        assert max(map(len, lines)) <= 80
        assert not [line for line in lines if line.endswith("...") and "Usage" not in line]
        # Paragraphs are filled: no line is broken where the next word would have fitted.
        text = result.stdout.split("\n\n")[2] if args[0] == "fit" else ""
        for line, following in pairwise(text.splitlines()):
            assert len(line) + 1 + len(following.split()[0]) > 78


def test_without_words_help_is_shown_and_the_version_is_a_line():
    alone = ofw()
    assert "Usage: " in alone.output and "fit" in alone.output
    assert ofw("--version").exit_code == 0
