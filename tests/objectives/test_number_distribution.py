"""Numbers as they come out: distributions over bins."""

from __future__ import annotations

import math

import pytest
import torch

from hynt.objectives.number_distribution import Bins, NumberDistribution


def test_targets_are_gaussians_cut_into_bins():
    bins = Bins(11, margin=0.1)
    target = bins.target(torch.tensor([0.4, -5.0, 9.0]))
    torch.testing.assert_close(target.sum(1), torch.ones(3))
    assert target[1, 0] == 1
    assert target[2, -1] == 1

    def normal(x):
        return 0.5 * (1 + math.erf((x - 0.4) / (0.75 * bins.width * math.sqrt(2))))

    edges = bins.edges(torch.device("cpu")).tolist()
    assert float(target[0, 4]) == pytest.approx(normal(edges[5]) - normal(edges[4]), abs=1e-5)


def test_mean_median_and_quantiles_of_a_known_distribution():
    bins = Bins(5)  # centres 0, .25, .5, .75, 1
    made = NumberDistribution(bins, torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]]))
    assert made.mean().tolist() == pytest.approx([0.5, 0.5])
    assert made.quantile(0.25).tolist() == pytest.approx([0.25, 0.4375])
    assert made.quantile(0.75).tolist() == pytest.approx([0.75, 0.5625])
    assert float(made.median()[1]) == pytest.approx(0.5)
    torch.testing.assert_close(made.probability.sum(1), torch.ones(2))
    with pytest.raises(ValueError, match=r"between 0 and 1, but 1\.5"):
        made.quantile(1.5)


def test_quantiles_rise_with_the_share():
    made = NumberDistribution.of(Bins(101, 0.05), torch.randn(50, 101))
    found = torch.stack([made.quantile(share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)])
    assert (found.diff(dim=0) >= 0).all()


def test_the_score_of_a_belief_equals_a_fine_sum():
    """The integral of the squared distance between the belief and the truth, by a million small steps."""
    bins = Bins(11, margin=0.1)
    torch.manual_seed(0)
    belief = NumberDistribution.of(bins, torch.randn(5, 11) * 2)
    value = torch.tensor([0.33, 0.0, 1.05, -0.7, 1.9])  # inside, on a centre, beyond [0, 1], outside on both sides
    line = torch.linspace(-1, 3, 1_000_001, dtype=torch.float64)
    edges = bins.edges(value.device).double()
    for row, mine in enumerate(belief.crps(value)):
        cumulative = torch.cat([torch.zeros(1), belief.probability[row].cumsum(0)]).double()
        cumulative = cumulative / cumulative[-1]
        at = ((line - edges[0]) / (edges[1] - edges[0])).clamp(0, 11)
        low = at.floor().clamp(max=10).long()
        believed = cumulative[low] + (at - low) * (cumulative[low + 1] - cumulative[low])
        expected = float(((believed - (line >= value[row]).double()) ** 2).mean() * 4)
        assert float(mine) == pytest.approx(expected, abs=2e-5)


def test_a_belief_in_one_bin_is_scored_by_its_distance():
    bins = Bins(101)
    sure = NumberDistribution(bins, torch.nn.functional.one_hot(torch.tensor([50, 50]), 101).float())
    assert sure.crps(torch.tensor([0.9, 0.2])).tolist() == pytest.approx([0.4, 0.3], abs=bins.width / 2)
    stretched = bins.edges(torch.device("cpu")).unsqueeze(0) * 10
    assert float(sure.crps(torch.tensor([9.0, 2.0]), stretched.expand(2, -1))[0]) == pytest.approx(4.0, abs=0.05)


def test_a_distribution_moves_as_far_as_told_and_stays_within_its_bins():
    belief = NumberDistribution(Bins(5), torch.tensor([[0.0, 0.5, 0.5, 0.0, 0.0]] * 4))
    moved = belief.moved(torch.tensor([0.25, -0.125, 0.0, 9.0]))
    expected = [[0, 0, 0.5, 0.5, 0], [0.25, 0.5, 0.25, 0, 0], [0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 1]]
    torch.testing.assert_close(moved.probability, torch.tensor(expected, dtype=torch.float32))
    torch.testing.assert_close((moved.mean() - belief.mean())[:3], torch.tensor([0.25, -0.125, 0.0]))
