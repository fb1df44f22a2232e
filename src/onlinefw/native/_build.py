"""Compile the loops: when a wheel is built, and in a checkout when a source has changed.

This file is also read by ``hatch_build.py``, before the package is there: it imports nothing of it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HERE", "Platform", "build", "digest", "is_built", "this_platform"]

HERE = Path(__file__).resolve().parent
FLAGS = (
    "-std=c++17", "-O3", "-shared", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-math-errno",
    "-ffp-contract=fast", "-fvisibility=hidden", "-fno-stack-protector", "-Wall", "-Wextra", "-s",
)  # fmt: skip
#: psabi: older processors pass wide vectors in another way; ours are inlined.
OF_ZIG = ("-nostdlib++", "-nostdinc++", "-fno-sanitize=undefined", "-Wno-psabi")
#: What says which sources the libraries beside it were made of.
STAMP = "loops.built"


@dataclass(frozen=True)
class Platform:
    """One that a wheel is for: how zig and wheels name it, and the levels of its processors."""

    target: str
    tag: str
    suffix: str = ".so"
    levels: tuple[str, ...] = ("",)  # "" is the only one

    def names(self) -> dict[str, str]:
        """Return the file of each level."""
        return {x: f"loops{'_' if x else ''}{x}{self.suffix}" for x in self.levels}


X86 = ("x86_64", "x86_64_v3", "x86_64_v4")
PLATFORMS = {
    ("linux", "x86_64"): Platform("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", levels=X86),
    ("linux", "aarch64"): Platform("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64"),
    ("darwin", "arm64"): Platform("aarch64-macos.11.0", "macosx_11_0_arm64", ".dylib"),
    ("darwin", "x86_64"): Platform("x86_64-macos.11.0", "macosx_11_0_x86_64", ".dylib", X86),
    ("windows", "x86_64"): Platform("x86_64-windows-gnu", "win_amd64", ".dll", X86),
}  # fmt: skip


def this_platform() -> Platform | None:
    """Return this machine's platform, or the one that ``ONLINEFW_PLATFORM`` asks for.

    None if there is no zig for it, or it is none of those known: then a compiler is needed.
    """
    asked = os.environ.get("ONLINEFW_PLATFORM")
    if asked:
        system, _, machine = asked.partition("-")
    else:
        system, machine = platform.system(), platform.machine()
    key = system.lower(), machine.lower().replace("amd64", "x86_64")
    if asked and key not in PLATFORMS:
        known = ", ".join("-".join(x) for x in PLATFORMS)
        raise RuntimeError(f"ONLINEFW_PLATFORM is {asked!r}; it can be {known}")
    return PLATFORMS.get(key)


def sources() -> list[Path]:
    """Return the files that the libraries are made of."""
    return sorted([*HERE.glob("*.hpp"), *HERE.glob("*.cpp"), HERE / "_build.py"])


def digest() -> str:
    """Return a fingerprint of the sources."""
    found = hashlib.sha256()
    for path in sources():
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def is_built(folder: Path = HERE) -> bool:
    """Whether the libraries in a folder were made of the sources as they are now."""
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text().strip() == digest()


def build(folder: Path = HERE) -> tuple[list[Path], str]:
    """Compile the libraries into a folder; return them, with the stamp, and the tag of a wheel.

    With the compiler that ``CXX`` names; else with the ``ziglang`` package, else with a compiler
    that is there.
    """
    machine = this_platform()
    command, zig = _compiler()
    if machine is None:
        tag, machine = _own_tag(), Platform("", "")
    else:
        tag = machine.tag if zig else _own_tag()
    with tempfile.TemporaryDirectory(dir=folder) as made:
        names = machine.names()
        with ThreadPoolExecutor(2) as pool:
            lines = [
                [
                    *command,
                    *_flags(machine, level, zig),
                    str(HERE / "loops.cpp"),
                    "-o",
                    f"{made}/{name}",
                ]
                for level, name in names.items()
            ]
            if machine.suffix != ".dll":
                lines = [[*line, "-lm"] for line in lines]
            list(pool.map(_compile, lines))
        for name in names.values():
            os.replace(Path(made) / name, folder / name)
        stamp = Path(made) / STAMP
        stamp.write_text(digest())
        os.replace(stamp, folder / STAMP)
    return [folder / name for name in (*names.values(), STAMP)], tag


def _compiler() -> tuple[list[str], bool]:
    """Return the command that compiles, and whether it is zig."""
    named = os.environ.get("CXX")
    if named:
        return shlex.split(named), False
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "c++"], True
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name], False
    raise RuntimeError(
        "onlinefw's loops have to be compiled, and there is no compiler: neither the package "
        "ziglang, nor c++, g++ or clang++; pip install ziglang, or let CXX name a compiler"
    )


def _flags(machine: Platform, level: str, zig: bool) -> list[str]:
    if zig:
        cpu = [f"-mcpu={level}"] if level else []
        return ["-target", machine.target, *cpu, *FLAGS, *OF_ZIG, *_own_flags()]
    return [*([f"-march={level.replace('_v', '-v').replace('x86_64', 'x86-64')}"] if level else []),
            *FLAGS, "-Wno-psabi", *_own_flags()]  # fmt: skip


def _own_flags() -> list[str]:
    return shlex.split(os.environ.get("CXXFLAGS", ""))


def _own_tag() -> str:
    import sysconfig

    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _compile(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = next(
            (x for x in done.stderr.splitlines() if "error" in x), done.stderr.strip()[-300:]
        )
        raise RuntimeError(
            f"onlinefw's loops could not be compiled: {shlex.join(command[:4])} ... said {said!r}; "
            "let CXX name another compiler of C++17, or install a wheel that is built"
        )
