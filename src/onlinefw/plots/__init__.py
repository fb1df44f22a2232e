"""Pictures (they need matplotlib: ``pip install 'onlinefw[cli]'``)."""

from .history import plot_history
from .path import plot_path
from .progress import plot_progress

__all__ = ["plot_history", "plot_path", "plot_progress"]
