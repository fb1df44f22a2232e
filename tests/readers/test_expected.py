"""About how many rows a file has, without reading all of it."""

import pyarrow as pa
import pytest

from onlinefw.readers.expected import expected_rows
from onlinefw.readers.sources import Source


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.zst"])
@pytest.mark.parametrize("n", [1, 50, 200_000])
def test_how_many_rows_there_are_is_about_known_compressed_or_not(tmp_path, rng, ending, n):
    numbers = rng.integers(10**6, size=n)
    text = "".join(f"{number},{number % 7}\n" for number in numbers.tolist()).encode()
    path = tmp_path / f"a{ending}"
    codec = {".csv.gz": "gzip", ".csv.zst": "zstd"}.get(ending)
    if codec:
        with pa.CompressedOutputStream(str(path), codec) as file:
            file.write(text)
    else:
        path.write_bytes(text)
    assert expected_rows([Source(str(path), "csv", codec)]) == pytest.approx(n, rel=0.05)


def test_a_file_that_is_not_what_its_name_says_is_left_to_the_reader(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(b"user,item\n" * 10)
    assert expected_rows([Source(str(path), "csv", "gzip")]) == 1


def test_a_pipe_does_not_tell():
    assert expected_rows([Source("-", None)]) is None
