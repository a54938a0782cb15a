"""Randomness as a function of what it is for: (seed, epoch, step, purpose). A resumed run has nothing to restore."""

from __future__ import annotations

from hashlib import blake2b

import torch


def derived_seed(seed: int, *purpose: int | str) -> int:
    """A 63-bit seed for one purpose, say `derived_seed(seed, epoch, "masking")`; different purposes are independent."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little") >> 1


def generator_for(seed: int, *purpose: int | str) -> torch.Generator:
    """A CPU generator for one purpose."""
    generator = torch.Generator()
    generator.manual_seed(derived_seed(seed, *purpose))
    return generator
