"""The log of events: an SQLite database that one process writes and others may read.

``base`` is what the events are learned on top of: nothing (then ``settings`` say which model is
begun), or a checkpoint. ``events`` are all that came since, in their order. So the log alone makes
the model: see ``rebuilding.py``.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self
from zlib import crc32

__all__ = ["EventLog", "LogError", "Logged", "checkpoint_beside"]

FORMAT = 1
SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE base (part INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, id TEXT UNIQUE, kind TEXT NOT NULL, who TEXT, body TEXT, crc INTEGER
);
"""
#: How long to wait for a program that has locked the database, in seconds.
PATIENCE = 5.0
#: So many ids are looked up by one query, and so many bytes are in one part of the base.
IDS_AT_ONCE, PART = 500, 2**23
#: What SQLite says of a file that is not what was written.
DAMAGED = ("malformed", "not a database", "***", "row", "decode")
#: Events that are read at a time.
READ = 2000


class LogError(OSError):
    """The log cannot be read or written; the message is one line."""


class Logged(NamedTuple):
    """An event as the log has it: ``body`` is JSON, or None once it was erased."""

    seq: int
    kind: str  # "learn", "label" or "forget"
    body: str | None


def checkpoint_beside(log: Path) -> Path:
    """Return where the checkpoint of a log lies."""
    return log.with_name(log.name + ".ckpt")


