"""``ofw fit --workers``: which Ray, and what to do when it is lost."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from ..distributed import ClusterLost
from ..past.ray.cluster import check_workers

__all__ = ["say_lost", "use_ray"]


def use_ray(workers: int | None, address: str | None) -> None:
    """Check the options of Ray before any data are read, and pass the address on."""
    if workers is None:
        if address is not None:
            raise ValueError("--ray-address is for --workers: say how many of them to use")
        return
    try:
        check_workers(workers)
    except RuntimeError as error:  # Ray is not installed
        raise ValueError(str(error).replace("use workers=None", "leave --workers out")) from None
    if address is not None:
        os.environ["RAY_ADDRESS"] = address


def say_lost(error: ClusterLost, checkpoint: Path | None) -> None:
    """Say in one line how to go on."""
    why = str(error).split(";")[0]
    if checkpoint is not None and checkpoint.exists():
        how = (
            f"the same command with --resume {checkpoint} goes on from the last checkpoint, with "
            "any number of --workers or without"
        )
    else:
        how = "there is no checkpoint yet, so begin anew (with --checkpoint it can go on)"
    typer.echo(f"ofw fit: {why}; {how}", err=True)
