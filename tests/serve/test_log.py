"""The log: what was committed is there, what was erased is not, what is damaged is refused."""

from __future__ import annotations

import sqlite3

import pytest

from onlinefw.serve.log import EventLog, LogError


def new_log(path, n=0):
    log = EventLog.create(path, {"kind": "matrix", "settings": {}})
    if n:
        log.append([(f"e{k}", "learn", f"user{k % 3}", f'{{"n":{k}}}') for k in range(n)])
        log.commit()
    return log


def bodies(log, after=0):
    return [one.body for piece in log.after(after) for one in piece]


def test_what_was_committed_is_read_in_its_order(tmp_path):
    new_log(tmp_path / "log", 5).close()
    log = EventLog.open(tmp_path / "log")
    assert bodies(log) == [f'{{"n":{k}}}' for k in range(5)]
    assert log.last == 5 and log.events_until(3) == 3
    assert bodies(log, 3) == ['{"n":3}', '{"n":4}']


def test_what_was_not_committed_is_not_there(tmp_path):
    log = new_log(tmp_path / "log", 2)
    log.append([("later", "learn", None, "{}")])
    log.note("columns", ["a"])
    log.rollback()
    assert log.last == 2 and log.known(["later"]) == set() and "columns" not in log.facts


def test_ids_are_found_among_thousands(tmp_path):
    log = new_log(tmp_path / "log", 3000)
    asked = [f"e{k}" for k in range(2000, 4000)]
    assert log.known(asked) == {f"e{k}" for k in range(2000, 3000)}


def test_erasing_leaves_ids_and_counts_but_no_byte_of_the_body(tmp_path):
    path = tmp_path / "log"
    log = EventLog.create(path, {"kind": "matrix", "settings": {}})
    secret = "anna-karenina"
    log.append([("e1", "learn", secret, f'{{"user":"{secret}"}}'), ("e2", "learn", "bob", "{}")])
    log.commit()
    assert log.erase(secret, None, False, None) == 1
    log.commit()
    log.tidy()
    assert log.known(["e1"]) == {"e1"} and log.events_until(log.last) == 2
    assert bodies(log)[:2] == [None, "{}"]
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes(), file


def test_a_checkpoint_that_has_learned_what_was_erased_is_not_used(tmp_path):
    log = new_log(tmp_path / "log", 6)
    assert log.covers(4)
    log.erase("user2", None, False, None)  # events 3 and 6
    log.commit()
    assert log.covers(2) and not log.covers(3) and log.covers(7)


def test_pruning_keeps_ids_and_counts(tmp_path):
    log = new_log(tmp_path / "log", 4)
    log.append([(None, "learn", "bob", "{}")])
    log.commit()
    log.prune(5, b"a checkpoint")
    log.append([("e9", "learn", "bob", "{}")])
    log.commit()
    assert log.base() == b"a checkpoint" and log.known(["e1", "e9"]) == {"e1", "e9"}
    assert log.last == 6 and log.events_until(6) == 6
    assert [one for one in bodies(log) if one] == ["{}"]


def test_a_damaged_page_is_refused_in_one_line(tmp_path):
    path = tmp_path / "log"
    new_log(path, 3000).close()
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xa5" * 4096
    path.write_bytes(content)
    with pytest.raises(LogError, match="damaged") as caught:
        EventLog.open(path)
    assert "\n" not in str(caught.value)


def test_an_event_that_was_altered_is_refused(tmp_path):
    path = tmp_path / "log"
    new_log(path, 10).close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE events SET body = '{\"n\":8}' WHERE seq = 4")
    other.close()
    with pytest.raises(LogError, match="event 4"):
        bodies(EventLog.read(path))


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"PK\x03\x04" + bytes(200)])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(LogError, match="no log of ofw serve"):
        EventLog.open(tmp_path / "log")


def test_another_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "log") as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    with pytest.raises(LogError, match="no log of ofw serve"):
        EventLog.open(tmp_path / "log")


def test_a_log_that_another_program_has_locked_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("onlinefw.serve.log.PATIENCE", 0.1)
    log = new_log(tmp_path / "log", 1)
    other = sqlite3.connect(tmp_path / "log", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    log.close()
    log = EventLog.open(tmp_path / "log")
    with pytest.raises(LogError, match="another program holds it"):
        log.append([("e5", "learn", None, "{}")])
    other.execute("ROLLBACK")
    log.append([("e5", "learn", None, "{}")])
    log.commit()
    assert log.last == 2
    other.close()


def test_a_reader_sees_what_the_writer_commits(tmp_path):
    log = new_log(tmp_path / "log", 1)
    reader = EventLog.read(tmp_path / "log")
    log.append([("more", "learn", None, '{"n":9}')])
    assert reader.last == 1
    log.commit()
    assert reader.last == 2 and bodies(reader, 1) == ['{"n":9}']
    with pytest.raises(LogError):
        reader.append([("mine", "learn", None, "{}")])
