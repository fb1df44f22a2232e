"""A page about a fitted model, which opens from disk: no server, no network."""

from .page import report_page

__all__ = ["report_page"]
