"""Numbers as `hynt-inductive` reads them."""

from __future__ import annotations

import math

import pytest
import torch

from hynt.models.layers.message_passing import FEATURES, PLAIN_FEATURES, NumberFeatures, plain_features

RELATION = torch.tensor([0, 0, 0, 0, 2, 2])
VALUE = torch.tensor([0.1, 0.5, 0.5, 0.9, 0.2, 0.4])
MADE = NumberFeatures(3, RELATION, VALUE)


def rank(relation, value):
    return float(MADE(torch.tensor([relation]), torch.tensor([value]))[0, 2])


@pytest.mark.parametrize(
    ("relation", "value", "expected"),
    [
        (0, 0.5, 0.5),
        (0, 0.1, 0.125),
        (0, 0.0, 0.0),
        (0, 0.95, 1.0),
        (2, 0.3, 0.5),
        (2, 7.0, 1.0),
        (2, -3.0, 0.0),
        (1, 0.5, 0.0),
    ],
)
def test_ranks_are_in_the_middle_of_equal_values(relation, value, expected):
    assert rank(relation, value) == pytest.approx(expected)


def test_relations_without_values_are_known_as_such():
    assert MADE.known(torch.arange(3)).tolist() == [True, False, True]


def test_features_are_the_spec():
    value = 0.37
    found = MADE(torch.tensor([0]), torch.tensor([value]))[0]
    assert found.shape == (FEATURES,) == (71,)
    middle = (1 + 1) / (2 * 4)
    logarithm = math.log10(value) / 6 + 1

    def codes(x, count):
        return [min(max(count * x - k, 0.0), 1.0) for k in range(count)]

    waves = [f(2 * math.pi * 2**k * value) for k in range(6) for f in (math.sin, math.cos)]
    expected = [value, logarithm, middle, *codes(value, 32), *codes(middle, 16), *codes(logarithm, 8), *waves]
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-5)


def test_plain_features_tell_numbers_apart_by_size_sign_and_digits_and_are_never_far_from_one():
    numbers = [0.0, 1e-9, 0.5, -0.5, 3.0, 30.0, 1999.0, 2004.0, 2004.25, 52.5, -52.5, 7e9, 7.000001e9, 1e30, -1e300]
    found = plain_features(torch.tensor(numbers, dtype=torch.float64))
    assert found.shape == (len(numbers), PLAIN_FEATURES)
    assert found.dtype == torch.float32
    assert found.abs().max() <= 2
    apart = torch.cdist(found, found) + torch.eye(len(numbers))
    assert apart.min() > 1e-3
    whole = found[:, 3:13].bool().tolist()  # 1,000 times the number, 100 times, …
    assert whole[2] == [True] * 3 + [False] * 7
    assert whole[5] == [True] * 5 + [False] * 5
    assert whole[8] == [True] * 2 + [False] * 8
