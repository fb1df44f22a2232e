"""``ofw fit --epochs``: one pass over the data, more over what is kept of them."""

import numpy as np
import pytest

import onlinefw
from onlinefw import load

from ..readers.writing import csv_text, write
from .running import assert_same_models, ofw, ofw_json, ofw_says, piped, ratings
from .test_resume import data_of, interrupt_after

FAST = ("--radius", "10", "--batch-size", "20")


def numbered(names):
    places = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return [places[name] for name in names]


def test_the_model_is_that_of_the_estimator_with_so_many_epochs(tmp_path):
    columns, out = ratings(), tmp_path / "m.ofw"
    told = ofw_json("fit", "matrix", write(tmp_path / "a.csv", columns), "-o", out, *FAST)
    assert told["rounds"] == 12 and told["epochs"] == 1
    told = ofw_json("fit", "matrix", tmp_path / "a.csv", "-o", out, *FAST, "--epochs", "3")
    assert told["rounds"] == 36 and told["epochs"] == 3
    assert told["rows learned"] == 240 and told["progressive"]["rows"] == 220
    estimator = onlinefw.FrankWolfeMatrixCompletion(
        10.0,
        shape=(12, 9),
        offsets="joint",
        weighting="smoothed",
        step="line-search",
        clip=True,
        batch_size=20,
        epochs=3,
    )
    X = np.column_stack((numbered(columns["user"]), numbered(columns["item"])))
    estimator.fit(X, columns["rating"])
    pairs = np.argwhere(np.ones(estimator.shape_)).T
    found, expected = (model.predict_entries(*pairs) for model in (load(out), estimator))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["matrix", "regression", "classification"])
def test_stopped_in_a_later_epoch_it_goes_on_as_if_it_had_not_been(kind, tmp_path, monkeypatch):
    data, checkpoint = data_of(kind, tmp_path), tmp_path / "run.ckpt"
    options = (*FAST, "--epochs", "3", "--test-fraction", "0.2")
    told = ofw_json("fit", kind, data, "-o", tmp_path / "whole.ofw", *options)
    out = tmp_path / "m.ofw"
    command = ("fit", kind, data, "-o", out, *options, "--checkpoint", checkpoint)
    with monkeypatch.context() as patch:
        interrupt_after(patch, told["rounds"] // 2)
        assert ofw(*command).exit_code == 1
    assert ofw_json(*command, "--resume", checkpoint)["rounds"] == told["rounds"]
    assert_same_models(out, tmp_path / "whole.ofw")


@pytest.mark.slow
def test_more_epochs_come_nearer_to_the_best_model_and_the_page_says_so(tmp_path):
    data = write(tmp_path / "a.csv", ratings())
    gaps = []
    for epochs in (1, 20):
        fit = ("fit", "matrix", data, "-o", tmp_path / "m.ofw", *FAST, "--epochs", epochs)
        gaps.append(ofw_json(*fit)["gap"])
    assert gaps[1] < gaps[0]
    ofw_says("report", tmp_path / "m.ofw", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "one pass in the order of arrival and 19 over what was kept" in page


def test_a_pipe_that_ends_has_them_too(tmp_path):
    data = write(tmp_path / "a.csv", ratings())
    options = (*FAST, "--epochs", "2", "-o")
    ofw_says("fit", "matrix", data, *options, tmp_path / "file.ofw")
    with piped(csv_text(ratings())):
        ofw_says("fit", "matrix", "-", *options, tmp_path / "pipe.ofw")
    assert_same_models(tmp_path / "pipe.ofw", tmp_path / "file.ofw")
