"""Captured steps against plain ones, on a GPU."""

from __future__ import annotations

import pytest
import torch

from tests.training.gpu_checks import CHECKS


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_on_gpu(check):
    check()
