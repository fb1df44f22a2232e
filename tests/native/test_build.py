"""The compiled loops are built by a wheel, and in a checkout again when a source has changed."""

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import onlinefw
from onlinefw.native import _build

PACKAGE = Path(onlinefw.__file__).parent
ROOT = Path(__file__).parents[2]


@pytest.fixture
def with_zig(monkeypatch):
    pytest.importorskip("ziglang")
    for name in ("CXX", "CXXFLAGS", "ONLINEFW_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


def python(code, *path, **environment):
    """Start a process that runs some code with the package of another folder."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def checkout(tmp_path):
    """A folder that looks like a checkout without compiled loops, with what they need."""
    source, here = PACKAGE, tmp_path / "src" / "onlinefw"
    built = shutil.ignore_patterns("loops.*.*", "loops.built", "__pycache__")
    shutil.copytree(source / "native", here / "native", ignore=built)
    shutil.copy(PACKAGE / "native" / "loops.cpp", here / "native")
    for path in source.glob("*.py"):
        shutil.copy(path, here)
    (tmp_path / "hatch_build.py").touch()
    return tmp_path / "src"


# Platforms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "magic", "tag"),
    [
        ("linux-x86_64", b"\x7fELF\x02\x01", "manylinux_2_17_x86_64"),
        ("linux-aarch64", b"\x7fELF\x02\x01", "manylinux_2_17_aarch64"),
        ("musl-aarch64", b"\x7fELF\x02\x01", "musllinux_1_1_aarch64"),
        ("darwin-arm64", b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01", "macosx_11_0_arm64"),
        pytest.param("windows-x86_64", b"MZ", "win_amd64", marks=pytest.mark.slow),
    ],
)
def test_libraries_for_other_platforms_can_be_built_here(
    name, magic, tag, tmp_path, with_zig, monkeypatch
):
    one_level = replace(_build.PLATFORMS[name], levels=_build.PLATFORMS[name].levels[:1])
    monkeypatch.setitem(_build.PLATFORMS, name, one_level)
    monkeypatch.setenv("ONLINEFW_PLATFORM", name)
    files, found = _build.build(tmp_path)
    assert found == tag
    assert sorted(tmp_path.iterdir()) == sorted(files)  # nothing else is left there
    library, stamp = files
    assert library.read_bytes().startswith(magic)
    assert stamp.name == _build.STAMP and _build.is_built(tmp_path)


def test_a_platform_that_nobody_knows_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("ONLINEFW_PLATFORM", "plan9-mips")
    with pytest.raises(RuntimeError, match="'plan9-mips'; it can be linux-x86_64, "):
        _build.build(tmp_path)
    monkeypatch.setenv("ONLINEFW_PLATFORM", "darwin-arm64")
    monkeypatch.setenv("CXX", "g++")
    with pytest.raises(RuntimeError, match="CXX must not be set"):
        _build.build(tmp_path)


@pytest.mark.parametrize(
    ("system", "machine", "soabi", "expected"),
    [
        ("Linux", "x86_64", "cpython-311-x86_64-linux-gnu", "x86_64-linux-gnu.2.17"),
        ("Linux", "x86_64", "cpython-311-x86_64-linux-musl", "x86_64-linux-musl"),
        ("Windows", "AMD64", None, "x86_64-windows-gnu"),
        ("Darwin", "arm64", "cpython-311-darwin", "aarch64-macos.11.0"),
        ("Linux", "ppc64le", "cpython-311-powerpc64le-linux-gnu", ""),  # whatever zig finds here
    ],
)
def test_this_platform_is_found(system, machine, soabi, expected, monkeypatch, with_zig):
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: soabi)
    found = _build.this_platform()
    assert found.target == expected
    assert _build.this_platform(zig=False).target == ""
    assert _build.this_platform(zig=False).suffix == found.suffix


# Compilers ----------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_another_compiler_does_it_too(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "g++")
    monkeypatch.setenv("CXXFLAGS", "-O1")
    files, tag = _build.build(tmp_path)
    assert [x.name for x in files] == [*_build.this_platform().names().values(), _build.STAMP]
    assert "manylinux" not in tag  # it is for this machine's C library, or a newer one


@pytest.mark.parametrize("compiler", ["no-such-compiler", f"{sys.executable} -c import_sys"])
def test_a_compiler_that_does_not_work_is_one_line(compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(RuntimeError) as error:
        _build.build(tmp_path)
    said = str(error.value)
    assert said.count("\n") == 0
    assert compiler.split()[0] in said and "let CXX name a compiler" in said
    assert list(tmp_path.iterdir()) == []


def test_without_any_compiler_it_says_what_was_tried(tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(RuntimeError, match=r"neither the package ziglang, nor c\+\+") as error:
        _build.build(tmp_path)
    assert "pip install ziglang" in str(error.value)


def test_in_a_checkout_that_is_an_import_error(checkout):
    process = python("import onlinefw.native as n; n.library()", checkout, CXX="no-such-compiler")
    _, said = process.communicate()
    assert "ImportError: onlinefw's loops could not be compiled: no-such-compiler" in said
    assert "RuntimeError" not in said


# Checkouts ----------------------------------------------------------------------------------------

LEVEL = "from onlinefw.native import loops; print(loops.processor_level())"


def test_a_checkout_is_built_at_its_first_use_and_again_when_a_source_has_changed(
    checkout, with_zig
):
    def answer():
        process = python("from onlinefw.native import loops; print(loops.answer())", checkout)
        return process.communicate()

    assert "answer" in answer()[1]
    here = checkout / "onlinefw" / "native"
    libraries = {path: path.stat().st_mtime_ns for path in here.glob("loops.*")}
    assert answer()[1]
    assert libraries == {path: path.stat().st_mtime_ns for path in here.glob("loops.*")}
    with (here / "loops.cpp").open("a") as file:
        file.write('#include "answer.hpp"\nEXPORT i64 answer() { return ANSWER; }\n')
    (here / "answer.hpp").write_text("#define ANSWER 42\n")
    assert answer() == ("42\n", "")
    (here / "answer.hpp").write_text("#define ANSWER 43\n")
    assert answer() == ("43\n", "")
    (here / "answer.hpp").write_text("#define ANSWER a mistake\n")
    assert "ImportError: onlinefw's loops could not be compiled" in answer()[1]


def test_a_library_that_is_gone_is_built_again(checkout, with_zig):
    assert python(LEVEL, checkout).communicate()[1] == ""
    for path in (checkout / "onlinefw" / "native").glob("loops.*.*"):
        path.unlink()
    assert python(LEVEL, checkout).communicate()[1] == ""


def test_two_processes_that_build_at_the_same_time_do_not_disturb_each_other(checkout, with_zig):
    both = [python(LEVEL, checkout) for _ in range(2)]
    answers = [process.communicate() for process in both]
    assert answers[0] == answers[1]
    assert answers[0][1] == ""
    left = {path.name for path in (checkout / "onlinefw" / "native").glob("loops.*")}
    assert left == {*_build.this_platform().names().values(), _build.STAMP, "loops.cpp"}


# Wheels -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_source_archive_makes_a_wheel_with_the_libraries(tmp_path, with_zig):
    pytest.importorskip("hatchling")

    def run(*command, cwd):
        subprocess.run([sys.executable, "-m", *command], cwd=cwd, check=True, capture_output=True)

    run("hatchling", "build", "-t", "sdist", "-d", str(tmp_path), cwd=ROOT)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert not list(unpacked.rglob("loops.*.*"))
    options = "--no-build-isolation", "--no-deps", "--no-index", "-w", str(tmp_path)
    run("pip", "wheel", *options, str(archive), cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    machine = _build.this_platform()
    assert wheel.name.endswith(f"-py3-none-{machine.tag}.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "installed")
    here = tmp_path / "installed" / "onlinefw" / "native"
    assert {*machine.names().values(), "loops.cpp", "base.hpp"} < {x.name for x in here.iterdir()}
    assert sum(x.stat().st_size for x in here.glob("loops.*.*")) < 3 * 2**20
    process = python(LEVEL, tmp_path / "installed", CXX="no-such-compiler")
    assert process.communicate()[1] == ""
