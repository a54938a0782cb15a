"""The builder of `world`: which statements become facts, how they are split, scaled and sampled."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the builder lives outside the installed package

from hynt.graph.units.conversion import lookup
from tools.world.audit import sample
from tools.world.card import card
from tools.world.relations import DATE, ENTITY, NUMBER, RELATIONS
from tools.world.scales import scale
from tools.world.selection import Counts, keep_believable, keep_core, keep_first, select
from tools.world.splits import fact_as_json, split, split_of
from tools.world.statement import Date, Entity, Quantity, Statement, quantity


def statement(head: str, relation: str, tail: Any, *qualifiers: tuple[str, Any]) -> Statement:
    return Statement(Entity("country", head), relation, tail, qualifiers)


def test_a_number_out_of_bounds_is_counted_and_left_out() -> None:
    counts = Counts()
    kept = keep_believable(
        [statement("A", "ionic radius", quantity(-38)), statement("A", "ionic radius", quantity(78))], counts
    )
    assert [item.tail for item in kept] == [Quantity(Decimal(78))]
    assert counts.statements == {"number out of bounds": 1}


def test_the_wrong_kind_is_a_mistake_of_the_builder() -> None:
    with pytest.raises(ValueError, match="'latitude' carries a entity, its table says number"):
        keep_believable([statement("A", "latitude", Entity("city", "B"))], Counts())


def test_the_first_number_for_a_subject_stays() -> None:
    counts = Counts()
    first = statement("A", "latitude", quantity("1.50"))
    again, second = statement("A", "latitude", quantity("1.5")), statement("A", "latitude", quantity(2))
    assert keep_first([first, again, second], counts) == [first]
    assert counts.statements == {"told before": 1, "second number for the same subject": 1}


def test_rare_entities_go_and_a_rare_qualifier_goes_alone() -> None:
    counts = Counts()
    rare_role, common = Entity("role", "observer"), Entity("organization", "AU")
    kept = keep_core(
        [
            statement("A", "member of", common, ("role", rare_role)),
            statement("A", "area", quantity(5)),
            statement("B", "member of", common),
            statement("B", "area", quantity(6)),
            statement("A", "member of", Entity("organization", "seen once")),
        ],
        counts,
    )
    assert [item.qualifiers for item in kept] == [(), (), (), ()]
    assert sum(counts.statements.values()) == 1
    assert sum(counts.qualifiers.values()) == 1


def test_selection_leaves_no_contradiction_when_a_qualifier_goes() -> None:
    one = statement("A", "area", quantity(5), ("role", Entity("role", "rare")))
    two = statement("A", "area", quantity(6), ("role", Entity("role", "odd")))
    three = statement("A", "population", quantity(5000))
    assert len(select([one, two, three], Counts())) == 2


def test_the_split_of_a_fact_depends_on_its_content_alone() -> None:
    pairs = (("point in time", Date("2024")), ("share", quantity(26)))
    fact = statement("Senegal", "export partner", Entity("country", "China"), *pairs)
    turned = statement("Senegal", "export partner", Entity("country", "China"), *reversed(pairs))
    assert fact_as_json(fact) == fact_as_json(turned)
    assert json.loads(fact_as_json(fact)) == {
        "head": "country/Senegal",
        "relation": "export partner",
        "tail": "country/China",
        "qualifiers": [["point in time", {"date": "2024"}], ["share", {"number": 26, "unit": "percent"}]],
    }
    assert split_of(fact_as_json(fact)) == split_of(fact_as_json(turned))


def test_splits_are_eight_to_one_to_one_and_train_knows_everything() -> None:
    statements = [statement(f"C{index % 97}", "area", quantity(index)) for index in range(3000)]
    statements += [statement("Lonely", "area", quantity(1))]
    splits, moved = split(statements)
    sizes = {name: len(lines) for name, lines in splits.items()}
    assert sum(sizes.values()) == len(statements)
    assert abs(sizes["train"] / 3001 - 0.8) < 0.03
    assert abs(sizes["valid"] - sizes["test"]) < 120
    trained = {item.head for _, item in splits["train"]}
    assert all(item.head in trained for name in ("valid", "test") for _, item in splits[name])
    assert moved in (0, 1)


def test_a_long_tail_above_zero_deserves_a_log_scale() -> None:
    tail = [float(2**power) for power in range(30)]
    assert scale(tail, "USD") == "log"
    assert scale([0.0, *tail], "USD") == "linear"
    assert scale(tail, "percent") == "linear"
    assert scale([float(number) for number in range(1, 50)], "USD") == "linear"
    assert scale(tail[:10], "USD") == "linear"


def test_the_audit_sample_is_seeded_and_without_repeats() -> None:
    statements = [statement(f"C{index}", "area", quantity(index)) for index in range(400)]
    statements += [statement("C1", "population", quantity(9))]
    chosen = sample(statements, seed=5, facts=60)
    assert chosen == sample(statements, seed=5, facts=60)
    assert len({fact_as_json(item) for item in chosen}) == 60
    assert any(item.relation == "population" for item in chosen)


def test_every_relation_has_a_known_unit() -> None:
    for relation in RELATIONS.values():
        assert relation.kind in (ENTITY, NUMBER, DATE)
        if relation.kind == NUMBER:
            assert lookup(relation.unit) is not None, relation.label


def test_the_card_counts_a_built_folder(tmp_path: Path) -> None:
    facts = {
        "train": [statement("A", "area", quantity(5)), statement("A", "shares border with", Entity("country", "B"))],
        "valid": [statement("B", "population", quantity(5000), ("point in time", Date("2024")))],
        "test": [statement("B", "area", quantity(5))],
    }
    for name, statements in facts.items():
        lines = "".join(f"{fact_as_json(item)}\n" for item in statements)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "entities.jsonl").write_text('{"id": "country/A"}\n{"id": "country/B"}\n', encoding="utf-8")
    row = {"id": "area", "label": "area", "kind": "number", "unit": "km2", "scale": "log", "description": "of the land"}
    (tmp_path / "relations.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    text = card(tmp_path)
    assert "| facts (train / valid / test) | 4 (2 / 1 / 1) |" in text
    assert "| with qualifiers | 1 (25%) |" in text
    assert "| tails: entities / numbers | 1 / 3 |" in text
    assert "| area | 2 |  | km2 | log | of the land |" in text
