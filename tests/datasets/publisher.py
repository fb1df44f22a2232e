"""A publisher of tiny data sets on this machine: files in the original formats, and a server."""

import bz2
import gzip
import io
import socket
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from scipy.io import savemat

from onlinefw.datasets.registry import ENTRIES

#: user, item, rating, timestamp; user 4 and item 20 do not occur, so that the ids have gaps.
RATINGS = [(1, 10, 5, 100), (3, 10, 1, 101), (1, 30, 4, 102), (2, 30, 3, 103), (5, 40, 2, 104)]
COUNTS = {"ratings": 5, "users": 4, "items": 3}


def zipped(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def lines(rows, separator):
    return "".join(separator.join(str(x) for x in row) + "\n" for row in rows)


def ml_100k():
    tests = {f"ml-100k/u{n}.test": lines([RATINGS[5 - n]], "\t") for n in range(1, 6)}
    return {"ml-100k.zip": zipped(**{"ml-100k/u.data": lines(RATINGS, "\t"), **tests})}


def ml_1m():
    return {"ml-1m.zip": zipped(**{"ml-1m/ratings.dat": lines(RATINGS, "::")})}


def ml_20m():
    rows = [(user, item, rating - 0.5, time) for user, item, rating, time in RATINGS]
    text = "userId,movieId,rating,timestamp\n" + lines(rows, ",")
    return {"ml-20m.zip": zipped(**{"ml-20m/ratings.csv": text})}


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">i4").tobytes()
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def mnist():
    images = np.arange(5 * 4 * 4).reshape(5, 4, 4)
    return {
        "train-images-idx3-ubyte.gz": idx(images[:3]),
        "train-labels-idx1-ubyte.gz": idx(np.array([7, 0, 9])),
        "t10k-images-idx3-ubyte.gz": idx(images[3:]),
        "t10k-labels-idx1-ubyte.gz": idx(np.array([1, 2])),
    }


def rcv1():
    return {
        "rcv1_train.binary.bz2": bz2.compress(b"-1 1:0.6 3:0.8\n+1 2:1\n"),
        "rcv1_test.binary.bz2": bz2.compress(b"+1 6:1\n"),
    }


def rcv1v2_subset():
    # CCAT is 33, ECAT 59, GCAT 70, MCAT 102.
    first = b"0,33 1:1\n70 2:1\n33,70 3:1\n"  # +1, -1, both sides
    second = b"59 4:0.6 6:0.8\n0,33 1:1\n93,102 5:1\n"  # +1, a repeat, -1
    names = [raw.name for raw in ENTRIES["rcv1v2-subset"].files[:2]]
    return dict(zip(names, (bz2.compress(first), bz2.compress(second)), strict=True))


def mat(**arrays):
    out = io.BytesIO()
    savemat(out, arrays)
    return out.getvalue()


def mug64(pixels=4):
    masks = np.arange(3 * pixels).reshape(3, pixels) % 2
    return {"Mug_64.mat": mat(y=np.array([[5.0], [7.0]])), "Phi_64.mat": mat(Phi=masks)}


#: name: (files, counts)
TINY = {
    "movielens100k": (ml_100k(), COUNTS),
    "movielens1m": (ml_1m(), COUNTS),
    "movielens20m": (ml_20m(), COUNTS),
    "mnist": (mnist(), {"train": 3, "test": 2, "side": 4}),
    "rcv1": (rcv1(), {"train": 2, "test": 1, "features": 6}),
    "rcv1v2-subset": (rcv1v2_subset(), {"rows_per_file": 3, "features": 6, "train": 3}),
    "mug64": (mug64(), {"pixels": 4}),
}


def tiny_entry(name, base=None, checksums=True):
    """The registry's entry for the tiny files of a data set, published under the address given."""
    files, counts = TINY[name]
    raw = tuple(
        replace(
            file,
            url=None if base is None else base + file.name,
            sha256=sha256(files[file.name]).hexdigest() if checksums and file.sha256 else None,
            md5=None,
        )
        for file in ENTRIES[name].files
        if file.name in files
    )
    return replace(ENTRIES[name], files=raw, counts=counts)


class Publisher:
    """Serves bytes by name, in part where asked to, and notes what was asked for."""

    def __init__(self):
        self.files = {}
        self.requests = []  # (name, the Range asked for or None)
        self.cut = None  # close the connection after so many bytes of an answer
        self.ranges = True  # whether parts are served
        self.address = ""

    def answer(self, handler):
        name, wanted = handler.path.lstrip("/"), handler.headers.get("Range")
        self.requests.append((name, wanted))
        if name not in self.files:
            handler.send_error(404)
            return
        content, start = self.files[name], 0
        if wanted and self.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                handler.send_error(416)
                return
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Length", str(len(content) - start))
        handler.end_headers()
        handler.wfile.write(content[start:][: self.cut])


@contextmanager
def serving():
    publisher = Publisher()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            publisher.answer(self)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    publisher.address = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield publisher
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def closed_port():
    """An address on this machine where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/"
