"""Data and what is carried along on a CUDA device, through CuPy.

Nothing here is imported before somebody asks for ``device="cuda"``.
"""
