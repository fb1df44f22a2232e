"""A small keep-alive HTTP client and server processes, for tests and benchmarks."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["Connection", "Forks", "Server"]

ROOT = Path(__file__).parents[2]


class Connection:
    """One connection: requests go out as bytes, answers come back as (status, body)."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._left = b""

    def close(self) -> None:
        self._socket.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        self.send(method, path, b"" if body is None else json.dumps(body).encode())
        status, text = self.receive()
        return status, json.loads(text)

    def send(self, method: str, path: str, body: bytes) -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)

    def receive(self) -> tuple[int, bytes]:
        data = self._left
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        length = next(
            int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length")
        )
        while len(data) < length:
            data += self._more()
        self._left = data[length:]
        return int(lines[0].split()[1]), data[:length]

    def _more(self) -> bytes:
        part = self._socket.recv(2**16)
        if not part:
            raise ConnectionError("the server has ended the connection")
        return part


class Forks:
    """A process that has loaded everything, of which servers are forked: they start at once."""

    def __init__(self) -> None:
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.serve.client import fork"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{code}; fork()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(self, args: list[str]) -> int:
        """Start a server; return its process id."""
        self.process.stdin.write(json.dumps(args) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end_of(self, pid: int) -> int:
        """Wait for the end of a server; return its exit code."""
        self.process.stdin.write(json.dumps(pid) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()


def fork() -> None:
    """Be the process of which servers are forked: commands come line by line."""
    import onlinefw as ofw
    from onlinefw.cli import main
    from onlinefw.cli.app import app  # noqa: F401 (loads the command line)
    from onlinefw.serve import app as _app  # noqa: F401
    from onlinefw.serve import opening, server  # noqa: F401

    model = ofw.FrankWolfeMatrixCompletion()
    opening.warm_up(model, opening.face_of(model, {}))
    for line in sys.stdin:
        command = json.loads(line)
        if isinstance(command, int):
            print(os.waitstatus_to_exitcode(os.waitpid(command, 0)[1]), flush=True)
            continue
        pid = os.fork()
        if not pid:
            sys.argv[1:] = command
            code = 70
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(pid, flush=True)


class Server:
    """``ofw serve`` as a process of its own."""

    def __init__(
        self, *args: str | Path, forks: Forks | None = None, wait: float = 120.0, port: int = 0
    ) -> None:
        command = ["serve", *map(str, args), "--port", str(port)]
        self._forks, self.began = forks, time.perf_counter()
        if forks is None:
            main = [sys.executable, "-c", "from onlinefw.cli import main; main()"]
            self._process = subprocess.Popen([*main, *command], stderr=subprocess.PIPE, text=True)
            self.pid, self._stderr = self._process.pid, self._process.stderr
        else:
            self.pid, self._stderr = forks.start(command), forks.process.stderr
        self.said: list[str] = []
        self.port = self._port(wait)
        self.seconds_to_start = time.perf_counter() - self.began

    def _port(self, wait: float) -> int:
        """Return where it answers, which it says when it does."""
        end = time.monotonic() + wait
        while time.monotonic() < end:
            if not select.select([self._stderr], [], [], 0.2)[0]:
                if self._has_ended():
                    break
                continue
            line = self._stderr.readline()
            if not line:
                break
            self.said.append(line.strip())
            if " answers; " in line:
                return int(line.split("http://127.0.0.1:")[1].split()[0])
        raise RuntimeError(f"the server has not started: {self.said}")

    def _has_ended(self) -> bool:
        """Whether the process has ended, and nobody has looked at how."""
        stat = Path(f"/proc/{self.pid}/stat")
        return not stat.exists() or stat.read_text(encoding="ascii").split()[2] == "Z"

    def connection(self) -> Connection:
        return Connection(self.port)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = self.connection()
        try:
            return connection.ask(method, path, body)
        finally:
            connection.close()

    def kill(self) -> int:
        return self.signal(signal.SIGKILL)

    def stop(self) -> int:
        return self.signal(signal.SIGTERM)

    def signal(self, number: int) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        os.kill(self.pid, number)
        return self.end()

    def end(self) -> int:
        if self._forks is not None:
            return self._forks.end_of(self.pid)
        rest = self._process.communicate(timeout=120)[1]
        self.said += (rest or "").splitlines()
        return self._process.returncode

    @property
    def memory(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
