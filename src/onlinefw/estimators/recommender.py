"""A recommender that learns clicks as they happen, as a scikit-learn estimator."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Self

import numpy as np

from .._typing import Array, State
from .._validation import MOST
from .._whole import unchanged_unless_learned
from ..losses import Square
from .click_parts import ClickParts
from .click_run import ClickRun, click_run_from_state
from .entry_checks import checked_events, for_each
from .factors_run import new_factors
from .learned_tastes import LearnedTastes
from .run import CANNOT_LEARN
from .stream import Batch, DoublingRounds

__all__ = ["FrankWolfeRecommender"]

#: ``fit`` learns so many events one by one, the others in batches that double.
ONE_BY_ONE = 20_000


class FrankWolfeRecommender(LearnedTastes):
    """Recommend items to users from what they did: clicks, plays, purchases, as they happen.

    X has the user and the item of each event, in the order of time. An event counts as 1, whatever
    a user has not had as a 0 of little weight, and the matrix of these is of low rank. After each
    event the factors of its user and of its item are solved exactly on everything
    (:class:`~onlinefw.OnlineFactors`), so the model can recommend after each. What users did just
    now and what is frequent now count as much as would have ranked the events so far best.

    Users and items are known by their *ids*: text, or whole numbers, which are ids here as well and
    never indices. Those of users are of one kind, and so are those of items. An event that repeats
    gives its pair more weight.

    ``partial_fit`` and ``learn`` come to the same model for the same events, in pieces of any
    length. So does ``fit`` of up to 20,000 events; more of them it learns in batches that double,
    and then it solves all users and items a few times: that is faster, and nearer to the optimum.

    Parameters
    ----------
    rank : int or "auto"
        Of the low-rank matrix. "auto" begins with 14 and is about twice the events of a mean user
        (or item, if that has fewer), up to 126; up to 62 where events are learned one by one, as
        an event takes time like the square of the rank.
    unobserved : float or "auto"
        What an item that a user has not had weighs as a 0; "auto" is 0.2.
    ridge : (float, float) or "auto"
        a and b: what keeps the factors small is a + b n for a user (or item) of n events, where
        items that were not had count ``unobserved`` each; "auto" is a share of what noise is worth
        (see :class:`~onlinefw.OnlineFactors`).
    half_life : float or None
        After how many events one weighs half as much. What weighs less than a thousandth of a new
        event is dropped now and then, so memory follows the half-life, and ``recommend`` may bring
        back an item that a user had that long ago. By default nothing fades.
    epochs : int
        Passes of ``fit``: from the second on all users and items are solved once more.
    dtype : "float32" or "float64"
        Of the store and the factors.
    history_size : int
        Rounds kept in ``history_``, thinned evenly in log t.
    verbose : int
        1 shows a progress bar in terminals and notebooks (with ``rich`` installed).

    Attributes
    ----------
    users_, items_ : ndarray
        The ids that were learned, in the order of their first events.
    unobserved_ : float
        What an item that a user has not had weighs as a 0.
    popularity_ : dict
        How many events each item has had (with a half-life, each event weighs what it does now).
    gap_ : float
        An upper bound on how far the objective is above its minimum over the ball of theta's own
        weighted trace norm (with probability 1 - 1e-6). Computed when asked for.
    mean_loss_ : float
        That objective: the squared errors of all pairs, those not observed as well.
    factors_ : (U, s, V)
        Singular value decomposition of the low-rank matrix.
    rank_ : int
        Its rank.
    n_rounds_, n_observations_ : int
        Rounds played (an event is one), and events learned.
    shape_ : (int, int)
        Users and items.
    history_ : dict of arrays
        t, loss (the mean of a hundred events, before each was learned), seconds and others.

    Examples
    --------
    >>> import onlinefw as ofw
    >>> events = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "milk"], ["eve", "nuts"]]
    >>> model = ofw.FrankWolfeRecommender().fit(events)
    >>> ranks = model.learn([["cat", "tea"]])  # which place it had before it was learned
    >>> model.recommend("cat", n=1)[0]
    array(['milk'], dtype=object)
    >>> items, scores = model.recommend(["ann", "somebody new"], n=2)
    >>> items.shape
    (2, 2)
    >>> model.recommend_for(["milk"], n=1)[0]
    array(['tea'], dtype=object)
    >>> items, contributions = model.because("cat", "milk")
    >>> items
    array(['tea', None], dtype=object)
    """

    _losses = {"square": Square}  # noqa: RUF012 (never changed)
    loss = "square"
    # What other estimators of a matrix have as parameters.
    shape = None
    max_rows = max_columns = MOST
    shuffle = False
    random_state = None
    expected_size = None
    device = "cpu"
    workers = None

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        unobserved: float | str = "auto",
        ridge: Any = "auto",
        half_life: float | None = None,
        epochs: int = 1,
        dtype: str = "float32",
        history_size: int = 10_000,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.unobserved = unobserved
        self.ridge = ridge
        self.half_life = half_life
        self.epochs = epochs
        self.dtype = dtype
        self.history_size = history_size
        self.verbose = verbose

    # Learning -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything and learn the events, one after another.

        Parameters
        ----------
        X : array-like of shape (n, 2), or frame with two columns
            User and item of each event, in the order of time: an array, a list of pairs, or a frame
            of pandas, Polars or Arrow.
        y : ignored
        sample_weight : array-like, optional
            How much each event counts. Those of weight 0 are left out.
        """
        return self._fit(X, None, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn more events, one after another; parameters as for :meth:`fit`."""
        self._learn_events(X, sample_weight, ranked=False)
        return self

    def learn(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None, *, ranks: bool = True
    ) -> Array | None:
        """Learn events in the order given, each ranked before it is learned.

        It is one compiled loop, which comes back every now and then, so Ctrl-C leaves a whole
        number of events learned.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        ranks : bool
            False leaves the work of ranking out.

        Returns
        -------
        ndarray or None
            The place that the item of each event had among the items known then and not yet had by
            the user: 1 is the best. nan for an item that nobody had had, or that the user had
            already, and for events of weight 0. None without ``ranks``.
        """
        return self._learn_events(X, sample_weight, ranked=ranks)

    def _learn_events(self, X: Any, sample_weight: Any, *, ranked: bool) -> Array | None:
        run = self.__dict__.get("_run")
        if run is not None and not run.can_learn:
            raise ValueError(CANNOT_LEARN)
        with unchanged_unless_learned(self, []) if run is None else nullcontext():
            batch = self._checked(X, None, sample_weight, run is None)
            if run is None:
                self._begin(batch)
        ranks = np.empty(len(batch.X)) if ranked else None
        self._play_events(batch, ranks)
        if ranks is None or sample_weight is None:
            return ranks
        return for_each(ranks, sample_weight)

    def prepare(self, X: Any, y: Any = None, sample_weight: Any = None, **more: Any) -> Self:
        """Do nothing: there is nothing to decide from the first events."""
        return self

    @property
    def takes_events(self) -> bool:
        """Whether single events are learned in a compiled loop: always."""
        return True

    def _stream(self, batch: Batch) -> None:
        one_by_one = self._run.n_observations + batch.n <= ONE_BY_ONE
        self._play(self._run.learn_events if one_by_one else self._run.learn_batch, batch)

    def _array_rounds(self, whole: Batch, size: int) -> DoublingRounds:
        return DoublingRounds(whole, size)

    def batch_length(self, n: int) -> int:
        """Return how many of n events ``fit`` learns at first."""
        return ONE_BY_ONE

    def forget(self, user: Any) -> Self:
        """Forget a user: all that they did leaves the model, and their id.

        The items that they had are solved without them: at once, or with their next event if they
        have more than a thousand. From then on the user is as one who was never there. An item that
        only they had is recommended no more.

        This is no proof that nothing could be inferred. Files and checkpoints that were written
        before still hold the user. The factors of items may keep traces of what the user has taught
        them, and counts, and the losses in ``history_``, are of all that came.

        Parameters
        ----------
        user : int or str
            One that the model does not know is refused.
        """
        run = self._learning("forget")
        with run.turns:
            self._play(run.forget, self._number_of(user))
        return self

    # What the base asks for -----------------------------------------------------------------------

    def _parts(self) -> ClickParts:
        return ClickParts.of(self)

    def _checked(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        first: bool,
        classes: Any = None,
        ids: Any = None,
    ) -> Batch:
        return checked_events(self, None if first else self._run, X, sample_weight)

    def _new_run(self, first: Batch, n: int | None, rounds: int | None) -> ClickRun:
        return new_factors(self._parts(), first, rounds, ClickRun)

    def _from_file(self, batch: Any, first: bool = False) -> Batch:
        return checked_events(self, None, batch, None)

    def _file_rounds(self, files: Any) -> Any:
        return checked_events(self, None, files, None)

    def _loaded_run(self, state: State) -> ClickRun:
        return click_run_from_state(self, state)
