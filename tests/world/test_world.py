"""The embedded graph as it ships: whole, small, labelled, fairly split."""

from __future__ import annotations

import numpy as np
import pytest

from hynt.batches.number_scaling import NumberScaling
from hynt.graph.fact import DATE_UNIT
from hynt.graph.splitting import missing_from_train
from hynt.graph.storage import graph_folder, load_graph
from hynt.graph.units.conversion import lookup
from tools.world.relations import RELATIONS


@pytest.fixture(scope="module")
def world():
    return load_graph("world")


def test_it_has_the_counts_of_its_card(world):
    assert {split: len(table) for split, table in world.splits.items()} == {
        "train": 26_576,
        "valid": 3_302,
        "test": 3_269,
    }
    assert (world.vocabulary.entity_count, world.vocabulary.relation_count) == (1_838, 144)
    assert int(world.vocabulary.relation_is_number.sum()) == 93
    counts = np.concatenate([table.qualifier_counts() for table in world.splits.values()])
    assert (int((counts > 0).sum()), int((counts >= 3).sum())) == (23_748, 3_212)


def test_it_is_under_a_megabyte_with_its_notice():
    folder = graph_folder("world")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000
    notice = (folder.parent / "NOTICE").read_text(encoding="utf-8")
    assert all(source in notice for source in ("Gapminder", "GeoNames", "Factbook", "Unicode", "mendeleev"))


def test_every_entity_has_a_name_and_a_type(world):
    assert all(entity.label and entity.type for entity in world.entities)
    assert all(entity.name.startswith(f"{entity.type}/") for entity in world.entities)


def test_the_splits_are_fair(world):
    vocabulary = world.vocabulary
    tables = list(world.splits.values())
    assert missing_from_train(tables, vocabulary) == {"entities": 0, "relations": 0}
    keys = [{fact.key() for fact in world.facts(split)} for split in world.splits]
    assert len(keys[0] | keys[1] | keys[2]) == sum(len(part) for part in keys) == len(world)


def test_units_are_si_or_dates(world):
    for relation in world.relations:
        if relation.kind == "number" and relation.unit != DATE_UNIT:
            unit = lookup(relation.unit)
            assert unit is not None, relation
            assert unit.factor == 1, relation


def test_long_tails_are_marked_and_can_be_scaled(world):
    marked = [relation.name for relation in world.relations if relation.scale == "log"]
    assert {"population", "area", "GDP PPP"} <= set(marked)
    scaling = NumberScaling.fit([world.splits["train"]], world.vocabulary, marked, list(world.splits.values()))
    assert int(scaling.is_log.sum()) == len(marked)


def test_what_the_card_says_about_japan(world):
    facts = [fact for fact in world.facts() if fact.head == "country/Japan"]
    assert any(fact.relation == "capital" and fact.tail == "city/Tokyo_Japan" for fact in facts)
    ages = [fact.tail.value for fact in facts if fact.relation == "life expectancy"]
    assert ages
    assert all(60 < age < 95 for age in ages)


def test_every_relation_says_what_it_means_as_its_builder_has_it(world):
    assert {one.name: one.description for one in world.relations} == {
        one.name: RELATIONS[one.name].description for one in world.relations
    }
    assert all(one.description for one in world.relations)
