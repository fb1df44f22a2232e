"""Estimators that come from another machine."""

from __future__ import annotations

from typing import Any

from ..objectives.places import device_here

__all__ = ["GoesOnHere"]


class GoesOnHere:
    """Unpickled where there is no GPU, an estimator with ``device="cuda"`` goes on in memory.

    A file holds the data, not where they were. (With workers the device is theirs.)
    """

    device: str
    workers: int | None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        if self.workers is None and self.device == "cuda":
            self.device = device_here("cuda")
