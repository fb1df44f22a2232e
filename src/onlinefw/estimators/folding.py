"""What a completed matrix says of rows beyond their predictions: for new ones, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Array
from .._validation import check_targets, check_whole
from ..kernels.lists import some_lists
from ..past.host.folding import contributions, fold_in
from ..past.host.local_models import LocalModels
from .recommending import Recommending

__all__ = ["FoldsIn"]


class FoldsIn(Recommending):
    """An estimator of a matrix with local corrections, whose rows are regressions."""

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
        needs local corrections without a radius, which are the default, and their past.

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
            factors, offset = fold_in(models, own, y[known])
            theta = self._run.matrix.theta
            vector = (factors * theta.weights.astype(factors.dtype))[None]
            scoring, dtype = self._run.scoring(), self._run.matrix.dtype

            def exact(which: Array, cols: Array) -> Array:
                right = scoring.right[cols].astype(float)
                return (right @ vector[0] + scoring.offsets[cols] + offset).astype(dtype)

            taken = (np.array([0, own.size]), own) if exclude_seen else None
            return self._best(vector, wish, taken, exact, one=True)

    def because(self, row: Any, column: Any, n: int = 10) -> tuple[Array, Array]:
        """Return which of a row's own values speak for the prediction of a column, and how much.

        The bias and the factors of a row are a sum over its values (of a square loss), and so is
        what they predict. That needs local corrections without a radius, which are the default,
        and their past.

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
            the rest, which is the mean, the bias of the column, short memories, the row's other
            columns, and what the model has learned since the row's latest value. Contributions
            add up to the prediction.
        """
        check_is_fitted(self)
        n = check_whole("n", n)
        with self._run.turns:
            models = self._regressions("because")
            if models.models.loss is not None:
                raise ValueError(
                    f"because is for the square loss, where a prediction is a sum: {self._run.loss}"
                    " has none"
                )
            number, wanted = self._number_of(row), self._column_number(column)
            at = np.array([number]), np.array([wanted])
            value = float(self._as_values(self._run.predict(*at))[0])
            _, own, values, weights = some_lists(models.lists.by_row, at[0])
            weights = weights.astype(float) if weights.size else np.ones(own.size)
            own = own.astype(np.int64)
            parts = contributions(models, own, values.astype(float), weights, wanted)
            different, which = np.unique(own, return_inverse=True)
            sums = np.bincount(which, parts, minlength=different.size)
            return self._because(different, sums, value, n)

    def _regressions(self, what: str) -> LocalModels:
        """Return the models whose rows are regressions, or say what is missing."""
        run = self._run
        models = run.local.models if run.can_learn and run.has_own_ball else None
        if not isinstance(models, LocalModels):
            raise ValueError(
                f"{what} needs local corrections in the memory of this process, without a radius "
                '(corrective="local"), and their past, which a model file has not'
            )
        return models
