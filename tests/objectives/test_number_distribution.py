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
    torch.testing.assert_close(made.density().sum(1) * bins.width, torch.ones(2))
    with pytest.raises(ValueError, match=r"between 0 and 1, but 1\.5"):
        made.quantile(1.5)


def test_quantiles_rise_with_the_share():
    made = NumberDistribution.of(Bins(101, 0.05), torch.randn(50, 101))
    found = torch.stack([made.quantile(share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)])
    assert (found.diff(dim=0) >= 0).all()
