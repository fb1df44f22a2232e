"""Wrong paths are answered before anything heavy is imported."""

import subprocess
import sys

import pytest

COMMANDS = {
    "help": (["--help"], 0),
    "data that are not there": (["fit", "matrix", "none.csv", "-o", "m.ofw"], 2),
    "a test file that is not there": (
        ["fit", "matrix", "a.csv", "--test", "none.csv", "-o", "m.ofw"],
        2,
    ),
    "a folder that is not there": (["fit", "matrix", "a.csv", "-o", "none/m.ofw"], 2),
    "a checkpoint that is not there": (
        ["fit", "matrix", "a.csv", "--resume", "none.ckpt", "-o", "m.ofw"],
        2,
    ),
    "a format that is not known": (["fit", "matrix", "a.csv", "--format", "xml", "-o", "m"], 2),
    "a model that is not there": (["predict", "none.ofw", "a.csv"], 2),
    "a folder for a model": (["inspect", "."], 2),
    "a pattern without files": (["fit", "matrix", "no*.csv", "-o", "m.ofw"], 2),
    "an option of another kind": (["fit", "matrix", "a.csv", "--target", "y", "-o", "m.ofw"], 2),
}
RUN = """
import sys
sys.argv = ["ofw", *sys.argv[1:]]
from onlinefw.cli import main
try:
    main()
finally:
    print("heavy:", *sorted({"numpy", "scipy", "sklearn", "numba", "pyarrow"} & set(sys.modules)))
"""


@pytest.mark.parametrize("case", COMMANDS)
def test_nothing_heavy_is_imported_for(tmp_path, case):
    (tmp_path / "a.csv").write_text("user,item,rating\n1,2,3\n")
    words, code = COMMANDS[case]
    call = [sys.executable, "-c", RUN, *words]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == code
    assert done.stdout.splitlines()[-1].strip() == "heavy:"
    if code:
        assert done.stderr.startswith("ofw ") and done.stderr.count("\n") == 1
