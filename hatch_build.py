"""The part of the build that compiles the loops; see ``src/onlinefw/native/_build.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledLoops(BuildHookInterface):
    """Puts the compiled loops into a wheel, and beside their sources for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say what the wheel is for."""
        if self.target_name != "wheel":
            return
        path = Path(self.root, "src", "onlinefw", "native", "_build.py")
        spec = importlib.util.spec_from_file_location("onlinefw_native_build", path)
        assert spec is not None
        assert spec.loader is not None
        native = importlib.util.module_from_spec(spec)
        import sys

        sys.modules[spec.name] = native  # dataclasses look there
        spec.loader.exec_module(native)
        try:
            files, tag = native.build()
        except RuntimeError as error:
            self.app.abort(str(error))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"
        for file in files:
            build_data["force_include"][str(file)] = f"onlinefw/native/{file.name}"
