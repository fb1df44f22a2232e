"""Options of ``ofw fit`` that would be ignored are refused, and losses are those there are."""

import inspect

import pytest

from onlinefw import FrankWolfeClassifier, FrankWolfeRegressor
from onlinefw.cli.app import fit
from onlinefw.cli.fit_options import FIXED, KINDS, LOSSES
from onlinefw.estimators.completion_parts import LOSSES as MATRIX_LOSSES
from onlinefw.fitting.ratings import RatingsSession
from onlinefw.fitting.rows import RowsSession

from ..readers.writing import write
from .running import ofw, ofw_json, ofw_says, ratings, refusal, rows

FAST = ("--batch-size", "20")


def test_the_losses_are_those_of_the_estimators_and_the_default_comes_first():
    assert set(LOSSES["matrix"]) == set(MATRIX_LOSSES)
    assert set(LOSSES["regression"]) == set(FrankWolfeRegressor._losses)
    assert set(LOSSES["classification"]) == set(FrankWolfeClassifier._losses)
    assert RatingsSession().model.loss == LOSSES["matrix"][0]
    for kind in ("regression", "classification"):
        assert RowsSession(kind).model.loss == LOSSES[kind][0]
    helps = " ".join(ofw("fit", "--help").output.replace("│", " ").split())
    assert "classification: sigmoid (default), logistic" in helps


@pytest.mark.parametrize("kind", ["matrix", "clicks", "regression", "classification"])
def test_an_option_of_another_kind_is_refused(tmp_path, kind):
    data = write(tmp_path / "a.csv", ratings() if kind in ("matrix", "clicks") else rows())
    numbers = {name: ["3"] for name in ("n_features", "at_least", "epochs", "workers")}
    values = {"zero_based": [], "classes": ["a,b"], "loss": ["square"], **numbers}
    values |= {"missing": ["mean"], "text": ["hash"]}
    for name, kinds in KINDS.items():
        if kind not in kinds:
            option = f"--{name.replace('_', '-')}"
            given = (option, *values.get(name, ["f1"]))
            line = refusal("fit", kind, data, "-o", tmp_path / "m.ofw", *given)
            assert line.startswith(f"ofw fit: {option} is for ofw fit {kinds[0]}")


@pytest.fixture
def begun(tmp_path):
    """A command with a checkpoint, and the checkpoint."""
    data, checkpoint = write(tmp_path / "a.csv", rows(100)), tmp_path / "run.ckpt"
    command = ("fit", "regression", data, "-o", tmp_path / "m.ofw", *FAST, "--radius", "2")
    ofw_says(*command, "--checkpoint", checkpoint)
    return command, checkpoint


@pytest.mark.parametrize(
    ("option", "value", "was"),
    [
        ("--radius", "3", "2.0"),
        ("--loss", "poisson", "its default"),
        ("--batch-size", "30", "20"),
        ("--epochs", "2", "1"),
        ("--half-life", "50", "its default"),
        ("--test-fraction", "0.5", "0.0"),
        ("--seed", "7", "0"),
        ("--target", "a", "its default"),
        ("--features", "a", "its default"),
        ("--delimiter", ";", "its default"),
        ("--format", "tsv", "its default"),
    ],
)
def test_what_a_checkpoint_has_settled_cannot_be_said_otherwise(begun, option, value, was):
    command, checkpoint = begun
    line = refusal(*command, option, value, "--resume", checkpoint)
    assert line.startswith(f"ofw fit: {option}: {checkpoint} was begun with {was}, not with ")
    assert "without --resume" in line


def test_the_same_command_goes_on_and_so_does_one_without_the_options(begun):
    command, checkpoint = begun
    assert ofw_json(*command, "--resume", checkpoint)["radius"] == 2.0
    assert ofw_json(*command[:5], "--resume", checkpoint)["radius"] == 2.0


def test_bad_rows_may_be_left_out_from_a_checkpoint_on(tmp_path):
    data, checkpoint = write(tmp_path / "a.csv", rows(100)), tmp_path / "run.ckpt"
    with data.open("a") as file:
        file.write("x,1,2,3\n")
    command = ("fit", "regression", data, "-o", tmp_path / "m.ofw", *FAST)
    (tmp_path / "b.csv").write_text("".join(data.read_text().splitlines(True)[:81]))
    first = tuple(tmp_path / "b.csv" if part == data else part for part in command)
    ofw_says(*first, "--checkpoint", checkpoint)
    rest = tuple(str(part) for part in (*first[:2], tmp_path / "b.csv", data, *first[3:]))
    assert "'x' is not a number" in refusal(*rest, "--resume", checkpoint)
    told = ofw_json(*rest, "--resume", checkpoint, "--on-bad-row", "skip")
    assert told["rows left out"] == {"not a number": 1}


def test_every_option_that_decides_what_is_learned_is_settled():
    free = {"kind", "data", "out", "test", "checkpoint", "every", "resume", "on_bad_row", "context"}
    free |= {"quiet", "as_json", "device", "workers", "ray_address", "force"}
    assert set(inspect.signature(fit).parameters) == free | set(FIXED)


def test_models_and_checkpoints_in_each_others_place(begun, tmp_path):
    command, checkpoint = begun
    inspecting = refusal("inspect", checkpoint)
    assert f"{checkpoint} is a checkpoint, from which ofw fit --resume goes on" in inspecting
    resuming = refusal(*command, "--resume", tmp_path / "m.ofw")
    assert "is a model file, which only predicts" in resuming and "--checkpoint" in resuming
    assert "onlinefw.load" not in inspecting + resuming
