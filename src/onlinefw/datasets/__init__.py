"""Data sets: the paper's synthetic problems (``make_*``), and the real ones (``fetch_*``).

A real data set is downloaded from its publisher once, verified, parsed, and kept in the folder
that ``data_folder()`` returns: the environment variable ``ONLINEFW_DATA`` names it. A data set that
is there already, parsed or as the publisher's file, is used with no network. ``ofw data`` lists
them all with their terms.
"""

from .catalogue import fetch
from .errors import DataFileError, DownloadError
from .folder import data_folder
from .mnist import fetch_mnist
from .movielens import Ratings, fetch_movielens
from .rcv1 import fetch_rcv1_binary, fetch_rcv1v2_subset
from .rows import Rows
from .single_pixel import fetch_single_pixel
from .store import available
from .synthetic import (
    Classification,
    Entries,
    LassoStream,
    SinglePixel,
    make_classifier,
    make_lasso,
    make_matrix_completion,
    make_movielens_like,
    make_single_pixel,
)

__all__ = [
    "Classification",
    "DataFileError",
    "DownloadError",
    "Entries",
    "LassoStream",
    "Ratings",
    "Rows",
    "SinglePixel",
    "available",
    "data_folder",
    "fetch",
    "fetch_mnist",
    "fetch_movielens",
    "fetch_rcv1_binary",
    "fetch_rcv1v2_subset",
    "fetch_single_pixel",
    "make_classifier",
    "make_lasso",
    "make_matrix_completion",
    "make_movielens_like",
    "make_single_pixel",
]
