"""The past on a CUDA device, through CuPy (``pip install 'onlinefw[gpu]'``).

Nothing here is imported before ``device="cuda"`` is asked for.
"""
