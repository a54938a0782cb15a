"""`hynt-inductive` on a GPU: kernels, captured steps, resuming, and that nothing leaks."""

from __future__ import annotations

import pytest
import torch

from tests.models.inductive_gpu_checks import CHECKS


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_gpu(check):
    check()
