"""The one thread that learns events and writes them to the log."""

from __future__ import annotations

import json
import sys
from concurrent.futures import Future
from copy import copy, deepcopy
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

from .engine import Engine, Refusal
from .faces import Event, face_of
from .garbage import let_go
from .log import EventLog, LogError, checkpoint_beside
from .rebuilding import Learned, base_bytes, base_of, rebuilt, remove_checkpoint, save_learned

__all__ = ["Batch", "Writer"]

#: So many events share a sync of the disk, unless one request has more.
GROUP = 2000
#: Requests with so many bytes may wait.
MOST_BYTES = 2**26
#: After a checkpoint that failed, the next is tried so many seconds later.
RETRY = 30.0


class Batch:
    """The events of one request: at each position an event, in the order of the request."""

    def __init__(
        self, events: list[tuple[int, Event]], atomic: bool, refused: list[Any], size: int = 0
    ) -> None:
        self.events, self.atomic, self.refused = events, atomic, refused
        #: How many bytes the request had.
        self.size = size
        self.learned = self.repeated = 0

    def refuse(self, position: int, error: object) -> None:
        """Note that an event is refused, and why."""
        self.refused.append({"position": position, "error": " ".join(str(error).split())})

    def answer(self, n_events: int) -> dict[str, Any]:
        """Return what the client is told."""
        said: dict[str, Any] = {"learned": self.learned, "repeated": self.repeated}
        said["events"] = n_events
        if self.refused:
            said["refused"] = sorted(self.refused, key=lambda one: one["position"])
        return said


