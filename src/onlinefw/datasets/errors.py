"""Errors about data files; the command line prints each in one line."""

from __future__ import annotations

__all__ = ["DataFileError", "DownloadError"]


class DataFileError(OSError):
    """A file in the data folder is damaged, or is not the file that its name says.

    Examples
    --------
    >>> from onlinefw.datasets import DataFileError
    >>> issubclass(DataFileError, OSError)
    True
    """


class DownloadError(OSError):
    """A file could not be downloaded; the message names the URL and where to put it by hand.

    Examples
    --------
    >>> from onlinefw.datasets import DownloadError
    >>> issubclass(DownloadError, OSError)
    True
    """
