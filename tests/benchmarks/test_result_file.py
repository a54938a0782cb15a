"""Files of results: what cannot be read, or is of another kind, is said in a sentence, and nothing is lost."""

from __future__ import annotations

import pytest

from benchmarks.result_file import read_result


def test_a_result_is_read(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"rows": {}, "more": 1}', encoding="utf-8")
    assert read_result(file, "rows", advice="") == {"rows": {}, "more": 1}


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "No such file"), ("", "cannot be read"), ("{", "cannot be read"), ("[]", "no rows"), ("{}", "no rows")],
)
def test_any_other_file_is_refused_and_left_alone(text, told, tmp_path):
    file = tmp_path / "a.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        read_result(file, "rows", advice="give another")
    assert told in str(left.value)
    assert str(left.value).endswith(": give another")
    assert text is None or file.read_text(encoding="utf-8") == text
