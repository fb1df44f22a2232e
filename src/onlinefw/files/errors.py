"""What is said about files that cannot be read."""

from __future__ import annotations

__all__ = ["ModelFileError"]


class ModelFileError(ValueError):
    """A model file or checkpoint that is damaged, foreign, of another kind or from elsewhere.

    Examples
    --------
    >>> import pathlib, tempfile, onlinefw as ofw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "notes.ofw"
    ...     _ = path.write_text("no model")
    ...     try:
    ...         ofw.load(path)
    ...     except ofw.files.ModelFileError as error:
    ...         print(str(error).replace(str(path), "notes.ofw"))
    notes.ofw is not an onlinefw file
    """
