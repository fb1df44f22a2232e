"""Where lists are solved: the verb that a GPU and workers have for factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .._typing import Array

if TYPE_CHECKING:
    from .chains import Chains

__all__ = ["Solver"]


class Solver(ABC):
    """Solves lists of chains at a place: in this process, on a GPU, or with workers.

    Entries, means and samples are in this process, wherever lists are solved; a place has copies,
    and sees by the lengths of lists which entries are new to it. So what was learned is never lost
    with a place, and a state knows nothing of it. Random draws have numbers: they are the same at
    every place.
    """

    device = "cpu"  # or "cuda": of this process or, with workers, of each worker
    workers: int | None = None

    @abstractmethod
    def solve(
        self, chains: Chains, of_rows: bool, which: Array, numbers: Array
    ) -> tuple[Array, Array]:
        """Solve these lists in all chains, and write their means and samples.

        Parameters
        ----------
        chains : Chains
            What has the lists.
        of_rows : bool
            Whether they are rows, or columns.
        which, numbers : ndarray of int
            The lists, all different and none empty, and the numbers of their draws.

        Returns
        -------
        sums, errors : ndarray
            What they add, for each chain, to the sums behind priors and behind precisions.
        """

    def samples_changed(self, chains: Chains, of_rows: bool, which: Array) -> None:  # noqa: B027 (nothing to do here)
        """Know that these rows, or columns, have other samples, which were not solved here."""

    def entries_changed(self) -> None:  # noqa: B027 (nothing to do here)
        """Know that entries have changed or left, and samples with them."""

    def check(self) -> None:  # noqa: B027 (nothing to do here)
        """Raise an error if the place is gone, before anything changes."""

    def close(self) -> None:  # noqa: B027 (nothing to do here)
        """Free the place."""
