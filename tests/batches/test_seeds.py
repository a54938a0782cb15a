"""Randomness by purpose."""

from __future__ import annotations

from hynt.batches.epoch_plan import derived_seed


def test_seeds_for_different_purposes_differ_and_are_stable():
    made = {derived_seed(seed, epoch, purpose) for seed in range(9) for epoch in range(9) for purpose in ("a", "b")}
    assert len(made) == 162
    assert all(0 <= seed < 2**63 for seed in made)
    assert derived_seed(1, 2, "masking") == derived_seed(1, 2, "masking")
