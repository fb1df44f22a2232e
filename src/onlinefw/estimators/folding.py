"""What a completed matrix says of rows beyond their predictions: for new ones, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from .._validation import check_targets, check_whole
from ..factors.chains import Chains
from .factors_run import FactorsRun
from .recommending import Recommending

__all__ = ["FoldsIn"]


class FoldsIn(Recommending):
    """An estimator of a matrix with factors, whose rows are regressions."""

    def recommend_for(
        self,
        columns: Any,
        values: Any,
        n: int = 10,
        *,
        candidates: Any = None,
        exclude: Any = None,
        exclude_seen: bool = True,
    ) -> tuple[Array, Array]:
        """Return the n best columns for a row that is not in the model, and the predictions.

        The row is solved as others are, by a regression on its values. Nothing is stored. That
        needs factors, which are the default, and their past.

        Parameters
        ----------
        columns : array-like of int or str
            Where the row has values. Columns that the model does not know are left out.
        values : array-like of float
            What they are.
        n, candidates, exclude, exclude_seen
            As for ``recommend``.
        """
        check_is_fitted(self)
        with self._run.turns:
            models = self._regressions("recommend_for")
            wish = self._wish(n, exclude_seen, candidates, exclude)
            given = self._column_numbers("columns", columns)
            known = given >= 0
            y = check_targets(values, given.size, self._run.loss) if given.size else np.empty(0)
            own = given[known]
            vector, offset = models.fold_in(own, y[known])
            vector = vector[None]
            scoring, dtype = self._run.scoring(), self._run.matrix.dtype

            def exact(which: Array, cols: Array) -> Array:
                return (scoring.right[cols].astype(float) @ vector[0] + offset).astype(dtype)

            taken = (np.array([0, own.size]), own) if exclude_seen else None
            return self._best(vector, wish, taken, exact, one=True)

    def because(self, row: Any, column: Any, n: int = 10) -> tuple[Array, Array]:
        """Return which of a row's own values speak for the prediction of a column, and how much.

        The bias and the factors of a row are a sum over its values (of a square loss), and so is
        what they predict. That needs factors, which are the default, and their past.

        Parameters
        ----------
        row, column : int or str
            Their ids if the model has ids, else their indices; those unknown are refused.
        n : int
            How many columns, at most.

        Returns
        -------
        columns, contributions : ndarray
            The row's columns that contribute most, the largest first. The last one is None: all
            the rest, which is the mean, the bias of the column, moods, the row's other
            columns, and what the model has learned since the row's latest value. Contributions
            add up to the prediction.
        """
        check_is_fitted(self)
        n = check_whole("n", n)
        with self._run.turns:
            models = self._regressions("because")
            if models.loss[0] != 0:
                raise ValueError(
                    f"because is for the square loss, where a prediction is a sum: {self._run.loss}"
                    " has none"
                )
            number, wanted = self._number_of(row), self._column_number(column)
            at = np.array([number]), np.array([wanted])
            value = float(self._as_values(self._run.predict(*at))[0])
            own, parts = models.contributions(number, wanted)
            different, which = np.unique(own, return_inverse=True)
            sums = np.bincount(which, parts, minlength=different.size)
            return self._because(different, sums, value, n)

    def _regressions(self, what: str) -> Chains:
        """Return the models whose rows are regressions, or say what is missing."""
        run = self._run
        if not isinstance(run.leader_run, FactorsRun) or not run.can_learn:
            raise ValueError(
                f'{what} needs factors (corrective="factors") in the memory of this process, and '
                "their past, which a model file has not"
            )
        return run.leader_run.learner.model
