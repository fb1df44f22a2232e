"""Pictures of fitted estimators: which lines there are, what they contain, what is refused."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import onlinefw as ofw
from onlinefw.experiments.figures import FIGURES
from onlinefw.plots import plot_history, plot_path
from onlinefw.plots.figures import DRAWN_BY
from onlinefw.plots.history import running_mean


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((400, 8))
    return X, 2 * X[:, 1] - X[:, 4] + 0.5 * rng.standard_normal(400)


@pytest.fixture
def regressor(rows):
    return ofw.FrankWolfeRegressor(radius=2.5, batch_size=20, inner_steps=1).fit(*rows)


@pytest.fixture
def three_classes(rows, rng):
    X = rows[0]
    y = np.array(["ant", "bee", "cat"])[X[:, :3].argmax(axis=1)]
    return ofw.FrankWolfeClassifier(radius=3.0, batch_size=50).fit(X, y)


@pytest.fixture
def completion(rng):
    X = np.column_stack((rng.integers(20, size=2000), rng.integers(15, size=2000)))
    model = ofw.FrankWolfeMatrixCompletion(radius=20.0, batch_size=100, certify_every=4)
    return model.fit(X, rng.standard_normal(2000))


def line(axes, label):
    (found,) = [one for one in axes.lines if one.get_label() == label]
    return found.get_xdata(), found.get_ydata()


def history(**columns):
    n = 10
    plain = {
        "t": np.arange(1, n + 1),
        "seconds": np.linspace(0.1, 1.0, n),
        "loss": np.geomspace(20.0, 1.0, n),
        "gap": np.geomspace(1.0, 1e-3, n),
    }
    plain.update(columns)
    return {"gap_upper": plain["gap"], **plain}


# History ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["regressor", "three_classes", "completion"])
@pytest.mark.parametrize("x", ["t", "seconds"])
def test_gap_and_loss_of_every_estimator_against_rounds_or_seconds(model, x, request):
    model = request.getfixturevalue(model)
    gap, loss = plot_history(model, x=x)
    at, values = line(gap, "gap")
    known = ~np.isnan(model.history_["gap"])  # between two corrections there is none
    np.testing.assert_array_equal(at, model.history_[x][known])
    np.testing.assert_array_equal(values, model.history_["gap"][known])
    np.testing.assert_array_equal(line(loss, "batch")[1], model.history_["loss"])
    assert gap.get_ylabel() == "duality gap"
    assert loss.get_ylabel() == "loss before learning"
    assert gap.get_xscale() == gap.get_yscale() == loss.get_xscale() == "log"
    words = {"t": "round t", "seconds": "seconds of learning"}
    assert gap.get_xlabel() == loss.get_xlabel() == words[x]


def test_the_line_through_the_losses_is_their_mean_over_the_last_quarter_of_the_rounds():
    t, loss = np.array([1, 2, 3, 5, 8, 9, 10, 11, 12]), np.arange(9.0)
    by_hand = [loss[(t >= 0.75 * now) & (t <= now)].mean() for now in t]
    np.testing.assert_allclose(running_mean(t, loss), by_hand)
    axes = plot_history(history())
    t, loss = history()["t"], history()["loss"]
    np.testing.assert_allclose(line(axes[1], "running mean")[1], running_mean(t, loss))


class Frame:
    """As much of a pandas DataFrame as is needed."""

    def __init__(self, columns):
        self._data, self.columns = columns, list(columns)

    def __contains__(self, name):
        return name in self._data

    def __getitem__(self, name):
        return self._data[name]


def test_a_history_may_be_given_as_dict_or_data_frame(regressor):
    for table in (regressor.history_, Frame(regressor.history_)):
        gap, _ = plot_history(table)
        np.testing.assert_array_equal(line(gap, "gap")[1], regressor.history_["gap"])


def test_gaps_that_are_zero_to_rounding_are_left_out():
    gaps = history()["gap"]
    gaps[[3, 7]] = 0.0, -1e-17
    axes = plot_history(history(gap=gaps))
    at, values = line(axes[0], "gap")
    assert at.size == 8
    assert values.min() > 0.0
    axes = plot_history(history(gap=np.zeros(10)))
    assert line(axes[0], "gap")[0].size == 0


def test_rounds_without_new_data_have_no_loss(rows):
    model = ofw.FrankWolfeRegressor(radius=2.5, batch_size=20, epochs=3).fit(*rows)
    gap, loss = plot_history(model)
    assert line(loss, "batch")[0].tolist() == list(range(1, 21))
    assert np.isfinite(line(loss, "running mean")[1]).all()
    assert line(gap, "gap")[0].max() == 60


def test_a_loss_that_is_negative_or_hardly_changes_has_a_linear_axis():
    assert plot_history(history())[1].get_yscale() == "log"
    assert plot_history(history(loss=np.linspace(20.0, -1.0, 10)))[1].get_yscale() == "linear"
    assert plot_history(history(loss=np.linspace(0.69, 0.4, 10)))[1].get_yscale() == "linear"


def test_where_the_certificate_is_another_number_than_the_gap_it_is_drawn_too(
    regressor, completion
):
    certified = np.isfinite(completion.history_["gap_upper"])
    at, values = line(plot_history(completion)[0], "certified")
    np.testing.assert_array_equal(at, completion.history_["t"][certified])
    np.testing.assert_array_equal(values, completion.history_["gap_upper"][certified])
    assert [one.get_label() for one in plot_history(regressor)[0].lines] == ["gap"]


def test_a_history_is_drawn_on_axes_of_the_user(regressor):
    _, given = plt.subplots(2, 1)
    axes = plot_history(regressor, ax=given)
    assert list(axes) == list(given)
    assert len(plt.get_fignums()) == 1
    with pytest.raises(ValueError, match="pair of axes"):
        plot_history(regressor, ax=given[0])


def test_what_has_no_history_is_refused(regressor):
    for model in (ofw.FrankWolfeRegressor(), ofw.FrankWolfeMatrixCompletion()):
        with pytest.raises(NotFittedError, match="no history_ yet: call fit or partial_fit"):
            plot_history(model)
    with pytest.raises(ValueError, match="list has no history_: pass a fitted"):
        plot_history([1.0, 2.0])
    with pytest.raises(ValueError, match="'gap_upper' is missing"):
        plot_history({"t": [1], "seconds": [1.0], "gap": [1.0]})
    with pytest.raises(ValueError, match="x must be one of 't', 'seconds', got 'rounds'"):
        plot_history(regressor, x="rounds")
    assert not plt.get_fignums()


# Path ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", ["t", "seconds"])
def test_the_largest_coefficients_have_lines_with_names_that_end_where_the_model_is(regressor, x):
    axes = plot_path(regressor, x=x, top=2)
    assert [one.get_label() for one in axes.lines] == ["x1", "x4"]  # from large to small
    assert [one.get_text() for one in axes.get_legend().get_texts()] == ["x1", "x4"]
    at, values = line(axes, "x4")
    np.testing.assert_array_equal(at[:-1], regressor.path_[x])
    assert at[-1] == regressor.history_[x][-1]
    before = regressor.path_["coef"][:, [4]].toarray()[:, 0]
    np.testing.assert_array_equal(np.nan_to_num(values[:-1]), before)
    assert values[-1] == regressor.coef_[4]
    assert axes.get_ylabel() == "coefficient"


def test_the_other_coefficients_are_grey(regressor):
    (others,) = plot_path(regressor, top=2).collections
    ever = np.unique(regressor.path_["coef"].nonzero()[1])
    assert len(others.get_paths()) == ever.size - 2
    assert len(set(others.get_colors()[0][:3])) == 1
    axes = plot_path(regressor, top=0)
    assert not axes.lines
    assert axes.get_legend() is None


def test_what_has_left_is_named_after_what_is_there():
    class Model:
        path_ = {  # noqa: RUF012
            "t": np.array([1, 2]),
            "coef": sparse.csr_array([[0.0, 5.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]]),
        }
        history_ = {"t": np.array([1, 2, 3])}  # noqa: RUF012
        coef_ = np.array([1.0, 0.0, 0.0, 2.0])
        n_features_in_ = 4

    assert [one.get_label() for one in plot_path(Model(), top=2).lines] == ["x3", "x0"]
    axes = plot_path(Model(), top=3)
    assert [one.get_label() for one in axes.lines] == ["x3", "x0", "x1"]
    assert line(axes, "x3")[0].tolist() == [1, 2, 3]


def test_a_line_begins_where_its_coefficient_enters_and_ends_where_it_leaves():
    class Model:
        path_ = {  # noqa: RUF012
            "t": np.arange(1, 7),
            "coef": sparse.csr_array([[0.0], [0.0], [3.0], [0.0], [0.0], [0.0]]),
        }
        history_ = {"t": np.arange(1, 8)}  # noqa: RUF012
        coef_ = np.array([2.0])
        n_features_in_ = 1

    values = line(plot_path(Model()), "x0")[1]
    nan = np.nan
    np.testing.assert_array_equal(values, [nan, 0.0, 3.0, 0.0, nan, 0.0, 2.0])


def test_names_come_from_the_user_the_data_frame_or_numbers(regressor):
    regressor.feature_names_in_ = np.array(list("abcdefgh"))  # as scikit-learn sets it
    assert [one.get_label() for one in plot_path(regressor, top=2).lines] == ["b", "e"]
    mine = [f"sensor {k}" for k in range(8)]
    lines = plot_path(regressor, top=2, feature_names=mine).lines
    assert [one.get_label() for one in lines] == ["sensor 1", "sensor 4"]
    with pytest.raises(ValueError, match="feature_names has 3 names, but there are 8 features"):
        plot_path(regressor, feature_names=["a", "b", "c"])


def test_of_several_classes_a_line_names_class_and_feature(three_classes):
    axes = plot_path(three_classes, top=3)
    assert {one.get_label() for one in axes.lines} == {"ant: x0", "bee: x1", "cat: x2"}
    assert line(axes, "bee: x1")[1][-1] == three_classes.coef_[1, 1]


def test_two_classes_are_named_by_feature_alone(rows):
    model = ofw.FrankWolfeClassifier(radius=3.0).fit(rows[0], rows[1] > 0)
    assert {one.get_label() for one in plot_path(model, top=2).lines} == {"x1", "x4"}


def test_more_names_than_colours_differ_by_their_style(rng):
    X = rng.standard_normal((300, 25))
    model = ofw.FrankWolfeRegressor(radius=30.0).fit(X, X.sum(axis=1))
    lines = plot_path(model, top=25).lines
    assert len({(one.get_color(), one.get_linestyle()) for one in lines}) == 25


def test_a_path_is_drawn_on_axes_of_the_user(regressor):
    _, given = plt.subplots()
    assert plot_path(regressor, ax=given) is given
    assert len(plt.get_fignums()) == 1


def test_what_has_no_path_is_refused(rows, completion, regressor):
    with pytest.raises(NotFittedError, match="no path_ yet: call fit or partial_fit"):
        plot_path(ofw.FrankWolfeClassifier())
    with pytest.raises(ValueError, match="fitted with path_size=0"):
        plot_path(ofw.FrankWolfeRegressor(path_size=0).fit(*rows))
    with pytest.raises(ValueError, match="FrankWolfeMatrixCompletion has no path_"):
        plot_path(completion)
    with pytest.raises(ValueError, match="x must be one of"):
        plot_path(regressor, x="time")
    with pytest.raises(ValueError, match="top must be"):
        plot_path(regressor, top=-1)
    assert not plt.get_fignums()


def test_every_figure_of_the_paper_has_a_picture():
    assert DRAWN_BY.keys() == FIGURES.keys()
