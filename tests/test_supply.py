"""CI installs pinned versions of everything, each file with its digest."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
EXTRAS = ("cli", "ray", "test", "dev", "docs")

if not CONSTRAINTS.exists():
    pytest.skip("only a clone of the repository has .ci/", allow_module_level=True)


def pins():
    """Every version that is pinned, with the digests of its files."""
    entries = re.split(r"\n(?=\S)", CONSTRAINTS.read_text().replace("\\\n", ""))
    for entry in entries:
        requirement, *hashes = re.split(r"\s+--hash=", entry.strip())
        yield Requirement(requirement), hashes


def test_every_dependency_is_pinned_to_a_version_that_is_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    pinned = {}
    for pin, _ in pins():
        (exact,) = pin.specifier
        assert exact.operator == "=="
        pinned.setdefault(canonicalize_name(pin.name), []).append(exact.version)
    for requirement in map(Requirement, wanted):
        if requirement.name != "onlinefw":
            versions = pinned[canonicalize_name(requirement.name)]
            assert all(version in requirement.specifier for version in versions)


def test_every_pinned_file_has_its_sha256_and_no_address():
    for pin, hashes in pins():
        assert hashes, pin
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in hashes)
        assert pin.url is None
    assert "://" not in CONSTRAINTS.read_text()


def test_ci_installs_them_before_it_runs_the_command_of_the_readme():
    run, readme = (ROOT / ".ci" / "run").read_text(), (ROOT / "README.md").read_text()
    command = "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest"
    assert command in readme
    assert run.index("--require-hashes -r .ci/constraints.txt") < run.index(command)
