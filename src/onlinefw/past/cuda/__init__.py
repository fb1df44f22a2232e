"""The past on a GPU, through CuPy (``pip install 'onlinefw[gpu]'``).

Nothing here is imported before ``device="cuda"`` is asked for.
"""
