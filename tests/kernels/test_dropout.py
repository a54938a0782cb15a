"""Both ways to drop: by a hash, as on GPUs, which runs on any device, and by random bits, as on a CPU."""

import pytest
import torch

from hynt.kernels.dropout import Dropout, dropped_by_bits, kept

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


@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.4, 0.7])
@pytest.mark.parametrize("shape", [(300, 1000), (299, 1001)])  # the second is no multiple of four
def test_random_bits_drop_a_share_of_rate_anywhere(rate, shape):
    torch.manual_seed(0)
    found = dropped_by_bits(torch.ones(shape), rate)
    is_kept = (found > 0).float()
    five_deviations = 5 * (rate * (1 - rate)) ** 0.5
    assert found.shape == shape
    assert found.max().item() == pytest.approx(1 / (1 - rate), rel=1e-4)
    assert abs(is_kept.mean() - (1 - rate)) < five_deviations / is_kept.numel() ** 0.5
    for place in range(4):  # the four that share a draw
        share = is_kept.flatten()[place::4].mean()
        assert abs(share - (1 - rate)) < five_deviations / (is_kept.numel() / 4) ** 0.5


def test_numbers_that_share_a_draw_are_dropped_independently():
    torch.manual_seed(1)
    is_kept = (dropped_by_bits(torch.ones(100_000, 4), 0.5) > 0).float()
    assert (torch.corrcoef(is_kept.t()) - torch.eye(4)).abs().max() < 5 / 100_000**0.5


def test_random_bits_come_from_the_seed_and_the_way_back_drops_the_same():
    x = torch.randn(50, 33, requires_grad=True)
    found = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        found.append(Dropout(0.3, 1, x.device)(x))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    (gradient,) = torch.autograd.grad(found[0].sum(), x)
    assert torch.equal(gradient == 0, found[0] == 0)
    torch.testing.assert_close(gradient * x, found[0])


def test_half_precision_stays_half():
    x = torch.ones(1000, dtype=torch.bfloat16)
    assert dropped_by_bits(x, 0.5).dtype == torch.bfloat16
