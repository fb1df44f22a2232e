"""Pictures (they need matplotlib: ``pip install 'onlinefw[cli]'``)."""

from .history import plot_history
from .path import plot_path

__all__ = ["plot_history", "plot_path"]
