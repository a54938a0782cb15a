"""Every kind of bad input, one by one, through the whole import: one clear error, and nothing left behind."""

from __future__ import annotations

import gzip

import pytest

from hynt.errors import DataError
from hynt.formats.format import ReadOptions
from hynt.formats.importing import ImportOptions, import_graph

TEXT_FORMATS = ("hynt", "stare", "nary-json", "tsv", "jsonl")
GOOD = {
    "hynt": b"a\tr\tb\n",
    "stare": b"a,r,b\n",
    "nary-json": b'{"r_h": "a", "r_t": "b", "N": 2}\n',
    "tsv": b"a\tr\tb\n",
    "jsonl": b'{"head": "a", "relation": "r", "tail": "b"}\n',
}


def refusal(tmp_path, format_name, content, **options):
    """What an import of this content says, having left nothing behind."""
    source = tmp_path / "source"
    source.write_bytes(content)
    with pytest.raises(DataError) as error:
        import_graph(source, format_name, tmp_path / "out", ImportOptions(reading=ReadOptions(**options)))
    assert error.value.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    return str(error.value).replace(f"{tmp_path}/", "")


def test_good_input_is_good(tmp_path):
    for name, content in GOOD.items():
        (tmp_path / name).write_bytes(content)
        assert import_graph(tmp_path / name, name, tmp_path / f"{name}-graph").report.kept == 1


@pytest.mark.parametrize("format_name", TEXT_FORMATS)
class TestEveryTextFormat:
    def test_unreadable(self, tmp_path, format_name):
        with pytest.raises(DataError, match="cannot be read: no such file or directory"):
            import_graph(tmp_path / "missing", format_name, tmp_path / "out")
        assert list(tmp_path.iterdir()) == []

    def test_truncated_archive(self, tmp_path, format_name):
        said = refusal(tmp_path, format_name, gzip.compress(GOOD[format_name] * 1000)[:-10])
        assert said == "source: the gzip data ends too early. The file is incomplete or was changed: get it again."

    def test_wrong_encoding(self, tmp_path, format_name):
        bad = GOOD[format_name].replace(b"a", "é".encode("latin-1"), 1)
        said = refusal(tmp_path, format_name, GOOD[format_name] + bad)
        assert said.startswith("source:2: 1 of 2 records cannot be kept: not-utf8 (1). The first: byte ")
        assert "is not UTF-8 (0xe9). Save the file as UTF-8." in said

    def test_nul_byte(self, tmp_path, format_name):
        said = refusal(tmp_path, format_name, GOOD[format_name].replace(b"a", b"\0", 1))
        assert "cannot be kept: nul-byte (1). The first: byte " in said
        assert "is NUL. The file is damaged or not text: write it again." in said

    def test_endless_line(self, tmp_path, format_name):
        said = refusal(tmp_path, format_name, gzip.compress(GOOD[format_name] + bytes(2**24)), max_line_bytes=2**16)
        assert said.startswith("source:2: a line is longer than 65,536 bytes. ")

    def test_archive_bomb(self, tmp_path, format_name):
        content = gzip.compress((b" " * 4095 + b"\n") * 20_000, compresslevel=9)
        said = refusal(tmp_path, format_name, content)
        assert said.startswith("source: unpacks to more than 200 times its size (")

    def test_empty_file(self, tmp_path, format_name):
        said = refusal(tmp_path, format_name, b"")
        assert "no facts" in said
        assert said == refusal(tmp_path, format_name, gzip.compress(b"\n\n"))

    def test_binary_rubbish(self, tmp_path, format_name):
        said = refusal(tmp_path, format_name, bytes(range(256)) * 8)
        assert "records cannot be kept" in said


@pytest.mark.parametrize(
    "format_name, line, reason",
    [
        ("hynt", "a\tr", "missing-columns"),
        ("stare", "a,r", "missing-columns"),
        ("tsv", "a\tr", "missing-columns"),
        ("jsonl", '{"head": "a"}', "missing-key"),
        ("nary-json", '{"r_h": "a"}', "missing-columns"),
        ("hynt", "a\tr\tnan", "bad-number"),
        ("hynt", "a\tr\t1e999", "bad-number"),
        ("hynt", "a\tr\t１２", "bad-number"),
        ("tsv", "a\tr\t=nan", "bad-number"),
        ("tsv", "a\tr\t=1e999", "bad-number"),
        ("tsv", "a\tr\t=１２", "bad-number"),
        ("jsonl", '{"head": "a", "relation": "r", "tail": NaN}', "bad-number"),
        ("jsonl", '{"head": "a", "relation": "r", "tail": 1e999}', "bad-number"),
        ("jsonl", '{"head": "a", "relation": "r", "tail": １２}', "bad-json"),
        ("nary-json", '{"r_h": "a", "r_t": "+1e999"}', "bad-number"),
        ("tsv", "a\tr\t=80 furlongs-per-fortnight", "unknown-unit"),
        ("jsonl", '{"head": "a", "relation": "r", "tail": {"number": 80, "unit": "zorkmid"}}', "unknown-unit"),
        ("hynt", "80\tr\tb", "number-as-head"),
        ("tsv", "=80\tr\tb", "number-as-head"),
        ("jsonl", '{"head": 80, "relation": "r", "tail": "b"}', "number-as-head"),
        ("nary-json", '{"r_h": "+80", "r_t": "b"}', "number-as-head"),
        ("hynt", "a\tr\tb\tq", "qualifier-without-value"),
        ("stare", "a,r,b,q", "qualifier-without-value"),
        ("tsv", "a\tr\tb\tq", "qualifier-without-value"),
        ("jsonl", '{"head": "a", "relation": "r", "tail": "b", "qualifiers": [["q"]]}', "qualifier-without-value"),
        ("nary-json", '{"r_h": "a", "r_t": "b", "q": []}', "qualifier-without-value"),
        ("tsv", "a\tr\t=80\na\tr\tb", "mixed-relation"),
    ],
)
def test_bad_records(tmp_path, format_name, line, reason):
    said = refusal(tmp_path, format_name, line.encode() + b"\n")
    count = line.count("\n") + 1
    assert said.startswith(f"source:{count}: 1 of {count} records cannot be kept: {reason} (1). The first: ")
    assert said.endswith("Or leave such records out with --on-error skip.")
