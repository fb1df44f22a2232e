"""Where and when a table was made, and the table itself."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import numpy as np


def write_table(path: Path, title: str, command: str, lines: list[str]) -> None:
    """Write a Markdown table with its command, commit, versions and the load of the machine."""
    where = {"cwd": path.parent, "capture_output": True, "text": True, "check": False}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], **where).stdout.strip()
    commit = commit or "unknown"  # a copy of the files on another machine
    facts = (
        f"`{command}` at commit {commit}; Python {platform.python_version()}, numpy "
        f"{np.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}."
    )
    text = "\n".join([f"# {title}", "", facts, "", *lines])
    path.write_text(text.rstrip() + "\n", encoding="utf-8")
