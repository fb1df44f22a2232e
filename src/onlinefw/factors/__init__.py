"""Ratings and clicks, an event at a time: lists, factor models, and theta when somebody asks."""
