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
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

__all__ = ["HERE", "Platform", "build", "digest", "is_built", "this_platform"]

HERE = Path(__file__).resolve().parent
FLAGS = (
    "-std=c++17", "-O3", "-shared", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-math-errno",
    "-ffp-contract=fast", "-fvisibility=hidden", "-fno-stack-protector", "-Wall", "-Wextra",
    "-Wno-psabi",  # older processors pass wide vectors in another way; ours are inlined
)  # fmt: skip
OF_ZIG = ("-nostdlib++", "-nostdinc++", "-fno-sanitize=undefined")
#: What says which sources the libraries beside it were made of.
STAMP = "loops.built"
#: The variable that says where zig keeps what it has made for all programs.
KEPT_BY_ZIG = "ZIG_GLOBAL_CACHE_DIR"


@dataclass(frozen=True)
class Platform:
    """One that a wheel is for: how zig and wheels name it, and the levels of its processors."""

    target: str
    tag: str
    suffix: str = ".so"
    levels: tuple[str, ...] = ("",)  # "" is the only one

    def names(self) -> dict[str, str]:
        """Return the file of each level; a name with two dots is not taken for a module."""
        return {x: f"loops.{x or 'any'}{self.suffix}" for x in self.levels}


X86 = ("x86_64", "x86_64_v3", "x86_64_v4")
PLATFORMS = {
    "linux-x86_64": Platform("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", levels=X86),
    "linux-aarch64": Platform("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64"),
    "musl-x86_64": Platform("x86_64-linux-musl", "musllinux_1_1_x86_64", levels=X86),
    "musl-aarch64": Platform("aarch64-linux-musl", "musllinux_1_1_aarch64"),
    "darwin-arm64": Platform("aarch64-macos.11.0", "macosx_11_0_arm64", ".dylib"),
    "darwin-x86_64": Platform("x86_64-macos.11.0", "macosx_11_0_x86_64", ".dylib", X86),
    "windows-x86_64": Platform("x86_64-windows-gnu", "win_amd64", ".dll", X86),
}


def this_platform(zig: bool = True) -> Platform:
    """Return this machine's platform, or the one that ``ONLINEFW_PLATFORM`` asks for.

    One that is not known gets a single library, and so does its wheel its own tag. What another
    compiler than zig makes needs this machine's C library, so its tag is this machine's.
    """
    asked = os.environ.get("ONLINEFW_PLATFORM")
    if asked:
        if asked not in PLATFORMS or not zig:
            known = f"it can be {', '.join(PLATFORMS)}, and CXX must not be set"
            raise RuntimeError(f"ONLINEFW_PLATFORM is {asked!r}; {known}")
        return PLATFORMS[asked]
    system = platform.system().lower()
    if system == "linux" and "musl" in str(sysconfig.get_config_var("SOABI")):
        system = "musl"
    machine = platform.machine().lower().replace("amd64", "x86_64")
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    found = PLATFORMS.get(f"{system}-{machine}")
    if found is None:
        return Platform("", tag, {"windows": ".dll", "darwin": ".dylib"}.get(system, ".so"))
    return found if zig else replace(found, target="", tag=tag)


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
    """Whether the libraries in a folder are there, made of the sources as they are now."""
    stamp = folder / STAMP
    made_of, *names = stamp.read_text().split() if stamp.is_file() else ("",)
    return made_of == digest() and all((folder / name).is_file() for name in names)


def build(folder: Path = HERE) -> tuple[list[Path], str]:
    """Compile the libraries into a folder; return them, with the stamp, and the tag of a wheel.

    With the compiler that ``CXX`` names; else with the ``ziglang`` package, else with a compiler
    that is there. Files are replaced when all are made, so others can use the folder meanwhile.
    """
    command, zig = _compiler()
    machine, now = this_platform(zig), digest()
    files = [*machine.names().values(), STAMP]
    with tempfile.TemporaryDirectory(dir=folder, prefix="loops.") as made:
        lines = [
            [*command, *_flags(machine, level, zig), str(HERE / "loops.cpp"),
             *(["-lm"] if machine.suffix == ".so" else []), "-o", f"{made}/{name}"]
            for level, name in machine.names().items()
        ]  # fmt: skip
        compile_ = partial(_compile, environment=_with_cache(made))
        compile_(lines[0])  # alone: the first one on a machine makes what all need
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(compile_, lines[1:]))
        (Path(made) / STAMP).write_text("\n".join((now, *files[:-1])))
        for name in files:
            os.replace(Path(made) / name, folder / name)
    return [folder / name for name in files], machine.tag


def _with_cache(folder: str) -> dict[str, str]:
    """Return the environment for zig, which keeps things in the user's home, if there is one."""
    home = os.environ.get("HOME", os.environ.get("LOCALAPPDATA", ""))
    return {**({} if os.access(home, os.W_OK) else {KEPT_BY_ZIG: folder}), **os.environ}


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
    own = shlex.split(os.environ.get("CXXFLAGS", ""))
    target = ["-target", machine.target] if machine.target else []
    if level and zig:
        target += [f"-mcpu={level}"]
    elif level:
        target += [f"-march={level.replace('x86_64', 'x86-64').replace('_v', '-v')}"]
    return [*target, *FLAGS, *(OF_ZIG if zig else ()), *(own or ["-s"])]


def _compile(command: list[str], environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        said = _first_error(done.stderr) if done.returncode else ""
        if not (said or Path(command[-1]).is_file()):
            said = "nothing, and made nothing"
    except OSError as error:
        said = str(error)
    if said:
        tried = shlex.join(command[: command.index(FLAGS[0])])
        raise RuntimeError(
            f"onlinefw's loops could not be compiled: {tried} said {said!r}; let CXX name a "
            "compiler of C++17 with the options of gcc, or without CXX pip install ziglang"
        )


def _first_error(text: str) -> str:
    lines = text.strip().splitlines() or ["nothing, and failed"]
    return next((line for line in lines if "error" in line.lower()), lines[-1])[:300]


if __name__ == "__main__":
    print(*build()[0], sep="\n")
