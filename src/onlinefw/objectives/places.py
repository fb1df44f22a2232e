"""Where the past lives: in this process's memory, on a CUDA device, or with workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._devices import check_device, check_device_name
from .._typing import Shape
from ..iterates import LowRank
from ..losses import Loss
from .host_entries import HostEntries
from .host_gram import HostGram
from .host_predictions import HostPredictions
from .predictions import Predictions
from .rows import DenseRows, Rows, SparseRows

if TYPE_CHECKING:
    from .row_store import RowStore

__all__ = [
    "at_home",
    "back_there",
    "check_places",
    "device_here",
    "low_rank_class",
    "new_entries",
    "new_gram",
    "new_predictions",
    "new_rows",
    "new_weights",
]


def new_entries(
    device: str,
    workers: int | None,
    shape: tuple[int, int],
    dtype: Any,
    loss: Loss,
    *,
    theta: Callable[[], LowRank] | None = None,
    log_dir: Any = None,
) -> Any:
    """Return observed entries, none so far; with workers, ``theta`` says where it is now."""
    if workers is not None:
        assert theta is not None
        from ..distributed.entries import ShardedEntries

        options: dict[str, Any] = {"workers": workers, "device": device, "log_dir": log_dir}
        return ShardedEntries(shape, dtype, loss, theta=theta, **options)
    if device == "cuda":
        from ..cuda.entries import CudaEntries

        return CudaEntries(shape, dtype, loss)
    return HostEntries(shape, dtype, loss)


def low_rank_class(device: str) -> type[LowRank]:
    """Return what a theta of low rank is on a device of this process."""
    if device == "cpu":
        return LowRank
    from ..cuda.low_rank import CudaLowRank

    return CudaLowRank


def new_rows(device: str, shape: Shape, dtype: Any, is_sparse: bool) -> Rows:
    """Return rows on a device of this process, none so far."""
    if device == "cpu":
        return (SparseRows if is_sparse else DenseRows)(shape, dtype)
    from ..cuda.dense_rows import CudaDenseRows
    from ..cuda.sparse_rows import CudaSparseRows

    return (CudaSparseRows if is_sparse else CudaDenseRows)(shape, dtype)


def new_predictions(device: str, store: RowStore, loss: Loss) -> Predictions:
    """Return what is carried along with the rows of a store, for one model."""
    if device == "cpu":
        return HostPredictions(store, loss)
    from ..cuda.predictions import CudaPredictions

    return CudaPredictions(store, loss)


def new_gram(device: str, n: int) -> Any:
    """Return X'X of no rows so far."""
    if device == "cpu":
        return HostGram(n)
    from ..cuda.gram import CudaGram

    return CudaGram(n)


def new_weights(device: str) -> Any:
    """Return the weights of no rows so far; None where those in this process's memory will do."""
    if device == "cpu":
        return None
    from ..cuda.growing import CudaGrowing

    return CudaGrowing()


def at_home(part: Any) -> Any:
    """Return a part (rows, predictions, sums) in this process's memory, for files and pickles."""
    return part.on_host() if hasattr(part, "on_host") else part


def back_there(device: str, part: Any) -> Any:
    """Return such a part on its device."""
    if part is None or device == "cpu":
        return part
    from ..cuda.dense_rows import CudaDenseRows
    from ..cuda.gram import CudaGram
    from ..cuda.predictions import CudaPredictions
    from ..cuda.sparse_rows import CudaSparseRows

    kinds: dict[type, Any] = {
        DenseRows: CudaDenseRows,
        SparseRows: CudaSparseRows,
        HostGram: CudaGram,
        HostPredictions: CudaPredictions,
    }
    return kinds[type(part)].from_host(part)


def device_here(device: str) -> str:
    """Return the device of a file or pickle as one of this machine: a GPU if there is one."""
    return "cpu" if check_device_name(device) == "cpu" else check_device("auto")


def check_places(device: Any, workers: Any) -> tuple[str, int | None]:
    """Return the device, and how many workers hold the data on theirs (None: this process does).

    Examples
    --------
    >>> from onlinefw.objectives.places import check_places
    >>> check_places("cpu", None)
    ('cpu', None)
    """
    if workers is None:
        return check_device(device), None
    from ..distributed.cluster import Cluster, check_workers

    workers = check_workers(workers)
    return Cluster.device_for(workers, device), workers
