"""Pictures (they need matplotlib: ``pip install 'onlinefw[cli]'``)."""

from .convergence import plot_convergence

__all__ = ["plot_convergence"]