class Writer(Engine):
    """Learns events, writes them to the log, and only then says so.

    A group is learned by the copy that nobody reads, then brought to the disk, and then the copies
    change places. If the disk fails, or an event cannot be learned, that copy is made anew from
    the other: the log never has what was not learned, and no answer comes from what is not in it.
    """

    no_learning = ""

    def __init__(
        self,
        learned: Learned,
        log: EventLog,
        *,
        checkpoint_every: int = 100_000,
        most_waiting: int = 50_000,
        prune: bool = False,
    ) -> None:
        super().__init__(learned)
        self.log, self.prune = log, prune
        self.checkpoint_every, self.most_waiting = checkpoint_every, most_waiting
        self.checkpoint_path: Path = checkpoint_beside(log.path)
        #: Of the newest checkpoint, and of the one that is being written.
        self.checkpoint_seq = self._writing_seq = -1
        self._waiting = self._waiting_bytes = 0
        self._background: Thread | None = None
        self._not_before = 0.0
        #: Whether SQLite's own log may still hold what was erased: somebody reads it, or whoever
        #: was erasing was killed.
        self._untidy = not log.tidy()
        self.n_refused = self.n_repeated = self.n_checkpoints = self.n_groups = 0
        #: The newest problem with the disk; empty when it is over.
        self.trouble = ""

    # For other threads ----------------------------------------------------------------------------

    def learn(self, batch: Batch) -> Future[Any]:
        """Let events be learned; the future has the answer once they are on the disk."""
        with self._wake:
            n, size = len(batch.events), self._waiting_bytes + batch.size
            if self._waiting and (self._waiting + n > self.most_waiting or size > MOST_BYTES):
                raise Refusal(
                    429,
                    f"{self._waiting} events wait to be learned, and no more than "
                    f"{self.most_waiting} may: send it again in a second",
                )
            future = self._put(("learn", batch))
            self._waiting += n
            self._waiting_bytes = size
        return future

    def forget(self, who: Any, id_: str | None) -> Future[Any]:
        """Let everything that somebody gave be erased, from the log and from the model."""
        return self._put(("forget", (who, id_)))

    def has_learned(self, ids: list[str]) -> Future[Any]:
        """Return which of these events the log has."""
        return self.ask(lambda _: self.log.known(ids))

    @property
    def n_waiting(self) -> int:
        """How many events wait to be learned."""
        return self._waiting

    # The thread -----------------------------------------------------------------------------------

    def _turn(self) -> None:
        self._after_background()
        if self._untidy:
            self._untidy = not self.log.tidy()
        if self._tasks and self._tasks[0][0] == "learn":
            group = self._group()
            try:
                self._learn([batch for _, batch, _ in group], group)
            except BaseException as error:
                self._answer_all(group, error)
        elif self._tasks and self._tasks[0][0] == "forget":
            _, (who, id_), future = self._tasks.popleft()
            try:
                future.set_result(self._forget(who, id_))
            except BaseException as error:
                future.set_exception(error)
        else:
            super()._turn()
        if self._checkpoint_is_due():
            self._begin_checkpoint()

    def _group(self) -> list[Any]:
        """Take the batches that wait, up to the next task of another kind."""
        group: list[Any] = []
        n = 0
        with self._wake:
            while self._tasks and self._tasks[0][0] == "learn":
                size = len(self._tasks[0][1].events)
                if group and n + size > GROUP:
                    break
                group.append(self._tasks.popleft())
                n += size
        return group

    def _learn(self, batches: list[Batch], group: list[Any]) -> None:
        chosen = self._without_repeated(batches)
        try:
            events, predicted = self._taught(batches, chosen)
        except BaseException:
            self.sides.restore_back()
            raise
        if events:
            self._keep(events)
            self.sides.swap()
            self._count(events, predicted)
        self._answer_all(group)
        if events:
            try:
                self.face.learn(self.sides.back, [one.values for one in events])
            except BaseException:
                self.sides.restore_back()

    def _count(self, events: list[Event], predicted: Any) -> None:
        learned = self.learned
        learned.seq += len(events)
        learned.n_events += len(events)
        learned.add_scores(predicted, events)
        self.n_groups += 1

    def _answer_all(self, group: list[Any], error: BaseException | None = None) -> None:
        with self._wake:
            self._waiting -= sum(len(batch.events) for _, batch, _ in group)
            self._waiting_bytes -= sum(batch.size for _, batch, _ in group)
        for _, batch, future in group:
            if error is None:
                self.n_repeated += batch.repeated
                future.set_result(batch.answer(self.learned.n_events))
            else:
                future.set_exception(error)

    def _without_repeated(self, batches: list[Batch]) -> list[list[tuple[int, Event]]]:
        """Return the events of each batch that the log does not have yet."""
        ids = [one.id for batch in batches for _, one in batch.events if one.id is not None]
        known = self.log.known(ids) if ids else set()
        chosen = []
        for batch in batches:
            new = [pair for pair in batch.events if pair[1].id not in known]
            batch.repeated = len(batch.events) - len(new)
            chosen.append(new)
        return chosen

    # Learning -------------------------------------------------------------------------------------

    def _taught(self, batches: list[Batch], chosen: list[Any]) -> tuple[list[Event], Any]:
        """Let the back learn; return what it has learned, and what it predicted before."""
        ids = [one.id for new in chosen for _, one in new if one.id is not None]
        before = _size(self.sides.back)
        if len(set(ids)) == len(ids):
            try:
                events = self.face.settled([one for new in chosen for _, one in new])
                if not events:
                    return [], []
                predicted = self.face.learn(self.sides.back, [one.values for one in events])
            except Exception:
                if _size(self.sides.back) != before:
                    self.sides.restore_back()
                self._undecide()
            else:
                for batch, new in zip(batches, chosen, strict=True):
                    batch.learned = len(new)
                return events, predicted
        return self._taught_one_by_one(batches, chosen)

    def _taught_one_by_one(
        self, batches: list[Batch], chosen: list[Any]
    ) -> tuple[list[Event], Any]:
        """Find out which events cannot be learned; of a batch that is atomic, all or none."""
        done: list[Event] = []
        predicted: list[Any] = []
        ids: set[str] = set()
        for batch, new in zip(batches, chosen, strict=True):
            for part in [new] if batch.atomic else [[pair] for pair in new]:
                fresh, own = [], set()
                for pair in part:
                    id_ = pair[1].id
                    if id_ is None or (id_ not in ids and id_ not in own):
                        fresh.append(pair)
                    own |= set() if id_ is None else {id_}
                batch.repeated += len(part) - len(fresh)
                if not fresh:
                    continue
                answers = self._tried(batch, fresh, done)
                if answers is not None:
                    done += answers[0]
                    predicted += list(answers[1])
                    ids |= own
                    batch.learned += len(fresh)
        return done, predicted

    def _tried(self, batch: Batch, part: list[tuple[int, Event]], done: list[Event]) -> Any:
        """Learn a part, or refuse it and leave the back as it was."""
        back = self.sides.back
        before = _size(back)
        try:
            events = self.face.settled([one for _, one in part])
            return events, self.face.learn(back, [one.values for one in events])
        except Exception as error:
            why = error
        for position, _ in part:
            batch.refuse(position, why)
        if _size(back) != before:
            self.sides.restore_back()
            if done:
                self.face.learn(self.sides.back, [one.values for one in done])
        self._undecide()
        return None

    def _keep(self, events: list[Event]) -> None:
        """Bring events to the disk, or take back what was learned."""
        face, rows = self.face, []
        for one in events:
            body = face.body(one.values)
            if one.served is not None:
                body["served"] = one.served
            text = json.dumps(body, separators=(",", ":"))
            rows.append((one.id, one.kind, face.who(one.values), text))
        try:
            self.log.append(rows)
            columns = getattr(face, "columns", None)
            if columns and "columns" not in self.log.facts:
                self.log.note("columns", columns)
            self.log.commit()
        except BaseException as error:
            self._take_back()
            self.trouble = str(error)
            raise Refusal(507, f"nothing of this was learned: {error}") from error
        self.trouble = ""

    def _take_back(self) -> None:
        try:
            self.log.rollback()
        except LogError as error:  # else the next group would write what nobody has learned
            self.no_learning = f"the log is in disorder: restart the server ({error})"
            print(f"ofw serve: {error}", file=sys.stderr)
        self.sides.restore_back()
        self._undecide()

    def _undecide(self) -> None:
        """Let the next row decide the columns, if none has been learned."""
        if not self.sides.back.__sklearn_is_fitted__():
            self.face = self.learned.face = face_of(self.sides.back, self.log.facts)

    # Forgetting -----------------------------------------------------------------------------------

    def _forget(self, who: Any, id_: str | None) -> dict[str, Any]:
        id_ = None if id_ is None else f"forget:{id_}"  # events have other ids
        if id_ is not None and self.log.known([id_]):
            return {"forgotten": 0, "repeated": 1, "events": self.learned.n_events}
        self._wait_for_background()
        if "user" in self.face.more and self.log.facts.get("pruned", 0):
            raise Refusal(
                409,
                f"rows up to event {self.log.facts['pruned']:,} were pruned, and whose they were "
                "is not kept: serve without --prune where somebody may have to be forgotten",
            )
        base = base_of(self.log)
        in_base = base is not None and _forgets(base["model"], who)
        try:
            n = self.log.erase(
                str(who), base_bytes(base) if in_base and base else None, in_base, id_
            )
            if not n and not in_base:
                raise Refusal(404, f"nothing is known of {str(who)!r:.60}")
            self.log.commit()
        except BaseException as error:
            self.log.rollback()
            if isinstance(error, LogError):
                raise Refusal(507, f"nothing was forgotten: {error}") from error
            raise
        try:
            self._untidy = not self.log.tidy()
            learned = rebuilt(self.log, lambda _: None)
        except BaseException as error:  # the log is right, so a new start is, too
            self.no_learning = f"the model has to be made anew: restart the server ({error})"
            raise Refusal(500, self.no_learning) from error
        remove_checkpoint(self.checkpoint_path)
        self.sides.replace(learned.model)
        learned.model = None
        self.learned, self.face = learned, learned.face
        self._version += 1
        self._facts = None
        let_go()
        self._save()
        return {"forgotten": n, "events": learned.n_events}

    # Checkpoints ----------------------------------------------------------------------------------

    def _checkpoint_is_due(self) -> bool:
        if self._background is not None or monotonic() < self._not_before:
            return False
        return self.learned.seq - max(self.checkpoint_seq, 0) >= self.checkpoint_every

    def _begin_checkpoint(self) -> None:
        """Copy the model, and write the copy while learning goes on."""
        try:
            whole = self._copied(deepcopy(self.sides.back))
        except MemoryError as error:
            self._no_checkpoint(error)
            return
        self._writing_seq = whole.seq
        self._background = Thread(target=self._write, args=(whole,), name="ofw-saves")
        self._background.start()

    def _copied(self, model: Any) -> Learned:
        whole = copy(self.learned)
        whole.model = model
        whole.progressive, whole.served = deepcopy((whole.progressive, whole.served))
        return whole

    def _write(self, whole: Learned) -> None:
        try:
            save_learned(whole, self.checkpoint_path)
        except (OSError, ValueError, MemoryError) as error:
            self._no_checkpoint(error)
        else:
            self.checkpoint_seq = whole.seq
            self.n_checkpoints += 1

    def _no_checkpoint(self, error: BaseException) -> None:
        self.trouble = str(error) or type(error).__name__
        self._not_before = monotonic() + RETRY
        print(f"ofw serve: no checkpoint was written: {self.trouble}", file=sys.stderr)

    def _after_background(self) -> None:
        if self._background is not None and not self._background.is_alive():
            self._wait_for_background()

    def _wait_for_background(self) -> None:
        if self._background is None:
            return
        self._background.join()
        self._background = None
        if self.prune and self.checkpoint_seq == self._writing_seq:
            self._prune()

    def _prune(self) -> None:
        """Remove from the log what the checkpoint has; the checkpoint is then its base."""
        if self.checkpoint_seq <= self.log.facts.get("pruned", 0):
            return
        try:
            self.log.prune(self.checkpoint_seq, self.checkpoint_path.read_bytes())
        except OSError as error:  # LogError, too: nothing was removed
            self.log.rollback()
            print(f"ofw serve: nothing was pruned: {error}", file=sys.stderr)

    def _save(self) -> None:
        """Write a checkpoint now."""
        self._writing_seq = self.learned.seq
        self._write(self._copied(self.sides.back))
        if self.prune:
            self._prune()

    def _end(self) -> None:
        self._wait_for_background()
        if self.checkpoint_seq != self.learned.seq and not self.in_haste:
            self._save()
        self.log.close()


def _size(model: Any) -> Any:
    """Return how much a model has learned; None if it is broken or has learned nothing."""
    try:
        return model.n_rounds_ if model.__sklearn_is_fitted__() else 0
    except Exception:
        return None


def _forgets(base: Any, who: Any) -> bool:
    """Let a model forget somebody; whether it knew them."""
    if not base.__sklearn_is_fitted__():
        return False
    try:
        base.forget(who)
    except (ValueError, AttributeError):  # it does not know them, or keeps nothing of anybody
        return False
    return True
