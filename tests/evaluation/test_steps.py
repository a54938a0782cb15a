"""Rules of one step and of two, counted by hand on small random graphs."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.graph.vocabulary import Relation, Vocabulary
from hynt.models.contract import Entities, Relations
from hynt.models.steps import OneStep, TwoSteps
from hynt.models.trivial import TrivialSettings
from tests.evaluation.test_trivial_models import asked
from tests.oracle.plain_facts import table_of


def of_two(facts, kinds_between, here, there, side):
    """What rules say of `here` being joined with `there` by `side`, from the sides of all that leads between two."""
    score = 0.0
    for kinds in kinds_between(here, there):
        alike = [
            (one, other)
            for one in range(6)
            for other in range(6)
            for also in kinds_between(one, other)
            if also == kinds
        ]
        held = sum(sum(step == (one, side, other) for step in facts) > (kinds == side) for one, other in alike)
        score += (held / (len(alike) + 2)) ** 2
    return math.log1p(score / 1e-3) / math.log(1e3)


@pytest.mark.parametrize("kind", [OneStep, TwoSteps])
@pytest.mark.parametrize("seed", range(4))
def test_rules_of_steps_answer_heads_tails_and_relations_as_counted_by_hand(kind, seed):
    random = np.random.default_rng(seed)
    triplets = [
        (int(head), int(relation), int(tail)) for head, relation, tail in random.integers(0, (6, 3, 6), (24, 3))
    ]
    facts = [
        (head, relation, tail, [(0, int(tail))] * (place % 2)) for place, (head, relation, tail) in enumerate(triplets)
    ]
    facts += [(1, 3, 0.5, []), (4, 3, 0.25, [(3, 0.5)])]
    relations = (*(Relation(name, "entity") for name in ("knows", "likes", "pays")), Relation("height", "number"))
    vocabulary, table = Vocabulary(tuple("abcdef"), relations), table_of(facts)
    train = FactTensors.from_table(table, vocabulary, NumberScaling.fit([table], vocabulary))
    taken = [(head, (relation, "tail"), tail) for head, relation, tail in triplets]
    taken += [(tail, (relation, "head"), head) for head, relation, tail in triplets]

    @cache
    def between(here, there):
        """One step, or two from one entity to another: each way once."""
        if kind is OneStep:
            return sorted({side for one, side, other in taken if (one, other) == (here, there)})
        ways = {
            (first, middle, second)
            for one, first, middle in taken
            for start, second, other in taken
            if (one, start, other) == (here, middle, there) and here != there
        }
        return sorted((first, second) for first, _, second in ways)

    model = kind.build(train.sizes, train, TrivialSettings())
    rows = list(range(len(facts)))
    tails, heads, found = (
        model.score(model.read(asked(train, rows, [place] * len(rows), capacity=1)), candidates)
        for place, candidates in ((2, Entities()), (0, Entities()), (1, Relations()))
    )
    for row, (head, relation, tail) in enumerate(triplets):
        told = [of_two(taken, between, head, other, (relation, "tail")) for other in range(6)]
        assert tails[row].tolist() == pytest.approx(told, abs=1e-5)
        told = [of_two(taken, between, tail, other, (relation, "head")) for other in range(6)]
        assert heads[row].tolist() == pytest.approx(told, abs=1e-5)
        told = [of_two(taken, between, head, tail, (one, "tail")) for one in range(3)]
        assert found[row].tolist() == pytest.approx([*told, 0.0], abs=1e-5)
    assert found.count_nonzero() > 10
    assert not found[len(triplets) :].any(), "beside a number there is no second entity"
