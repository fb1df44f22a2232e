"""One file that holds a tree of values and arrays, for models and checkpoints.

A zip archive; models are compressed, checkpoints (for which learning pauses) are not:

- ``onlinefw.json``, the first member: format, kind, format version, onlinefw version;
- ``*.npy``, the arrays, which ``numpy.load`` reads too;
- ``content.json``, the tree;
- the archive's comment, the last bytes of the file: the SHA-256 of everything before it.

Reading runs no code, since there are only JSON and arrays. Nothing in a file can make it take more
memory than a multiple of the file's own size: see the limits below.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from .._files import whole_file
from .._typing import Array
from .._version import __version__
from .errors import ModelFileError, reason
from .tree import KINDS, join, split

__all__ = ["FORMAT_VERSION", "read_header", "read_tree", "write_tree"]

FORMAT_VERSION = 2
#: Deflate makes at most so many bytes of one, so a member that promises more is forged.
MOST_DEFLATED = 1032
#: JSON may be this long, and longer by so many bytes for each byte in the file: its values take up
#: to 30 times the memory of their text, so what deflates better is stored as it is.
SHORT_JSON, MOST_JSON = 2**20, 100
HEADER, CONTENT = "onlinefw.json", "content.json"
#: How the archive's comment begins; the digest in hexadecimal follows.
DIGEST_MARK = b"onlinefw sha256 "
DIGEST_LENGTH = len(DIGEST_MARK) + 64
#: Where the name of the first member begins in the file, after its header of fixed length.
NAME_AT = 30
CHUNK = 2**20
#: A member's size is written in 64 bits if it may exceed this.
LARGE = 2**30
#: What an error says about a file that is of another kind than expected.
KIND_NAMES = {
    "model": "a model file: it only predicts; read it with onlinefw.load",
    "checkpoint": "a checkpoint; read it with onlinefw.files.load_checkpoint",
}


# Writing ------------------------------------------------------------------------------------------


def write_tree(path: str | Path, kind: str, tree: Any, *, compress: bool = False) -> None:
    """Write nested dicts and lists of JSON values and arrays; all of it or nothing."""
    values, arrays = split(tree)
    header = {
        "format": "onlinefw",
        "kind": kind,
        "format_version": FORMAT_VERSION,
        "onlinefw": __version__,
    }
    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "the folder does not exist; create it first", str(path.parent)
        )
    try:
        with whole_file(path) as file:
            digested = _DigestedFile(file)
            how = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            with zipfile.ZipFile(cast(BinaryIO, digested), "w", how) as archive:
                archive.comment = DIGEST_MARK + b"0" * 64
                _add_json(archive, HEADER, header)
                for name, array in arrays.items():
                    with _member(archive, f"{name}.npy", array.nbytes) as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)
                _add_json(archive, CONTENT, values)
            digested.write_digest()
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"{reason}; nothing was written", str(path)) from error


class _DigestedFile:
    """A file that is written without seeking, and ends in the digest of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.sha256()
        self._last = b""  # what may turn out to be the digest

    def write(self, data: Any) -> int:
        self._file.write(data)
        view = memoryview(data).cast("B")
        if len(view) >= DIGEST_LENGTH:
            self._digest.update(self._last)
            self._digest.update(view[:-DIGEST_LENGTH])
            self._last = bytes(view[-DIGEST_LENGTH:])
        else:
            self._last += bytes(view)
            self._digest.update(self._last[:-DIGEST_LENGTH])
            self._last = self._last[-DIGEST_LENGTH:]
        return len(view)

    def flush(self) -> None:
        self._file.flush()

    def write_digest(self) -> None:
        self._file.seek(-64, 2)
        self._file.write(self._digest.hexdigest().encode())


@contextmanager
def _member(archive: zipfile.ZipFile, name: str, size: int, stored: bool = False) -> Iterator[Any]:
    # A fixed date: the same model gives the same bytes.
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_STORED if stored else archive.compression
    info.external_attr = 0o644 << 16
    with archive.open(info, "w", force_zip64=size > LARGE) as member:
        yield member


def _add_json(archive: zipfile.ZipFile, name: str, values: Any) -> None:
    text = json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
    stored = name == HEADER or len(text) > _longest_json(len(zlib.compress(text)))
    with _member(archive, name, len(text), stored) as member:
        member.write(text)


def _longest_json(size: int) -> int:
    return SHORT_JSON + MOST_JSON * size


# Reading ------------------------------------------------------------------------------------------


def read_header(path: str | Path) -> dict[str, Any]:
    """Return format, kind, format_version and onlinefw (the version that wrote the file)."""
    path = Path(path)
    with path.open("rb") as file:
        _check_begin(path, file)
        with _refusing(path), zipfile.ZipFile(file) as archive:
            return _checked_header(path, _json(file, archive, HEADER))


