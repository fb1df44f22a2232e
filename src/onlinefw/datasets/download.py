"""Downloads that continue where they stopped."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import DownloadError
from .folder import is_writable
from .registry import RawFile

__all__ = ["ResumingDownloader", "download"]

CHUNK = 1 << 18
#: Seconds to wait for a connection, and for the next bytes.
TIMEOUT = (10.0, 60.0)


def download(raw: RawFile, folder: Path, page: str) -> Path:
    """Download one file into the folder, verify its checksum, and return its path."""
    by_hand = f"or put the file into {folder} as {raw.name} by hand"
    if raw.url is None:
        raise DownloadError(
            f"{raw.name} has no address of its own; get it from {page} and put it into {folder} "
            f"as {raw.name}"
        )
    try:
        import pooch
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"downloading takes pooch: pip install 'onlinefw[cli]', {by_hand} from {raw.url}"
        ) from None
    if not is_writable(folder):
        raise DownloadError(
            f"{raw.name} is not in {folder}, which cannot be written; to download {raw.url}, name "
            "another folder in the environment variable ONLINEFW_DATA"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _quiet(pooch.get_logger()):
            pooch.retrieve(
                raw.url,
                raw.digest,
                fname=raw.name,
                path=folder,
                downloader=ResumingDownloader(raw.name),
            )
    except ValueError as error:  # raised by pooch for a wrong checksum
        raise DownloadError(
            f"{raw.url} came with a checksum other than the published {raw.digest}; "
            f"try again, {by_hand}"
        ) from error
    except OSError as error:  # also errors of the network: requests raises OSErrors
        raise DownloadError(
            f"could not download {raw.url} ({_short(error)}); try again, {by_hand}"
        ) from error
    return folder / raw.name


class ResumingDownloader:
    """A pooch downloader that keeps what has arrived in ``<name>.part`` and asks for the rest.

    A part of a file that has since changed at its publisher is caught by the checksum, or by the
    parser where there is none.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Download into the part file, then move it to where pooch looks at it."""
        part = Path(output_file).parent / f"{self.name}.part"
        self._receive(url, part)
        os.replace(part, output_file)

    def _receive(self, url: str, part: Path) -> None:
        import requests  # comes with pooch, and urllib3 with requests
        import urllib3

        have = part.stat().st_size if part.exists() else 0
        # "identity": the server must send a .gz file as it is, so that byte counts agree.
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            if have and response.status_code == requests.codes.requested_range_not_satisfiable:
                # The server has no more bytes: the part is whole, or of another file. Begin again.
                part.unlink()
                self._receive(url, part)
                return
            response.raise_for_status()
            if have and response.status_code != requests.codes.partial_content:
                have = 0  # the server sends everything again
            length = response.headers.get("Content-Length")
            total = None if length is None else have + int(length)
            with part.open("ab" if have else "wb") as file, _progress(self.name, total) as advance:
                advance(have)
                # The length is compared below, so that what came before a break is kept.
                response.raw.enforce_content_length = False
                try:
                    for chunk in response.raw.stream(CHUNK, decode_content=False):
                        file.write(chunk)
                        advance(len(chunk))
                except urllib3.exceptions.HTTPError as error:
                    raise OSError("the connection broke") from error
        if total is not None and part.stat().st_size != total:
            raise OSError(f"the connection closed after {part.stat().st_size} of {total} bytes")


@contextmanager
def _progress(name: str, total: int | None) -> Iterator[Any]:
    """Show a progress bar on a terminal, if rich is installed."""
    if not sys.stderr.isatty():
        yield lambda n: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
        from rich.progress import TransferSpeedColumn as SpeedColumn
    except ModuleNotFoundError:
        yield lambda n: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), SpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda n: progress.advance(task, n)


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    # pooch would print the address and a hash of every file without a published one.
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _short(error: BaseException) -> str:
    """Return the cause in a few words: requests wraps it in layers that repeat the address."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server says {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return str(error) or type(error).__name__
