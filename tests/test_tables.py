"""What results have in common: ways out as a table, and reading as plain values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hynt.results import PlainValues, Table


class Counted(PlainValues, Table):
    def to_dict(self):
        return {"facts": 3}

    def to_arrow(self):
        return pa.table({"facts": [3]})


@pytest.mark.parametrize("kind, missing", [(Table, "to_arrow"), (PlainValues, "to_dict")])
def test_a_result_without_its_one_method_cannot_be_made(kind, missing):
    with pytest.raises(TypeError, match=missing):
        type("Incomplete", (kind,), {})()


def test_one_method_each_gives_all_forms():
    found = Counted()
    assert found["facts"] == 3
    assert "facts" in found
    assert dict(found) == {"facts": 3}
    assert found == {"facts": 3}
    assert found != {"facts": 4}
    assert found.to_pandas()["facts"].tolist() == [3]
    assert found.to_polars()["facts"].to_list() == [3]
    assert pa.table(found).column_names == ["facts"]