def read_tree(path: str | Path, kind: str) -> tuple[dict[str, Any], Any]:
    """Return header and tree of a file of this kind, or raise :class:`ModelFileError`."""
    path = Path(path)
    with path.open("rb") as file:
        _check_begin(path, file)
        with _refusing(path), zipfile.ZipFile(file) as archive:
            header = _checked_header(path, _json(file, archive, HEADER))
            _check_digest(file)
            if header["kind"] != kind:
                name = KIND_NAMES.get(header["kind"], f"a file of the kind {header['kind']!r:.40}")
                raise ModelFileError(f"{path} is {name}")
            return header, _content(file, archive)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn every error that a damaged archive leads to into a ModelFileError of one line."""
    try:
        yield
    except ModelFileError:
        raise
    except MemoryError:
        raise ModelFileError(f"{path} needs more memory than there is") from None
    except Exception as error:  # zipfile, zlib, json, numpy, ast and tokenize: each has its own
        raise ModelFileError(
            f"{path} is cut short or was altered ({reason(error)}); use another copy"
        ) from None


def _check_begin(path: Path, file: BinaryIO) -> None:
    begin = file.read(NAME_AT + len(HEADER))
    file.seek(0)
    ours = begin[:4] == b"PK\x03\x04" and begin[NAME_AT:] == HEADER.encode()
    if not ours:
        raise ModelFileError(f"{path} is not an onlinefw file")


def _json(file: BinaryIO, archive: zipfile.ZipFile, name: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    info = _checked(file, archive.getinfo(name))
    if info.file_size > max(info.compress_size, _longest_json(info.compress_size)):
        raise ValueError(f"{name} is much longer than its bytes in the file")
    return json.loads(archive.read(info), parse_constant=refuse)


def _checked(file: BinaryIO, info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Refuse a member that promises more than its bytes can hold, or the file has."""
    if info.compress_type == zipfile.ZIP_STORED:
        most = info.compress_size
    elif info.compress_type == zipfile.ZIP_DEFLATED:
        most = MOST_DEFLATED * info.compress_size
    else:
        raise ValueError("a member is compressed by another method than deflate")
    if info.file_size > most or info.compress_size > file.seek(0, 2):
        raise ValueError("a member is larger than it can be")
    return info


def _checked_header(path: Path, header: Any) -> dict[str, Any]:
    wanted = {"format": str, "kind": str, "format_version": int, "onlinefw": str}
    whole = isinstance(header, dict) and all(
        isinstance(header.get(name), kind) for name, kind in wanted.items()
    )
    if not whole or header["format"] != "onlinefw" or header["format_version"] < 1:
        raise ModelFileError(f"{path} is not an onlinefw file")
    version = header["format_version"]
    if not re.fullmatch(r"[\w.+-]{1,40}", header["onlinefw"], re.ASCII):
        raise ModelFileError(f"{path} was made by no version of onlinefw that there is")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by a newer onlinefw ({header['onlinefw']}, format {version}; "
            f"this is {__version__}, format {FORMAT_VERSION}): update onlinefw to read it"
        )
    return header


def _check_digest(file: BinaryIO) -> None:
    left = file.seek(0, 2) - DIGEST_LENGTH
    digest = hashlib.sha256()
    file.seek(0)
    while left > 0:
        chunk = file.read(min(CHUNK, left))
        if not chunk:
            raise EOFError("it ends early")
        digest.update(chunk)
        left -= len(chunk)
    if file.read() != DIGEST_MARK + digest.hexdigest().encode():
        raise ValueError("its contents do not match their SHA-256")


def _content(file: BinaryIO, archive: zipfile.ZipFile) -> Any:
    members = [_checked(file, info) for info in archive.infolist()]
    names = [info.filename for info in members]
    if len(set(names)) < len(names):
        raise ValueError("two members have the same name")
    if sum(info.compress_size for info in members) > file.seek(0, 2):
        raise ValueError("its members are larger than the file")
    arrays = {
        info.filename.removesuffix(".npy"): _array(archive, info)
        for info in members
        if info.filename not in (HEADER, CONTENT)
    }
    return join(_json(file, archive, CONTENT), arrays)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """Return an array, after checking that its header promises no more bytes than there are."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        with warnings.catch_warnings():  # about headers that Python 2 would have written
            warnings.simplefilter("error")
            if version == (1, 0):
                shape, _, dtype = np.lib.format.read_array_header_1_0(member)
            elif version == (2, 0):
                shape, _, dtype = np.lib.format.read_array_header_2_0(member)
            else:
                raise ValueError(f"{info.filename} is an array of version {version}")
        if dtype.kind not in KINDS or min(shape, default=0) < 0:
            raise ValueError(f"{info.filename} holds {dtype}")
        if member.tell() + prod(shape) * dtype.itemsize != info.file_size:
            raise ValueError(f"{info.filename} has another size than it says")
    with archive.open(info) as member:
        return np.lib.format.read_array(member, allow_pickle=False)
