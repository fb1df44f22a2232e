"""scikit-learn's callbacks, where the installed version has them (1.9 and later)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an older scikit-learn: estimators without callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "RoundCallbacks", "with_callbacks"]


class RoundCallbacks:
    """Tells an estimator's callbacks when ``fit`` begins and ends, and of each of its rounds.

    ``stopped`` is whether a callback wants to stop.
    """

    def __init__(self, estimator: Any, rounds: int, **data: Any) -> None:
        self._estimator, self._data = estimator, data
        self._context: Any = None
        self.stopped = False
        if getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(max_subtasks=rounds)
            self._context.call_on_fit_task_begin(estimator=estimator, **data)

    def play(self, play_round: Callable[[], Any]) -> None:
        """Play a round."""
        if self._context is None:
            play_round()
            return
        task = self._context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        play_round()
        self.stopped = bool(self._end(task))

    def end(self) -> None:
        """Say that the last round is over."""
        if self._context is not None:
            self._end(self._context)

    def _end(self, task: Any) -> bool:
        # A copy of the estimator can predict at any time: nothing has to be reconstructed.
        return task.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes={}, **self._data
        )
