"""What statistics of the training facts say, counted by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hynt.formats.from_python import graph_from_facts
from hynt.models.contract import Entities, Relations
from hynt.models.trivial import statistic
from tests.evaluation.test_combining import asked_batch, lopsided_graph, made


def test_the_company_of_an_entity_equals_a_count_by_hand():
    graph = lopsided_graph(6, people=30)
    _, data = made(graph)
    model, facts = statistic("co-occurrence", data.facts), graph.split("train")
    rows = torch.tensor([0, 5, 9])
    batch = asked_batch(data.facts, torch.full_like(rows, 2), rows)
    found = model.score(model.read(batch), Entities())
    every = list(facts.facts(graph.vocabulary))
    asked = [every[row] for row in rows.tolist()]
    for place, question in enumerate(asked):
        visible = [question.head]  # the tail is what is asked for
        for candidate, name in enumerate(graph.vocabulary.entities):
            expected = 0.0
            for entity in visible:
                times = 0
                for fact in every:
                    values = [one.value for one in fact.qualifiers]
                    ends = [fact.head, fact.tail]
                    pairs = [(ends[0], ends[1]), *((end, value) for end in ends for value in values)]
                    times += sum((entity, name) in ((a, b), (b, a)) for a, b in pairs)
                expected += np.log1p(times)
            assert float(found[place, candidate]) == pytest.approx(expected, abs=1e-5), (question, name)


def test_a_number_beside_a_hidden_relation_tells_which_it_is():
    """Every year is like every other, and so are heights; how many a relation has is for other statistics to say."""
    graph = lopsided_graph(7, people=60)
    _, data = made(graph)
    model = statistic("number-beside", data.facts)
    names = graph.vocabulary.relation_ids
    height, born = (torch.nonzero(data.facts.relation == names[name])[:3].squeeze(1) for name in ("height", "born in"))
    batch = asked_batch(data.facts, torch.ones(6, dtype=torch.int64), torch.cat([height, born]))
    found = model.score(model.read(batch), Relations())
    others = [names[name] for name in ("weight", "since", "year", "born in", "trade")]
    assert (found[:3, names["height"]].unsqueeze(1) > found[:3, others]).all()
    assert not found[3:].any(), "beside an entity it says nothing"

    numbers = data.facts.tail_value[height]
    moved = replace(data.facts, tail_value=data.facts.tail_value.index_copy(0, height, numbers - 90))  # like weights
    again = model.score(model.read(asked_batch(moved, torch.ones(3, dtype=torch.int64), height)), Relations())
    assert (again[:, names["weight"]] > again[:, names["height"]]).all()


def test_how_much_oftener_a_relation_has_such_numbers_equals_a_count_by_hand():
    tails = {"age": [2.0, 2.0, 3.0, 3.5], "size": [2.0, 70.0]}
    facts = [(f"{name} {place}", name, value) for name, values in tails.items() for place, value in enumerate(values)]
    facts.append(("age 0", "knows", "another", [("since", 2.0)]))
    graph = graph_from_facts({"train": facts, "valid": facts[:1]})
    _, data = made(graph)
    model, names = statistic("number-beside", data.facts), graph.vocabulary.relation_ids
    batch = asked_batch(data.facts, torch.ones(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    found = model.score(model.read(batch), Relations())[0]
    alike = [lambda number: number in (2.0, 3.0), *[lambda number: number == 2.0] * 4]
    every = [*tails["age"], *tails["size"], 2.0]
    for name, own in (*tails.items(), ("since", [])):  # of a qualifier: not one of its numbers is a tail
        lift = 1.0
        for holds in alike:
            share = sum(map(holds, own)) / sum(map(holds, every)) * len(every)
            lift = (share + 16.0 * lift) / (len(own) + 16.0)
        assert found[names[name]] == pytest.approx(math.log(lift), abs=1e-5), name
    assert found[names["knows"]] == -8.0, "it never has numbers"


@pytest.mark.parametrize(("name", "position"), [("head-places", 1), ("tail-places", 1), ("tail-places", 3)])
def test_the_share_of_an_entitys_places_equals_a_count_by_hand(name, position):
    graph = lopsided_graph(8, people=40)
    _, data = made(graph)
    model, every = statistic(name, data.facts), list(graph.split("train").facts(graph.vocabulary))
    rows = torch.tensor([*[row for row, fact in enumerate(every) if len(fact.qualifiers) == 2][:4], 0, 1, 2, 3])
    rows = rows[: len(rows) if position == 1 else 4]
    batch = asked_batch(data.facts, torch.full_like(rows, position + 2 * (position == 3)), rows)
    found = model.score(model.read(batch), Relations())

    def seen(fact):
        """(relation, who stands there) of each place like the one asked about."""
        if position == 3:
            return [(one.relation, one.value) for one in fact.qualifiers if isinstance(one.value, str)]
        value = fact.head if name == "head-places" else fact.tail
        return [(fact.relation, value)] if isinstance(value, str) else []

    every_place, names = [one for fact in every for one in seen(fact)], graph.vocabulary.relations
    usual = [1 / len(names) + sum(relation == one.name for relation, _ in every_place) for one in names]
    for place, row in enumerate(rows.tolist()):
        holders = [who for relation, who in seen(every[row])]
        for relation, one in enumerate(names):
            expected = 0.0
            if holders:
                own = [of for of, who in every_place if who == holders[-1]]
                expected = math.log((usual[relation] / sum(usual) + own.count(one.name)) / (1 + len(own)))
            assert float(found[place, relation]) == pytest.approx(expected, abs=1e-5), (row, one.name)
