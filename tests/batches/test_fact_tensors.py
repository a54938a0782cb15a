"""Tables to tensors and back, and the ids of literals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hynt.batches.fact_tensors import FactTensors, distinct_literals
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import DataError
from tests.batches.random_graphs import ENTITIES, VOCABULARY, random_facts, random_table


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 99))
def test_to_tensors_and_back_is_identity(lengths, seed):
    table = random_table(lengths, seed)
    facts = FactTensors.from_table(table, VOCABULARY, NumberScaling.fit([table], VOCABULARY))
    assert len(facts) == len(table)
    assert facts.to_table() == table


def test_numbers_are_scaled_and_entities_are_not_numbers():
    table = random_table([2] * 50)
    scaling = NumberScaling.fit([table], VOCABULARY)
    facts = FactTensors.from_table(table, VOCABULARY, scaling)
    flags = facts.tail_is_number.numpy()
    np.testing.assert_array_equal(flags, VOCABULARY.relation_is_number[table.relation])
    expected = scaling.scale(table.relation[flags], table.tail_number[flags]).astype(np.float32)
    np.testing.assert_array_equal(facts.tail_number.numpy()[flags], expected)
    assert (facts.tail_number[~facts.tail_is_number] == 0).all()
    assert (facts.tail_entity[facts.tail_is_number] == ENTITIES).all()


def test_each_literal_gets_its_own_id_and_unknown_ones_read_as_hidden():
    table = random_table([1, 0, 3] * 20)
    literals = distinct_literals(table)
    assert len(set(literals.to_pylist())) == len(literals)
    known = literals[: len(literals) // 2]
    facts = FactTensors.from_table(table, VOCABULARY, NumberScaling.fit([table], VOCABULARY), literals=known)
    assert facts.sizes.literals == len(known)
    ids = facts.tail_entity[facts.tail_is_number].tolist()
    written = [text for text in table.tail_literal.to_pylist() if text is not None]
    place = {text: ENTITIES + 1 + index for index, text in enumerate(known.to_pylist())}
    assert ids == [place.get(text, ENTITIES) for text in written]
    assert facts.to_table() == table


def test_a_value_its_scale_cannot_take_is_refused():
    table = random_table([0] * 40)
    scaling = NumberScaling.fit([table], VOCABULARY)
    row = int(np.flatnonzero(VOCABULARY.relation_is_number[table.relation])[0])
    table.tail_number[row] = 1e300
    name = VOCABULARY.relations[table.relation[row]].name
    with pytest.raises(DataError, match=rf"the relation '{name}' has the value 1e\+300, which its scale cannot take"):
        FactTensors.from_table(table, VOCABULARY, scaling)


def test_qualifier_counts_and_relation_kinds():
    facts = random_facts([0, 3, 1])
    assert facts.qualifier_counts().tolist() == [0, 3, 1]
    assert facts.qualifier_total == 4
    assert facts.relation_is_number.tolist() == [*VOCABULARY.relation_is_number.tolist(), False]
    assert torch.equal(facts.to("cpu").head, facts.head)
