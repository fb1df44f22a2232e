"""Make completion in zsh work from the first Tab."""

from __future__ import annotations

__all__ = ["mend_zsh"]

DEFINES_ONLY = "compdef %(complete_func)s %(prog_name)s"
ALSO_COMPLETES = """\
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
else
  compdef %(complete_func)s %(prog_name)s
fi"""


def mend_zsh() -> None:
    """Let typer's script for zsh complete when it is loaded, which is at the first Tab.

    As typer installs it, the first Tab in every new shell only defines the function, and nothing
    happens. If typer has another script, it is not changed.
    """
    try:
        from typer._completion_shared import _completion_scripts as scripts
    except ImportError:
        return
    script = scripts.get("zsh", "")
    if "loadautofunc" not in script:
        scripts["zsh"] = script.replace(DEFINES_ONLY, ALSO_COMPLETES)
