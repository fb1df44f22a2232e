"""Which processes belong to a session of Ray, and the addresses at which they listen (Linux)."""

import os
from pathlib import Path

LISTENS = "0A"


def processes_with(text):
    """Return the processes that have this text in their command or among their open files."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                files = [os.readlink(file) for file in (process / "fd").iterdir()]
                command = (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:  # it has ended, or is another user's
                continue
            if any(text in one for one in (*files, command)):
                found.append(process)
    return found


def addresses(processes):
    """Return the addresses of TCP, as hexadecimal numbers, at which any of them listens."""
    sockets = set()
    for process in processes:
        for file in (process / "fd").iterdir():
            try:
                sockets.add(os.readlink(file))
            except OSError:
                continue
    heard = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            (
                _,
                local,
                _,
                state,
                *_,
            ) = line.split()
            if state == LISTENS and f"socket:[{line.split()[9]}]" in sockets:
                heard.add(local.split(":")[0])
    return heard
