"""Opening files: compression, line ends, encodings, limits."""

from __future__ import annotations

import bz2
import errno
import gzip
import os
import resource
import tracemalloc

import pytest
import zstandard

from hynt.errors import DataError
from hynt.formats.format import ReadOptions, ReadReport
from hynt.formats.lines import text_lines
from hynt.formats.opening import open_bytes

TEXT = b"".join(b"line %d\n" % number for number in range(300_000))


def lines(path, report=None, **options):
    return list(text_lines(path, ReadOptions(**options), report or ReadReport()))


@pytest.mark.parametrize(
    "compress",
    [bytes, gzip.compress, bz2.compress, zstandard.ZstdCompressor().compress],
    ids=["plain", "gzip", "bzip2", "zstd"],
)
def test_compression_is_known_by_content_and_read_to_the_end(tmp_path, compress):
    half = len(TEXT) // 2
    path = tmp_path / "no-suffix"
    path.write_bytes(compress(TEXT[:half]) + compress(TEXT[half:]))  # two members, as pigz and pzstd write them
    report = ReadReport()
    found = lines(path, report)
    assert len(found) == 300_000
    assert found[-1] == "line 299999"
    assert report.bytes_read == path.stat().st_size
    assert report.line == 300_000
    assert report.file == str(path)


@pytest.mark.parametrize(
    "name, compress", [("gzip", gzip.compress), ("bzip2", bz2.compress), ("zstd", zstandard.ZstdCompressor().compress)]
)
def test_a_truncated_archive_is_named(tmp_path, name, compress):
    path = tmp_path / "cut"
    packed = compress(TEXT)
    for size in (len(packed) // 2, len(packed) - 3):
        path.write_bytes(packed[:size])
        with pytest.raises(DataError) as error:
            lines(path)
        assert str(error.value) == (
            f"{path}: the {name} data ends too early. The file is incomplete or was changed: get it again."
        )


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, zstandard.ZstdCompressor(write_checksum=True).compress]
)
def test_a_damaged_archive_is_named(tmp_path, compress):
    path = tmp_path / "damaged"
    packed = bytearray(compress(TEXT))
    for place in range(len(packed) // 2, len(packed) // 2 + 40):
        packed[place] ^= 0x5A
    path.write_bytes(bytes(packed))
    with pytest.raises(DataError, match=r"data (is damaged|ends too early)\. The file is incomplete or was changed"):
        lines(path)


@pytest.mark.parametrize(
    "start, what",
    [(b"PK\x03\x04", "a zip archive"), (b"\xfd7zXZ\x00", "xz-compressed"), (b"7z\xbc\xaf\x27\x1c", "a 7z archive")],
)
def test_other_archives_are_named(tmp_path, start, what):
    path = tmp_path / "archive"
    path.write_bytes(start + b"rest")
    with pytest.raises(DataError, match=f"archive: is {what}, which is not read directly. Unpack it"):
        lines(path)


def test_an_archive_bomb_stops_early(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress((b"x" * 1023 + b"\n") * 1024) * 130)
    report = ReadReport()
    with pytest.raises(DataError) as error:
        for _ in text_lines(path, ReadOptions(), report):
            pass
    assert "bomb.gz: unpacks to more than 200 times its size (" in str(error.value)
    assert str(error.value).endswith("If you trust it, unpack it yourself and give the unpacked file.")
    assert report.line <= 70 * 1024
    assert sum(1 for _ in text_lines(path, ReadOptions(max_expansion=2000), ReadReport())) == 130 * 1024


def test_a_line_of_a_gigabyte_stays_small_in_memory(tmp_path):
    path = tmp_path / "line.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n") + gzip.compress(bytes(2**20)) * 1024)  # a gigabyte, unpacked
    tracemalloc.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError) as error:
        for _ in text_lines(path, ReadOptions(max_line_bytes=2**20, max_expansion=10**6), ReadReport()):
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(error.value) == (
        f"{path}:3: a line is longer than 1,048,576 bytes. A record is one line: check that this is a text file with "
        "one fact per line."
    )
    assert peak < 16 * 2**20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 2**10  # KiB


