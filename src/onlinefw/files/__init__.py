"""Model files, which only predict, and checkpoints, from which learning goes on.

Both hold arrays and JSON only. They are written completely or not at all, and reading them runs
no code.
"""

from .checkpoints import load_checkpoint, save_checkpoint
from .container import read_header
from .digest import digest
from .errors import ModelFileError
from .models import load, save

__all__ = [
    "ModelFileError",
    "digest",
    "load",
    "load_checkpoint",
    "read_header",
    "save",
    "save_checkpoint",
]
