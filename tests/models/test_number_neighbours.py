"""What neighbours say of numbers, on a generated country."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.graph.vocabulary import Relation, Vocabulary
from hynt.models import number_neighbours
from hynt.models.number_neighbours import NumberNeighbours
from tests.oracle.plain_facts import table_of


@pytest.fixture(scope="module")
def country() -> tuple[FactTensors, list[float]]:
    """Towns lie in districts of a country, each where its district lies; friends are anywhere."""
    towns, districts = 300, 30
    chance = np.random.default_rng(0)
    lies, friend = chance.random(districts), chance.integers(towns, size=towns)
    names = tuple(f"town {one}" for one in range(towns)) + tuple(f"district {one}" for one in range(districts))
    relations = (Relation("in", "entity"), Relation("friend", "entity"), Relation("latitude", "number"))
    latitude = [float(lies[town % districts] + chance.normal(0, 0.01)) for town in range(towns)]
    facts = [(town, 0, towns + town % districts, []) for town in range(towns)]
    facts += [(town, 1, int(friend[town]), []) for town in range(towns)]
    facts += [(town, 2, latitude[town], []) for town in range(20, towns)]
    vocabulary = Vocabulary(names, relations)
    train = FactTensors.from_table(table_of(facts), vocabulary, NumberScaling.fit([table_of(facts)], vocabulary))
    return train, latitude


def test_neighbours_say_numbers_across_regions_by_the_edges_that_tell(country):
    train, latitude = country
    towns = len(latitude)
    entity = torch.arange(20, towns)
    value = torch.tensor(latitude[20:], dtype=torch.float64) - 0.5
    neighbours = NumberNeighbours(train)
    said = neighbours.say(entity, value)
    truth = torch.tensor(latitude, dtype=torch.float64) - 0.5
    assert (said.at(torch.arange(towns)) - truth).abs().mean() < 0.03  # known ones are told by others too
    # Its own number never reaches what is said of it.
    changed = neighbours.say(entity, torch.where(entity == 77, 40.0, value))
    assert float(changed.at(torch.tensor([77]))) == pytest.approx(float(said.at(torch.tensor([77]))), abs=0.05)
    assert not neighbours.say(entity[:9], value[:9]).at(entity).any()  # too few to say anything
    assert said.at(torch.tensor([train.sizes.mask_entity])).tolist() == [0.0]  # a masked head


def test_of_very_many_edges_some_are_followed(country, monkeypatch):
    train, latitude = country
    monkeypatch.setattr(number_neighbours, "MOST_EDGES", 100)
    neighbours = NumberNeighbours(train)
    assert 50 <= len(neighbours._head) <= 100
    said = neighbours.say(torch.arange(300), torch.tensor(latitude, dtype=torch.float64) - 0.5)
    assert said.at(torch.arange(300)).any()
    assert len(said.entity) <= 200
