"""Data sets: the paper's synthetic problems."""

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
    "Entries",
    "LassoStream",
    "SinglePixel",
    "make_classifier",
    "make_lasso",
    "make_matrix_completion",
    "make_movielens_like",
    "make_single_pixel",
]
