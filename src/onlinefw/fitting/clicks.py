"""A session that learns what people like from (user, item) events."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, State
from ..estimators import FrankWolfeRecommender
from ..readers import IdMap
from .scores import RankScore
from .session import Session

__all__ = ["ClicksSession"]

#: Events are learned up to so many in a call, which is the same as one by one.
EVENTS = 256
#: With more items than this, only a share of the calls is ranked: ranking looks at every item.
RANKED = 2_000


class ClicksSession(Session):
    """Events come in and are learned one after another; before that their items are ranked.

    Users and items keep their names here, and the model knows them by numbers: a file may have
    numbers first and text later. Events whose value is below ``at_least`` are left out: a rating of
    2 says that something was not liked.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace as Chunk
    >>> from onlinefw.fitting.clicks import ClicksSession
    >>> session = ClicksSession()
    >>> users, items = np.array(["ann", "bob", "ann"]), np.array([7, 7, 9])
    >>> session.read(Chunk(users=users, items=items))
    >>> session.play()
    >>> session.rows_learned, session.users.ids.tolist(), session.items.ids.tolist()
    (3, ['ann', 'bob'], [7, 9])
    """

    kind = "clicks"

    def __init__(self, *, at_least: float | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.at_least = at_least
        self.users, self.items = IdMap(), IdMap()

    def _new_model(self, settings: dict[str, Any]) -> FrankWolfeRecommender:
        del settings["expected_size"]
        return FrankWolfeRecommender(**settings)

    def read(self, chunk: Any) -> None:
        """Take events in; names not seen before get the next numbers."""
        users, items = self._liked(chunk)
        X = np.column_stack((self.users.add(users), self.items.add(items)))
        self._put(X, np.ones(len(X)))

    def _liked(self, chunk: Any) -> tuple[Array, Array]:
        if self.at_least is None:
            return chunk.users, chunk.items
        liked = np.asarray(chunk.values) >= self.at_least
        return chunk.users[liked], chunk.items[liked]

    def _prepare(self, X: Array, y: Array) -> None:
        """Nothing is decided by the first events."""

    def _at_a_time(self) -> int:
        return EVENTS - self.rows_learned % EVENTS

    @property
    def batch_length(self) -> int:
        """Events that must wait before some are learned."""
        return EVENTS if self.batch_size == "auto" else int(self.batch_size)

    def _learn(self, X: Array, y: Array) -> Array:
        """Learn events; return the ranks that their items had before, where that was looked for."""
        turn = 1 + len(self.items) // RANKED
        ranked = self.rows_learned // EVENTS % turn == 0
        ranks = self.model.learn(X, ranks=ranked)
        return ranks if ranked else np.empty(0)

    def _predict(self, X: Array) -> Array:
        """Return the ranks that items have now; inf for those that would not be shown."""
        top = RankScore.top
        users, which = np.unique(X[:, 0], return_inverse=True)
        shown, _ = self.model.recommend(users, top)
        shown = np.where(shown == None, -1, shown).astype(np.int64)  # noqa: E711
        hits = shown[which] == X[:, 1:]
        ranks = np.where(hits.any(axis=1), 1.0 + hits.argmax(axis=1), np.inf)
        had = {int(user): set(self.model.items_of(user)) for user in users.tolist()}
        known = self.model.popularity_
        countless = [item not in known or item in had[user] for user, item in X.tolist()]
        ranks[np.array(countless, bool)] = np.nan
        return ranks

    def size(self) -> dict[str, int]:
        """Return the rank."""
        return {"rank": self.model.rank_, "users": len(self.users), "items": len(self.items)}

    def size_so_far(self) -> tuple[str, int]:
        """Return the number of items."""
        return "items", len(self.items)

    def new_score(self) -> RankScore:
        """Return a score that has counted nothing."""
        return RankScore()

    def score_chunk(self, chunk: Any, score: RankScore) -> None:
        """Count how well the model ranks events; those of items never seen are not ranked."""
        users, items = self._liked(chunk)
        X = np.column_stack((self.users.lookup(users), self.items.lookup(items)))
        score.add(None, self._predict(X))

    def names(self) -> tuple[Array, Array]:
        """Return the names of the model's users and items, in its order."""
        model = self.model
        return self.users.ids[model.users_.astype(int)], self.items.ids[model.items_.astype(int)]

    def _settings(self) -> State:
        return {**super()._settings(), "at_least": self.at_least}

    def state_dict(self) -> State:
        """Return everything: the model itself, and plain values and arrays beside it."""
        names = {"users": self.users.state_dict(), "items": self.items.state_dict()}
        return {**super().state_dict(), **names}

    def load_state(self, state: State) -> None:
        """Become what ``state_dict`` described."""
        super().load_state(state)
        self.users, self.items = (IdMap.from_state(state[name]) for name in ("users", "items"))
