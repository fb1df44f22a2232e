"""Paths to write to, checked before the run begins."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .._files import same_file
from ..files import ModelFileError, read_header
from ..readers.sources import find_sources
from .first_look import check_path

__all__ = ["check_output"]


def check_output(
    path: Path, option: str, kind: str, inputs: Iterable[str | Path | None], force: bool
) -> None:
    """Refuse to write over an input, or (without ``force``) over a file of another kind.

    Parameters
    ----------
    path : Path
        Where to write.
    option : str
        Which option named it.
    kind : "model", "checkpoint", "page" or "predictions"
        What will be written.
    inputs : iterable of str or Path
        What is read; data may be patterns.
    force : bool
        Whether the user said that another kind of file may be replaced.
    """
    check_path(path, option)
    for name in inputs:
        for one in _files(name):
            if same_file(path, one):
                raise ValueError(f"{path} is read by this command; name another file with {option}")
    if path.exists() and path.stat().st_size and not force and not _is(kind, path):
        what = "a page" if kind == "page" else kind if kind == "predictions" else f"a {kind}"
        raise ValueError(
            f"{path} exists and is not {what}: name another file with {option}, or say --force to "
            "replace it"
        )


def _files(name: str | Path | None) -> list[Path]:
    if name is None or name == "-":
        return []
    if isinstance(name, Path):
        return [name]
    try:
        return [Path(source.name) for source in find_sources([name], None)]
    except (OSError, ValueError):  # said when the file is opened
        return [Path(name)]


def _is(kind: str, path: Path) -> bool:
    """Whether a file is of the kind that is to be written."""
    with path.open("rb") as file:
        begin = file.read(512)
    if kind == "page":
        return begin.lstrip()[:9].lower() == b"<!doctype"
    if kind == "predictions":
        parquet = path.suffix == ".parquet"
        return begin.startswith(b"PAR1") if parquet else b"\0" not in begin
    try:
        return bool(read_header(path)["kind"] == kind)
    except (ModelFileError, KeyError):
        return False
