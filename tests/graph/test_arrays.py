"""Arrays that columns are made of: where rows begin anew, and a few that stand for many."""

from __future__ import annotations

import numpy as np
import pytest

from hynt.graph.vocabulary import begins, offsets_of, spaced


def test_rows_that_differ_from_the_one_before_begin_anew():
    one, other = np.array([1, 1, 1, 2, 2]), np.array([0.5, 0.5, 0.7, 0.7, 0.7])
    assert begins(one).tolist() == [True, False, False, True, False]
    assert begins(one, other).tolist() == [True, False, True, True, False]
    assert begins(np.zeros(0)).tolist() == []
    assert begins(*np.array([[1, 2], [1, 2], [1, 3]]).T).tolist() == [True, False, True]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6, 7, 1000])
def test_a_few_values_stand_for_many(count):
    values = np.arange(count)
    found = spaced(values, 6).tolist()
    assert len(found) == len(set(found)) == min(count, 6)
    assert found == sorted(found)
    assert found[:1] == values[:1].tolist()
    assert found[-1:] == values[-1:].tolist()


def test_parts_lie_end_to_end():
    assert offsets_of(np.array([2, 0, 3], dtype=np.int32)).tolist() == [0, 2, 2, 5]
    assert offsets_of(np.zeros(0, dtype=np.int64)).tolist() == [0]
    assert offsets_of(np.array([2**31 - 1, 1], dtype=np.int32))[-1] == 2**31, "sums do not wrap around"
