"""The dropout of GPUs, whose choice is a hash: it runs on any device, so its statistics are held here."""

import pytest
import torch

from hynt.models.layers.dropout import Dropout, kept

SHAPE = (300, 1000)


def choice(first, second, rate, shape=SHAPE):
    keys = torch.tensor([first, second], dtype=torch.int32)
    return kept(torch.empty(shape), keys[0], keys[1], rate)


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4, 0.7])
def test_a_share_of_rate_is_dropped_in_every_part(rate):
    found = choice(12345, -987654321, rate).float()
    five_deviations = 5 * (rate * (1 - rate)) ** 0.5
    assert abs(found.mean() - (1 - rate)) < five_deviations / found.numel() ** 0.5
    assert ((found.mean(0) - (1 - rate)).abs() < five_deviations / SHAPE[0] ** 0.5).all()
    assert ((found.mean(1) - (1 - rate)).abs() < five_deviations / SHAPE[1] ** 0.5).all()


@pytest.mark.parametrize(
    "other", [(12346, 778), (12345, 778), (12345 + 1000, 776), (-12345, 777), (12345, -777), (777, 12345)]
)
def test_other_keys_choose_independently(other):
    one, two = choice(12345, 777, 0.5), choice(*other, 0.5)
    assert abs((one == two).float().mean() - 0.5) < 5 * 0.5 / one.numel() ** 0.5
    # Nor is one choice the other, moved by a few places.
    for move in (1, 1000, 1001):
        same = one.flatten()[move:] == two.flatten()[:-move]
        assert abs(same.float().mean() - 0.5) < 5 * 0.5 / one.numel() ** 0.5


def test_neighbours_are_independent():
    found = choice(1, 2, 0.5).flatten()
    for distance in (1, 2, 3, 4, 8, 16, 32, 64, 256, 1000, 1024):
        same = found[distance:] == found[:-distance]
        assert abs(same.float().mean() - 0.5) < 5 * 0.5 / len(same) ** 0.5, distance


def test_what_is_kept_grows_so_that_the_mean_stays():
    dropout = Dropout(0.25, 2, torch.device("cpu"))
    dropout._keys = torch.tensor([[3, 4], [5, 6]], dtype=torch.int32)  # as on a GPU
    x = torch.ones(200, 500, requires_grad=True)
    once, twice = dropout(x), dropout(x)
    assert once.unique().tolist() == pytest.approx([0, 4 / 3])
    assert not torch.equal(once, twice)
    assert abs(once.mean() - 1) < 0.01
    once.sum().backward()
    assert torch.equal(x.grad, once.detach())


def test_no_rate_changes_nothing():
    x = torch.randn(4, 4)
    assert torch.equal(Dropout(0.0, 1, x.device)(x), x)
