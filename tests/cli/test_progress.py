"""A bar on a terminal, seldom lines elsewhere, and nothing of it on standard output."""

from __future__ import annotations

import io

from hynt.cli.progress import ReadingProgress, reading_words
from hynt.formats.importing import ImportProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_come_every_few_seconds():
    stream, now = io.StringIO(), iter([0.0, 1.0, 4.9, 5.5, 6.0, 11.0])
    with ReadingProgress(stream, lambda: next(now)) as progress:
        for facts in range(1, 6):
            progress(ImportProgress("reading", facts * 1_000_000, 10_000_000, facts))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0] == "reading: 3.0 of 10.0 MB (30%), 3 facts, 0.5 MB/s, about 13 s left"


def test_a_plain_line_of_an_unknown_size():
    assert (
        reading_words(ImportProgress("splitting", 0, 0, 12_345), None, 0.0) == "splitting: 0.0 of 0.0 MB, 12,345 facts"
    )


def test_a_terminal_gets_a_bar():
    stream = Terminal()
    with ReadingProgress(stream) as progress:
        progress(ImportProgress("reading", 5_000_000, 10_000_000, 1_234))
        progress(ImportProgress("reading", 10_000_000, 10_000_000, 2_468))
    assert "reading" in stream.getvalue()
    assert "10.0 of 10.0 MB (100%)" in stream.getvalue()
    assert "2,468 facts" in stream.getvalue()
