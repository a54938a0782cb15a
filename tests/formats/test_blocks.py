"""Whole lines from any bytes: nothing lost, nothing twice, bounded memory."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.formats import lines as blocks
from hynt.formats.lines import whole_lines

TEXTS = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"x")), max_size=12).map(b"\n".join)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 5)


def lines_of(data, start=0, end=None, longest=1000):
    """(offset, line) of every line in a range."""
    file = io.BytesIO(data)
    file.seek(max(start - 1, 0))
    found = []
    for block in whole_lines(file.read, start, end, longest):
        offset = block.offset
        for line in block.data.split(b"\n"):
            found.append((offset, line))
            offset += len(line) + 1
    return found


def plain_lines(data):
    """The same, in the most obvious way; what follows the last line end is a line unless it is empty."""
    found, offset = [], 0
    for line in data.split(b"\n"):
        found.append((offset, line))
        offset += len(line) + 1
    return found if found[-1][1] else found[:-1]


@given(TEXTS)
def test_all_lines_with_their_offsets(data):
    if not data.startswith(b"\xef\xbb\xbf"):
        assert lines_of(data) == plain_lines(data)


@given(TEXTS, st.sets(st.integers(1, 150), max_size=5))
def test_ranges_share_no_line_and_lose_none(data, cuts):
    if data.startswith(b"\xef\xbb\xbf"):
        return
    limits = [0, *sorted(cuts), None]
    found = [line for start, end in pairwise(limits) for line in lines_of(data, start, end)]
    assert found == plain_lines(data)


def test_a_line_that_is_too_long_is_told_and_left_out():
    data = b"short\n" + b"x" * 100 + b"\nlast\n"
    told = list(whole_lines(io.BytesIO(data).read, longest=20))
    assert [(block.offset, block.too_long) for block in told if block.too_long] == [(6, True)]
    assert b"\n".join(block.data for block in told if not block.too_long).split() == [b"short", b"last"]


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    assert lines_of(b"\xef\xbb\xbf[\n]\n") == [(3, b"["), (5, b"]")]


def test_a_last_line_without_end_is_told():
    *_, last = whole_lines(io.BytesIO(b"one\ntwo").read)
    assert (last.data, last.cut_off) == (b"two", True)
    *_, last = whole_lines(io.BytesIO(b"one\ntwo\n").read)
    assert not last.cut_off
