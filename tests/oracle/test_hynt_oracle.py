"""The model answers every question as the oracle does, to 1e-5."""

from __future__ import annotations

import pytest
import torch

from hynt.batches.buckets import layout_of, rows_by_bucket
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import AskableComponents, Task, mask
from hynt.models.contract import Entities, Relations, ScaledNumber
from tests.models.small_models import FORMS, facts_of, small_model
from tests.oracle.hynt_oracle import Component, HyntOracle

LENGTHS = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def components_of(facts: FactTensors, row: int) -> list[Component]:
    """A fact straight from the columns."""

    def value(entity: int, number: float, is_number: bool) -> Component:
        return Component("number", number) if is_number else Component("entity", entity)

    found = [
        Component("entity", int(facts.head[row])),
        Component("relation", int(facts.relation[row])),
        value(int(facts.tail_entity[row]), float(facts.tail_number[row]), bool(facts.tail_is_number[row])),
    ]
    for slot in range(int(facts.offsets[row]), int(facts.offsets[row + 1])):
        found.append(Component("relation", int(facts.qualifier_relation[slot])))
        kind = bool(facts.qualifier_is_number[slot])
        found.append(value(int(facts.qualifier_entity[slot]), float(facts.qualifier_number[slot]), kind))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_the_model_matches_the_oracle_in_every_position_with_any_number_of_qualifiers(form):
    facts = facts_of(LENGTHS, seed=4)
    model = small_model(form, facts)
    oracle = HyntOracle(model)
    components = AskableComponents.of(facts)
    counts = facts.qualifier_counts()[components.owner()]
    found = rows_by_bucket(counts)
    order = torch.cat([rows for _, rows in found])
    layout = layout_of([(len(rows), capacity) for capacity, rows in found])
    owner, asked = components.owner()[order], components.position[order]
    batch, answers = mask(facts, owner, asked, layout)
    with torch.no_grad():
        question = model.read(batch)
        scores = {
            Task.LINK: model.score(question, Entities()),
            Task.RELATION: model.score(question, Relations()),
            Task.NUMBER: model.score(question, ScaledNumber()),
        }
    seen = set()
    for row in range(len(batch)):
        task = Task(int(answers.task[row]))
        expected = oracle.answer(components_of(facts, int(owner[row])), int(asked[row]))
        torch.testing.assert_close(scores[task][row].double(), expected, rtol=1e-5, atol=1e-5)
        seen.add((task, int(asked[row]), int(counts[order][row])))
    assert {length for _, _, length in seen} == {0, 1, 2, 3, 4}
    assert {(task, position) for task, position, _ in seen} >= {
        (Task.LINK, 0),
        (Task.RELATION, 1),
        (Task.LINK, 2),
        (Task.NUMBER, 2),
        (Task.RELATION, 3),
        (Task.LINK, 4),
        (Task.NUMBER, 4),
        (Task.RELATION, 9),
        (Task.LINK, 10) if (Task.LINK, 10, 4) in seen else (Task.NUMBER, 10),
    }
