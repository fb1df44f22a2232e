"""What can be asked of a model that learns what users like."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from .._validation import check_whole
from .click_run import ClickRun
from .ids import Ids
from .matrix_estimator import MatrixEstimator
from .pairs import column_of, pairs_of

__all__ = ["LearnedTastes"]


class LearnedTastes(MatrixEstimator):
    """An estimator of what users like: it recommends items to them, and says why."""

    _run: ClickRun
    _sides = ("user", "item")

    # Recommending ---------------------------------------------------------------------------------

    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        candidates: Any = None,
        exclude: Any = None,
    ) -> tuple[Array, Array]:
        """Return the n best items for a user, or for many at once, and their scores.

        Parameters
        ----------
        users : int or str, or array-like of them
            One user, or many. A user that the model does not know gets what is popular now.
        n : int
            How many items, at most.
        exclude_seen : bool
            Leave out what a user has had.
        candidates : array-like, optional
            Recommend only from these items. Those that the model does not know are left out.
        exclude : array-like, optional
            Leave these items out.

        Returns
        -------
        items, scores : ndarray
            For one user at most n, the best first. For many two arrays with n columns; where there
            are fewer for a user, items are padded with None and scores with -inf.
        """
        how = {"exclude_seen": exclude_seen, "candidates": candidates, "exclude": exclude}
        return super().recommend(users, n, **how)

    def recommend_for(
        self,
        items: Any,
        n: int = 10,
        *,
        candidates: Any = None,
        exclude: Any = None,
        exclude_seen: bool = True,
    ) -> tuple[Array, Array]:
        """Return the n best items for somebody who is not in the model, and their scores.

        What they like is found as it is for users, by a regression on what they have had. Nothing
        is stored.

        Parameters
        ----------
        items : array-like of int or str
            What they have had, the latest last. Those that the model does not know are left out.
        n, candidates, exclude, exclude_seen
            As for :meth:`recommend`.
        """
        check_is_fitted(self)
        with self._run.turns:
            wish = self._wish(n, exclude_seen, candidates, exclude)
            numbers = self._column_numbers("items", items)
            numbers = numbers[numbers >= 0]
            vector = self._run.vector_of(numbers)[None]
            taken = (np.array([0, numbers.size]), numbers) if exclude_seen else None

            def exact(which: Array, columns: Array) -> Array:
                return self._run.exact(which, vector[which], columns)

            return self._best(vector, wish, taken, exact, one=True)

    def because(self, user: Any, item: Any, n: int = 10) -> tuple[Array, Array]:
        """Return which of a user's own items speak for an item, and how much.

        What a user likes is a sum over what they have had, and so is a score. Contributions may be
        negative: then an item speaks against it.

        Parameters
        ----------
        user, item : int or str
            An item that the model does not know is refused.
        n : int
            How many items, at most.

        Returns
        -------
        items, contributions : ndarray
            The user's items that contribute most, the largest first. The last item is None: all the
            rest, which is what is popular, the user's other items, and what the model has learned
            since the user's latest event. Contributions add up to the score that ``recommend``
            gives.
        """
        check_is_fitted(self)
        n = check_whole("n", n)
        with self._run.turns:
            number, column = int(self._numbers_of([user])[0]), self._column_number(item)
            score = float(self._run.predict(np.array([number]), np.array([column]))[0])
            own, parts = np.empty(0, np.int64), np.empty(0)
            if number >= 0:
                own, parts = self._run.contributions(number, column)
            return self._because(own, parts, score, n)

    def predict(self, X: Any) -> Array:
        """Return the scores of pairs of users and items, by which ``recommend`` ranks.

        For users that the model does not know they are those of what is popular now; for items
        that nobody has had, nan.

        Parameters
        ----------
        X : array-like of shape (n, 2), or frame with two columns
            Users and items.
        """
        check_is_fitted(self)
        with self._run.turns:
            rows, columns = self._ids.look_up(pairs_of(X, self._sides), self._sides)
            known = columns >= 0
            known[known] = self._allowed(None, None)[columns[known]]
            scores = np.full(rows.size, np.nan)
            scores[known] = self._run.predict(rows[known], columns[known])
            return scores

    # Asking ---------------------------------------------------------------------------------------

    def knows(self, user: Any) -> bool:
        """Whether events of a user have been learned."""
        check_is_fitted(self)
        with self._run.turns:
            return bool(self._numbers_of([user])[0] >= 0)

    def items_of(self, user: Any) -> Array:
        """Return the items that a user has had, the latest last; none for an unknown user."""
        check_is_fitted(self)
        with self._run.turns:
            return self._named(self._run.taken(self._numbers_of([user]))[1])

    @property
    def users_(self) -> Array:
        """The ids of the users, in the order of their first events."""
        users = self._fitted("users_").ids.rows.ids
        forgotten = [user is None for user in users.tolist()]
        return column_of("user", users[~np.array(forgotten, bool)]).ids if any(forgotten) else users

    @property
    def items_(self) -> Array:
        """The ids of the items, likewise."""
        return self._fitted("items_").ids.columns.ids

    @property
    def unobserved_(self) -> float:
        """What an item that a user has not had weighs as a 0."""
        return float(self._fitted("unobserved_").clicks.unobserved)

    @property
    def popularity_(self) -> dict[Any, float]:
        """How many events each item has had; items that only forgotten users had are left out."""
        run = self._fitted("popularity_")
        with run.turns:
            counts = run.popularity()
            both = zip(run.ids.columns.ids.tolist(), counts.tolist(), strict=False)
            return {item: count for item, count in both if count > 0.0}

    @property
    def _ids(self) -> Ids:
        """What users and items are called; a recommender always has ids."""
        assert self._run.ids is not None
        return self._run.ids

    # Names ----------------------------------------------------------------------------------------

    def _numbers_of(self, rows: Any) -> Array:
        """Return the numbers of users; -1 for those that the model does not know."""
        return self._looked_up(0, rows, "users")

    def _allowed(self, candidates: Any, exclude: Any) -> Array:
        """Return which items may be recommended: those that somebody has had."""
        allowed = super()._allowed(candidates, exclude)
        return allowed & (self._run.clicks.lists.by_column.length[: allowed.size] > 0)

    def _as_values(self, z: Array) -> Array:
        return z