class EventLog:
    """Events on disk. What was appended is there for good after ``commit``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from onlinefw.serve.log import EventLog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = EventLog.create(pathlib.Path(folder) / "events.db", {"kind": "matrix"})
    ...     log.append([("e1", "learn", "ann", '{"user":"ann","item":"Up","value":4.0}')])
    ...     log.commit()
    ...     known = log.known(["e1", "e2"])
    ...     log.close()
    >>> known
    {'e1'}
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._sql = path, connection
        self.facts: dict[str, Any] = {}
        self.refresh()
        if self.facts.get("format") != FORMAT:
            found = self.facts.get("format")
            raise LogError(f"{path} is a log of format {found!r:.20}, and this reads {FORMAT}")

    # Opening --------------------------------------------------------------------------------------

    @staticmethod
    def is_begun(path: Path) -> bool:
        """Whether there is a log: not so if whoever was about to make one was killed."""
        if not path.exists() or not path.stat().st_size:
            return False
        with _naming(path):
            connection = _connect(path)
            try:
                return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
            finally:
                connection.close()

    @classmethod
    def create(cls, path: Path, facts: dict[str, Any], base: bytes | None = None) -> Self:
        """Make a new log, whole or not at all."""
        with _naming(path):
            connection = _writing(path)
            facts = {"format": FORMAT, "log": secrets.token_hex(8), "removed": 0, **facts}
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA.split(";"):
                connection.execute(statement)
            rows = [(name, json.dumps(value)) for name, value in facts.items()]
            connection.executemany("INSERT INTO facts VALUES (?, ?)", rows)
            _put_base(connection, base)
            connection.execute("COMMIT")
        return cls(path, connection)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a log to go on with it, after a look at all its pages."""
        with _naming(path):
            connection = _writing(path)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise sqlite3.DatabaseError(found)
        return cls(path, connection)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a log for reading, while another process may write it."""
        if not path.is_file():
            raise FileNotFoundError(2, "there is no such file", str(path))
        with _naming(path):
            try:
                connection = _connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
                connection.execute("SELECT 1 FROM facts").fetchone()
            except sqlite3.OperationalError as error:
                if "open" not in str(error) and "readonly" not in str(error):
                    raise
                # In a folder that cannot be written SQLite has no place for its shared index.
                connection = _connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
            return cls(path, connection)

    @contextmanager
    def at_one_time(self) -> Iterator[None]:
        """Let what is read be the log of now, whatever another process erases meanwhile."""
        with self._naming():
            self._sql.execute("BEGIN")
        try:
            self.refresh()
            yield
        finally:
            with self._naming():
                if self._sql.in_transaction:
                    self._sql.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the file; what was not committed is gone."""
        self._sql.close()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        with _naming(self.path):
            yield

    # Writing --------------------------------------------------------------------------------------

    def append(self, events: Iterable[tuple[str | None, str, str | None, str | None]]) -> None:
        """Add events (id, kind, who, body), to be committed."""
        with self._naming():
            self._begin()
            first = self.last + 1
            rows = [
                (seq, id_, kind, who, body, _crc(seq, body))
                for seq, (id_, kind, who, body) in enumerate(events, first)
            ]
            self._sql.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)

    def note(self, name: str, value: Any) -> None:
        """Write a fact, to be committed."""
        with self._naming():
            self._begin()
            row = (name, json.dumps(value))
            self._sql.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", row)
        self.facts[name] = value

    def erase(self, who: str, base: bytes | None, in_base: bool, id_: str | None) -> int:
        """Erase the bodies of somebody's events, to be committed; their ids and counts stay.

        That it happened is an event, too. It holds the first event that was erased, so that no
        checkpoint is used which has learned it: 0 if the base had, which is then replaced.
        """
        with self._naming():
            self._begin()
            query = "SELECT min(seq), count(*) FROM events WHERE who = ?"
            first, n = self._sql.execute(query, (who,)).fetchone()
            if in_base:
                _put_base(self._sql, base)
                first = 0
            change = "UPDATE events SET who = NULL, body = NULL, crc = NULL WHERE who = ?"
            self._sql.execute(change, (who,))
        self.append([(id_, "forget", None, json.dumps({"first": first}))])
        return n

    def prune(self, seq: int, base: bytes) -> None:
        """Let a checkpoint be the base, and remove what it has learned; ids stay. Commits."""
        with self._naming():
            self._begin()
            _put_base(self._sql, base)
            cut = (seq,)
            gone = "DELETE FROM events WHERE seq <= ? AND id IS NULL AND kind != 'forget'"
            removed = self._sql.execute(gone, cut).rowcount
            change = "UPDATE events SET who = NULL, body = NULL, crc = NULL WHERE seq <= ?"
            self._sql.execute(f"{change} AND body IS NOT NULL AND kind != 'forget'", cut)
        self.note("removed", self.facts["removed"] + removed)
        self.note("pruned", seq)
        self.commit()

    def _begin(self) -> None:
        if not self._sql.in_transaction:
            self._sql.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Bring what was appended to the disk."""
        with self._naming():
            if self._sql.in_transaction:
                self._sql.execute("COMMIT")

    def rollback(self) -> None:
        """Take back what was not committed."""
        with self._naming():
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
        self.refresh()

    def tidy(self) -> bool:
        """Empty SQLite's own log of pages, so that it holds nothing of what was erased.

        Not done while somebody reads what was there before, or the disk is full; return whether it
        is done.
        """
        try:
            (busy, *_) = self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error:
            return False
        return not busy

    # Reading --------------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The number of the newest event; 0 without any."""
        with self._naming():
            (last,) = self._sql.execute("SELECT max(seq) FROM events").fetchone()
        return max(last or 0, self.facts.get("pruned", 0))

    def events_until(self, seq: int) -> int:
        """Return how many events to learn from came up to this one, erased ones too."""
        with self._naming():
            query = "SELECT count(*) FROM events WHERE seq <= ? AND kind != 'forget'"
            (n,) = self._sql.execute(query, (seq,)).fetchone()
        return n + self.facts["removed"]

    def refresh(self) -> None:
        """Read the facts, which another process may have changed."""
        with self._naming():
            rows = self._sql.execute("SELECT name, value FROM facts").fetchall()
        self.facts = {name: json.loads(value) for name, value in rows}

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that the log has."""
        found: set[str] = set()
        with self._naming():
            for k in range(0, len(ids), IDS_AT_ONCE):
                some = ids[k : k + IDS_AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"SELECT id FROM events WHERE id IN ({marks})"
                found.update(id_ for (id_,) in self._sql.execute(query, some))
        return found

    def after(self, seq: int) -> Iterator[list[Logged]]:
        """Return the events after one, in pieces; each is read at once, so none is kept open."""
        while True:
            with self._naming():
                query = "SELECT seq, kind, body, crc FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
                rows = self._sql.execute(query, (seq, READ)).fetchall()
            if not rows:
                return
            for number, _, body, crc in rows:
                if body is not None and crc != _crc(number, body):
                    raise LogError(
                        f"{self.path} is damaged: event {number} is not what was written; "
                        "use a copy of it"
                    )
            seq = rows[-1][0]
            yield [Logged(number, kind, body) for number, kind, body, _ in rows]

    def base(self) -> bytes | None:
        """Return the checkpoint that the events are learned on top of; None if there is none."""
        with self._naming():
            parts = self._sql.execute("SELECT bytes FROM base ORDER BY part").fetchall()
        return b"".join(part for (part,) in parts) if parts else None

    def covers(self, seq: int) -> bool:
        """Whether a checkpoint that has learned events up to ``seq`` may be used.

        Not so if something that it has learned was erased since.
        """
        with self._naming():
            query = "SELECT body FROM events WHERE kind = 'forget' AND seq > ?"
            bodies = [json.loads(body) for (body,) in self._sql.execute(query, (seq,))]
        return all(one["first"] is None or one["first"] > seq for one in bodies)


def _crc(seq: int, body: str | None) -> int | None:
    return None if body is None else crc32(body.encode(), seq & 0xFFFFFFFF)


def _put_base(connection: sqlite3.Connection, base: bytes | None) -> None:
    connection.execute("DELETE FROM base")
    whole = memoryview(base or b"")
    parts = [(k, whole[start : start + PART]) for k, start in enumerate(range(0, len(whole), PART))]
    connection.executemany("INSERT INTO base VALUES (?, ?)", parts)


def _connect(where: Any, **options: Any) -> sqlite3.Connection:
    # One thread at a time uses it: the one that opens a log is not the one that writes it.
    return sqlite3.connect(
        where, timeout=PATIENCE, isolation_level=None, check_same_thread=False, **options
    )


def _writing(path: Path) -> sqlite3.Connection:
    connection = _connect(path)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise sqlite3.OperationalError(f"this folder allows no WAL, only {mode}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into one line that names the file and the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        why = str(error)
        if "locked" in why or "busy" in why:
            remedy = "another program holds it; wait for its end or name another log"
        elif "full" in why:
            remedy = "make room on the disk; nothing that was acknowledged is lost"
        elif any(word in why for word in DAMAGED):
            remedy = "it is damaged or no log of ofw serve; use a copy of it"
        elif "readonly" in why or "unable to open" in why:
            remedy = "make the file and its folder writable, or name another log"
        elif "no such table" in why:
            remedy = "it is no log of ofw serve; name another file"
        else:
            remedy = "nothing was written"
        raise LogError(f"{path}: {' '.join(why.split())}; {remedy}") from error
