"""Experiments of the paper, each a function that runs it and returns its curves."""
