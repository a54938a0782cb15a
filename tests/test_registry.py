from __future__ import annotations

import pytest

from hynt.errors import UsageError
from hynt.names import Registry


@pytest.fixture
def formats() -> Registry[int]:
    registry: Registry[int] = Registry("format")
    for place, name in enumerate(["tsv", "jsonl", "parquet"]):
        assert registry.add(name, place) == place
    return registry


def test_keeps_the_order_of_registration(formats):
    assert list(formats) == ["tsv", "jsonl", "parquet"]
    assert list(formats.items()) == [("tsv", 0), ("jsonl", 1), ("parquet", 2)]
    assert len(formats) == 3
    assert "tsv" in formats
    assert "rdf" not in formats
    assert formats.get("jsonl") == 1
    assert repr(formats) == "Registry('format': tsv, jsonl, parquet)"


def test_refuses_a_second_thing_under_one_name(formats):
    with pytest.raises(ValueError, match="a format named 'tsv' is already registered: 0"):
        formats.add("tsv", 7)
    assert formats.get("tsv") == 0


def test_unknown_name_is_answered_with_the_nearest_and_the_list(formats):
    with pytest.raises(UsageError) as raised:
        formats.get("Parqet")
    assert str(raised.value) == "unknown format 'Parqet'. Did you mean parquet? Known here: tsv, jsonl, parquet."
    assert raised.value.exit_code == 2


def test_a_name_near_nothing_gets_only_the_list(formats):
    with pytest.raises(UsageError) as raised:
        formats.get("zzz")
    assert raised.value.advice == "Known here: tsv, jsonl, parquet."


def test_an_empty_registry_says_so():
    with pytest.raises(UsageError) as raised:
        Registry("model").get("hynt")
    assert str(raised.value) == "unknown model 'hynt'. Nothing is known here."
