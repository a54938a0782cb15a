"""Dumps open the same whatever they are packed with, and what is broken is told by name."""

from __future__ import annotations

import bz2
import gzip
import random

import pytest
import zstandard

from hynt.creation.reading import DumpStream, is_compressed
from hynt.errors import DataError

RANDOM = random.Random(7)
DATA = b"".join(b"line %d of a dump\n" % RANDOM.randrange(10**9) for _ in range(90_000))
PACKERS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.compress,
    "gzip in two members": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "bzip2 in two streams": lambda data: bz2.compress(data[:1000]) + bz2.compress(data[1000:]),
    "zstd in two frames": lambda data: zstandard.compress(data[:1000]) + zstandard.compress(data[1000:]),
}


def read_all(path, size=100_001):
    stream = DumpStream(path)
    try:
        pieces = []
        while piece := stream.read(size):
            pieces.append(piece)
        return pieces, stream.bytes_read
    finally:
        stream.close()


@pytest.mark.parametrize("packer", PACKERS)
def test_the_same_bytes_from_every_packing(packer, tmp_path):
    path = tmp_path / "dump"
    path.write_bytes(PACKERS[packer](DATA))
    pieces, taken = read_all(path)
    assert b"".join(pieces) == DATA
    assert {len(piece) for piece in pieces[:-1]} == {100_001}  # pieces never depend on the archive
    assert taken == path.stat().st_size
    assert is_compressed(path) == (packer != "plain")


@pytest.mark.parametrize("packer", ["gzip", "bzip2", "zstd"])
def test_a_cut_off_archive_is_told(packer, tmp_path):
    path = tmp_path / "dump"
    packed = PACKERS[packer](DATA)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError) as caught:
        read_all(path)
    assert str(path) in str(caught.value)
    assert "get it again" in str(caught.value)


@pytest.mark.parametrize("packer", ["gzip", "bzip2"])
def test_a_damaged_archive_is_told(packer, tmp_path):
    path = tmp_path / "dump"
    packed = bytearray(PACKERS[packer](DATA))
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(DataError, match="damaged"):
        read_all(path)


def test_what_is_no_file_is_told(tmp_path):
    with pytest.raises(DataError, match="is not a regular file"):
        DumpStream(tmp_path)
    with pytest.raises(DataError, match="is not a regular file"):
        DumpStream(tmp_path / "nothing")
    path = tmp_path / "dump.zip"
    path.write_bytes(b"PK\x03\x04" + b"x" * 100)
    with pytest.raises(DataError, match="zip archive"):
        DumpStream(path)


def test_plain_files_open_in_their_middle(tmp_path):
    path = tmp_path / "dump"
    path.write_bytes(DATA)
    stream = DumpStream(path, start=1234)
    assert stream.read(10) == DATA[1234:1244]
    stream.close()
