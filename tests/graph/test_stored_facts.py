"""Which stored facts answer a question: beside a slow, obvious reading of every fact."""

from __future__ import annotations

import random

import numpy as np

from hynt import number
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact_table import HEAD, RELATION, TAIL, components
from hynt.graph.known_answers import StoredFacts

SEED = 3


def _graph():
    chance = random.Random(SEED)
    facts = {"train": [], "valid": [], "test": []}
    for _ in range(120):
        pairs = [("place", f"e{chance.randrange(3)}"), ("weight", number(chance.randrange(3)))]
        qualifiers = chance.sample(pairs, chance.randrange(3))
        numeric = chance.random() < 0.4
        tail = number(chance.randrange(4)) if numeric else f"e{chance.randrange(5)}"
        relation = "length" if numeric else chance.choice(["knows", "likes"])
        split = chance.choice(["train", "train", "valid", "test"])
        facts[split].append((f"e{chance.randrange(5)}", relation, tail, qualifiers))
    return graph_from_facts(facts)


def _parts(fact):
    return [fact.head, fact.relation, fact.tail, *(part for pair in fact.qualifiers for part in pair)]


def _text(part):
    return part if isinstance(part, str) else str(part.value)


def _slow(graph, asked, position):
    """The answers of all facts that say what the question says, looked at one by one."""
    found = set()
    for split, table in graph.splits.items():
        for row, fact in enumerate(table.facts(graph.vocabulary)):
            visible = [pair for at, pair in enumerate(asked.qualifiers) if position < 3 or at != (position - 3) // 2]
            if any(pair not in fact.qualifiers for pair in visible):
                continue
            triplet = zip((0, 1, 2), (fact.head, fact.relation, fact.tail), strict=True)
            own = (asked.head, asked.relation, asked.tail)
            if any(position != place and part != own[place] for place, part in triplet):
                continue
            if position < 3:
                found.add((split, row, _text(_parts(fact)[position])))
            else:
                relation, value = asked.qualifiers[(position - 3) // 2]
                for other, held in fact.qualifiers:
                    if position % 2 == 0 and other == relation:
                        found.add((split, row, _text(held)))
                    if position % 2 and held == value:
                        found.add((split, row, other))
    return found


def test_every_question_finds_what_a_slow_reading_finds():
    graph = _graph()
    stored, checked = StoredFacts(graph), 0
    is_number = graph.vocabulary.relation_is_number
    for table in graph.splits.values():
        for row, fact in enumerate(table.facts(graph.vocabulary)):
            one = table.take(np.array([row]))
            kinds = components(one, is_number)
            for position in range(len(_parts(fact))):
                hides_relation_of_number = position % 2 == 1 and kinds.kind[position + 1] == 2
                found = stored.answering(one, position, is_tried=hides_relation_of_number)
                names = {(kept.split, kept.row, _name(graph, kinds, position, kept.answer)) for kept in found}
                slow = _slow(graph, fact, position)
                assert names == slow
                checked += len(slow)
                assert [kept.extra for kept in found] == sorted(kept.extra for kept in found)
    assert checked > 500


def _name(graph, kinds, position, answer):
    if position % 2:
        return graph.relations[int(answer)].name
    if kinds.kind[position] == 2:
        return _text(number(answer))
    return graph.vocabulary.entities[int(answer)]


def test_the_closest_facts_come_first_and_then_the_latest():
    def dated(year, *more):
        return ("a", "size", number(year), [("when", number(year, "date")), *more])

    graph = graph_from_facts({"train": [dated(1990), dated(2020, ("sex", "f"))], "test": [dated(2010), dated(2015)]})
    (question,) = [table.take(np.array([0])) for name, table in graph.splits.items() if name == "train"]
    found = StoredFacts(graph).answering(_bare(question), TAIL)
    assert [fact.answer for fact in found] == [2015, 2010, 1990, 2020]
    assert [fact.split for fact in found] == ["test", "test", "train", "train"]
    assert [fact.extra for fact in found] == [1, 1, 1, 2]
    assert StoredFacts(graph).answering(_bare(question), HEAD)[0].answer == 0
    assert [fact.row for fact in StoredFacts(graph).answering(question, RELATION, is_tried=True)] == [0]


def _bare(question):
    """The same fact without qualifiers."""
    from dataclasses import replace

    return replace(
        question,
        offsets=np.zeros(2, dtype=np.int64),
        qualifier_relation=question.qualifier_relation[:0],
        qualifier_entity=question.qualifier_entity[:0],
        qualifier_number=question.qualifier_number[:0],
        qualifier_literal=question.qualifier_literal[:0],
    )
