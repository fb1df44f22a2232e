"""Ratings and clicks, an event at a time: lists, factor models, and theta when somebody asks."""

from .online_factors import OnlineFactors

__all__ = ["OnlineFactors"]
