"""Model files, which predict, and checkpoints, which go on.

Both are whole or not there, hold arrays and JSON only, and reading them runs nothing.
"""

from .checkpoints import load_checkpoint, save_checkpoint
from .container import read_header
from .errors import ModelFileError
from .models import load, save

__all__ = ["ModelFileError", "load", "load_checkpoint", "read_header", "save", "save_checkpoint"]
