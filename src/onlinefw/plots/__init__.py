"""Pictures (they need matplotlib: ``pip install 'onlinefw[cli]'``)."""

from .convergence import plot_convergence
from .history import plot_history
from .path import plot_path

__all__ = ["plot_convergence", "plot_history", "plot_path"]
