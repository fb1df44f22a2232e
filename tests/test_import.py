"""Importing the library is light: what one format or one place needs is imported when used."""

import subprocess
import sys

import pytest

HEAVY = "{'pyarrow', 'cupy', 'ray', 'matplotlib', 'pooch', 'typer'}"


def heavy_after(code):
    """Return the heavy libraries that a fresh process has loaded after some code."""
    code = f"import sys\n{code}\nprint(*sorted({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_loads_no_optional_library():
    assert heavy_after("import onlinefw") == []


@pytest.mark.slow
def test_neither_does_any_name_of_the_public_surface():
    code = (
        "sys.modules['pandas'] = None\n"  # scikit-learn imports it where it is, and it pyarrow
        "import onlinefw as ofw\n"
        "[getattr(ofw, name) for name in ofw.__all__]"
    )
    assert heavy_after(code) == []


def test_the_readers_load_no_library_before_a_file_is_opened():
    code = "import onlinefw.readers\nfrom onlinefw.distributed import ParquetRatings, ParquetRows"
    assert heavy_after(code) == []
