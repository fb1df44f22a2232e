"""The part of the build that compiles the loops; see ``src/onlinefw/native/_build.py``."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledLoops(BuildHookInterface):
    """Puts the compiled loops into a wheel, or beside their sources for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what the wheel is for."""
        if self.target_name != "wheel":
            return
        native = _module(Path(self.root, "src", "onlinefw", "native", "_build.py"))
        self.made = tempfile.TemporaryDirectory()
        folder = native.HERE if version == "editable" else Path(self.made.name)
        try:
            files, build_data["tag"] = native.build(folder)
        except (RuntimeError, OSError) as error:
            self.app.abort(str(error))
        build_data["tag"] = f"py3-none-{build_data['tag']}"
        build_data["pure_python"] = False
        if version != "editable":
            for file in files:
                build_data["force_include"][str(file)] = f"onlinefw/native/{file.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel now."""
        if self.target_name == "wheel":
            self.made.cleanup()


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("onlinefw_native_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module
