"""Documentation and defaults that the regressor and the classifier share, written once."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from types import FunctionType
from typing import Any, TypeVar, cast

__all__ = ["documented", "with_defaults"]

Class = TypeVar("Class", bound=type)
Method = TypeVar("Method", bound=Callable[..., Any])

SHARED = {
    "the_set": """
constraint : str or ConvexSet
    The set of the coefficients: "l1" (sparse), "ksparse" (an l1 ball without large coefficients:
    none is above 64 / n_features of the radius; for many weak features, and wrong labels),
    "trace" (low rank, with ``coef_shape``), "l2", "linf", "simplex", or a set of
    :mod:`onlinefw.sets`.
radius : float or "auto"
    Of the set, if it is given by name. "auto" lets twelve radii, a factor of 2 apart, learn side
    by side on the first 20,000 rows, each scored by predicting every batch before it is
    learned; then the best goes on alone. Until then the best so far predicts, and those that
    are clearly beaten stop. A set given as an object has a size of its own.
""",
    "how_to_learn": """
away_steps : bool
    Use O-AW instead of O-FW (polytopes such as "l1").
step : None, "line-search" or step rule
    None is a line search with ``inner_steps="auto"``, and the paper's 2 / (t + 1) with a fixed
    number of inner steps.
batch_size : int
    Rows a round in ``fit``; one ``partial_fit`` is one round whatever its length.
epochs : int
    Passes of ``fit``. From the second on nothing is stored again: rounds use the rows already
    kept.
inner_steps : int or "auto"
    Steps a round; 1 is the paper's setting. "auto" takes steps until the gap is below 1% of
    the mean loss of the rows kept, 20 at most (plain steps more while there are few rows).
corrective : "auto", None or NewtonSteps
    On the l1 ball with O-FW: let each step re-optimise all active coefficients. "auto" does so
    with ``inner_steps="auto"``, whenever the rows have grown by 30% (where sums of rows
    suffice, by 10%). Between two corrections rows are predicted and kept, and coefficients and
    intercept stay as they are; ``correct()`` brings them to the optimum of now, as ``fit`` does
    at its end. ``NewtonSteps()`` corrects in every round.
fit_intercept : bool
    Add an intercept, which is outside the set.
scale : "auto" or bool
    Put the columns of dense rows on one scale before they are learned: by means and standard
    deviations of the first 5000 rows of ``fit``, or of the first hundred of a stream (or its
    first batch, if that is longer; see ``prepare``). "auto" does so for the l1, l2 and
    l-infinity ball where ``radius="auto"``: a radius that is given is in the units of the rows.
    Coefficients are always those of the rows as given.
past : "all", "recent", "reservoir", "summary" or "auto"
    Which rows count: all (the algorithm of the paper; memory grows), the newest ``max_past``,
    or a random sample of so many, uniform unless rows fade. The gap then certifies the mean over
    the rows kept.
    "summary" (l1 ball, built-in losses) keeps no rows: the gradient is estimated from the stream,
    with a step after every row. ``gap_`` is nan then, and ``gap_estimate_`` the estimate's gap.
    "auto", the choice of ``ofw fit``, keeps all if sums of rows suffice or if at most
    ``max_past`` are expected, and a sample otherwise.
max_past : int, optional
    How many rows to keep, unless all; for "auto" 200,000 by default.
half_life : float, "auto" or None
    For streams that change: after so many rows a row weighs half as much, 2**(-age / half_life)
    with ages in rows, and rows older than ten half-lives are dropped. Gap and mean loss speak of
    that weighted mean, the scores of radii fade alike, and a step rule counts the steps that were
    taken for rows that still count. None, the default, forgets nothing. "auto" lets three memories
    learn side by side, of which the best predicts; one of them forgets nothing since the data last
    looked as if they had changed (``changes_``).
coef_shape : (int, int), optional
    For matrix-shaped features: rows are matrices of this shape, flattened in C order.
expected_size : int, optional
    How many rows a stream will have, if that is known; ``fit`` knows.
shuffle : bool
    Let ``fit`` take the rows in random order.
random_state : int or Generator, optional
    Of the shuffling and of the reservoir.
history_size : int
    Rounds kept in ``history_``, thinned evenly in log t.
path_size : int
    Snapshots of the coefficients kept in ``path_``; 0 for none.
max_features : int
    Rows with more features are refused: memory follows their number, and a wrong index of a sparse
    row should not take all of it.
verbose : int
    1 shows a progress bar in terminals and notebooks (with ``rich`` installed).
device : "cpu", "cuda" or "auto"
    Where the past is kept: in this process's memory or on a GPU (which needs
    ``onlinefw[gpu]``); "auto" takes a GPU if there is one. With ``workers`` the device is
    theirs, one GPU each.
workers : int, optional
    Spread the data over so many workers of a Ray cluster (:mod:`onlinefw.distributed`): a
    running one, or a local one that is started; by default this process keeps them.
""",
    "certificate": """
gap_ : float
    The certificate of the current coefficients, computed when asked for: for a convex loss,
    the mean loss over the rows kept is at most this far above its minimum over the set.
gap_estimate_ : float
    With ``past="summary"`` the gap of the estimated gradient, which proves nothing; else ``gap_``.
mean_loss_ : float
    That mean loss. A larger certificate is uninformative, where no loss is below 0.
radius_ : float
    The radius in use.
half_life_ : float or None
    The half-life in use; None while nothing is forgotten.
changes_ : ndarray of int
    With ``half_life="auto"``: after how many rows the data looked as if they had changed.
scale_ : ndarray or None
    What columns are divided by before they are learned.
n_rounds_, n_observations_ : int
    Rounds played, and rows learned.
""",
    "records": """
history_ : dict of arrays
    t, loss (paid before learning), gap, step_size, kind, seconds, half_life (in use, infinite if
    nothing is forgotten), ...: ready for pandas.
path_ : dict
    t, seconds and coef (sparse, a row for each t): coefficients over time.
""",
}


def documented(cls: Class) -> Class:
    """Put shared text where the docstring of a class has its name in braces."""
    if cls.__doc__ is not None:  # there are no docstrings under python -OO
        shared = {name: text.strip("\n") for name, text in SHARED.items()}
        cls.__doc__ = cleandoc(cls.__doc__).format(**shared)
    return cls


def with_defaults(method: Method, **defaults: Any) -> Method:
    """Return a copy of a method with other defaults, which scikit-learn finds in its signature."""
    old = cast(FunctionType, method)
    new = FunctionType(old.__code__, old.__globals__, old.__name__, old.__defaults__)
    new.__kwdefaults__ = {**(old.__kwdefaults__ or {}), **defaults}
    new.__annotations__, new.__qualname__ = dict(old.__annotations__), old.__qualname__
    return cast(Method, new)
