"""The package itself is light: what a format needs is imported when it is read."""

import subprocess
import sys


def test_importing_the_readers_imports_no_arrow():
    code = "import sys, onlinefw.readers; print('pyarrow' in sys.modules, 'sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