@pytest.mark.parametrize("where", [1, 2, 3])
def test_a_long_line_is_found_wherever_it_stands(tmp_path, where):
    path = tmp_path / "lines"
    path.write_bytes(b"\n".join(b"x" * (50 if number == where else 5) for number in (1, 2, 3)))
    with pytest.raises(DataError, match=f"lines:{where}: a line is longer than 20 bytes"):
        lines(path, max_line_bytes=20)
    assert len(lines(path, max_line_bytes=50)) == 3


def test_only_line_feeds_end_a_line(tmp_path):
    path = tmp_path / "ends"
    path.write_bytes("\ufeffa\u2028b\x85c\r\nd\n\ne\r".encode())
    assert lines(path) == ["a\u2028b\x85c", "d", "", "e"]


def test_a_line_across_blocks_is_whole(tmp_path):
    path = tmp_path / "blocks"
    texts = ["é" * size for size in (10, 600_000, 3, 1_200_000, 0, 7)]
    path.write_text("\n".join(texts), encoding="utf-8")
    assert lines(path) == texts


@pytest.mark.parametrize(
    "raw, reason, what",
    [
        (b"a\0b", "nul-byte", "byte 2 is NUL."),
        (b"ab\xe9", "not-utf8", "byte 3 is not UTF-8 (0xe9)."),
        (b"\xc0\x80", "not-utf8", "byte 1 is not UTF-8 (0xc0)."),
        (b"\xed\xa0\x80", "not-utf8", "byte 1 is not UTF-8 (0xed)."),
        (b"a\x1b[2J", "control-character", "character 2 is the control character U+001B."),
        (b"a\rb", "control-character", "character 2 is the control character U+000D."),
        (b"\x0b", "control-character", "character 1 is the control character U+000B."),
        (b"\x7f", "control-character", "character 1 is the control character U+007F."),
    ],
)
def test_a_line_that_is_no_text_is_rejected_and_the_rest_is_read(tmp_path, raw, reason, what):
    path = tmp_path / "lines"
    path.write_bytes(b"first\r\n" + raw + b"\nlast\n")
    report = ReadReport()
    assert lines(path, report) == ["first", "last"]
    assert report.read == 1
    assert report.rejected == {reason: 1}
    assert report.problems[0].where == f"{path}:2"
    assert report.problems[0].what == what
    assert report.problems[0].advice


def test_utf16_is_named(tmp_path):
    path = tmp_path / "utf16"
    path.write_text("a\tb\tc\n", encoding="utf-16")
    with pytest.raises(DataError, match=r"utf16: is UTF-16 text. Save it as UTF-8."):
        lines(path)


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(DataError) as error:
        lines(tmp_path / "missing.txt")
    assert str(error.value) == (
        f"{tmp_path}/missing.txt: cannot be read: no such file or directory. Check the path and its rights."
    )
    with pytest.raises(DataError, match="is not a regular file"):
        lines(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DataError, match="is not a regular file"):
        open_bytes(tmp_path / "fifo", ReadOptions(), ReadReport())


def test_a_file_without_rights_is_named(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.touch(mode=0)
    if os.geteuid() == 0:  # who may read everything

        def refused(self, *_, **__):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

        monkeypatch.setattr(type(path), "open", refused)
    with pytest.raises(DataError, match="secret: cannot be read: permission denied"):
        lines(path)


def test_a_file_whose_reading_fails_is_named(tmp_path, monkeypatch):
    path = tmp_path / "disk"
    path.write_bytes(b"a\n")
    stream = open_bytes(path, ReadOptions(), ReadReport())
    stream.close()

    class Broken:
        def read(self, size):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(stream, "_file", Broken())
    with pytest.raises(DataError, match="disk: cannot be read: input/output error"):
        stream.read(10)
