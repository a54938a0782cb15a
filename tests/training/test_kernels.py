"""The Triton kernels, run by Triton's interpreter on a CPU against the same thing written out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hynt.models.layers.attention import attend_by_product
from hynt.models.layers.attention_kernel import attend_short
from hynt.models.layers.dropout import Dropout, kept
from hynt.models.layers.dropout_kernel import HashedDropout
from hynt.training import optimisation as optimisation_file
from hynt.training.losses import smoothed_cross_entropy
from hynt.training.optimisation import Optimisation
from hynt.training.settings import Optimiser
from hynt.training.whole_softmax import whole_cross_entropy

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are compiled here; make test-gpu holds them")
CPU = torch.device("cpu")
KEYS = torch.tensor([123456, -987654321], dtype=torch.int32)


def gradients_agree(one, other, inputs, outer):
    torch.testing.assert_close(one, other)
    both = (torch.autograd.grad(result, inputs, outer, retain_graph=True) for result in (one, other))
    for mine, theirs in zip(*both, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("entities", "smoothing"), [(37, 0.3), (8192, 0.0), (20_003, 0.7)])
def test_losses_and_gradients_of_all_entities_are_those_of_plain_scores(entities, smoothing):
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(shape, requires_grad=True) for shape in ((5, 8), (entities, 8), (entities,)))
    answer = torch.tensor([entities - 1, 0, 3, 3, 7])
    outer = torch.tensor([0.5, 2.0, 1.0, 0.1, 0.0])
    plain = smoothed_cross_entropy(nn.functional.linear(x, weight, bias), answer, smoothing)
    gradients_agree(whole_cross_entropy(x, weight, bias, answer, smoothing), plain, (x, weight, bias), outer)


def test_the_loss_of_all_entities_is_told_to_the_compiler_rightly():
    x, weight, bias = (torch.randn(shape, requires_grad=True) for shape in ((3, 8), (21, 8), (21,)))
    torch.library.opcheck(torch.ops.hynt.whole_cross_entropy, (x, weight, bias, torch.tensor([0, 20, 5]), 0.2))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("rows", "queries", "keys", "heads", "width"),
    [(5, 4, 4, 2, 8), (3, 1, 4, 3, 12), (7, 3, 3, 2, 8), (2, 9, 9, 1, 16), (300, 1, 2, 1, 4)],
)
def test_short_attention_is_attention(rows, queries, keys, heads, width, masked):
    torch.manual_seed(0)
    joint = torch.randn(rows * keys, 3 * heads * width, requires_grad=True)
    query, key, value = (part.reshape(rows, keys, heads, width) for part in joint.chunk(3, -1))
    query = query[:, -queries:]
    present = torch.rand(rows, keys) < 0.6 if masked else None
    if present is not None:
        present[:, 0] = True
    one = attend_short(query, key, value, present, None, 0.0)
    other = attend_by_product(query, key, value, present, Dropout(0.0, 1, CPU))
    gradients_agree(one, other, (joint,), torch.randn(one.shape))


def weights_of_even_attention(rate, rows=400):
    """(rows, 4, 4, 4) attention of each query to each key and head, when all scores are equal."""
    nothing, value = torch.zeros(rows, 4, 4, 4), torch.eye(4).expand(rows, 4, 4, 4).transpose(1, 2)
    return attend_short(nothing, nothing, value, None, KEYS, rate)


def test_short_attention_drops_a_share_and_lets_the_rest_grow():
    weights = weights_of_even_attention(0.25)
    assert weights.unique().tolist() == pytest.approx([0.0, 1 / 3])
    share = (weights > 0).float()
    for axis in range(4):
        rest = tuple(one for one in range(4) if one != axis)
        count = share.numel() / share.shape[axis]
        assert ((share.mean(rest) - 0.75).abs() < 5 * (0.25 * 0.75 / count) ** 0.5).all(), axis


def test_the_way_back_drops_what_the_way_there_dropped():
    torch.manual_seed(0)
    parts = [torch.randn(3, 4, 2, 8) for _ in range(3)]
    outer = torch.randn(3, 4, 2, 8)

    def total(*given):
        return (attend_short(*given, None, KEYS, 0.3) * outer).sum()

    leaves = [part.requires_grad_() for part in parts]
    for index, slope in enumerate(torch.autograd.grad(total(*leaves), leaves)):
        way = torch.randn(3, 4, 2, 8)
        up, down = ([p.detach() + (s * 1e-2 * way if i == index else 0) for i, p in enumerate(parts)] for s in (1, -1))
        measured = (total(*up) - total(*down)) / 2e-2
        torch.testing.assert_close((slope * way).sum(), measured, rtol=1e-2, atol=1e-2)


def test_short_attention_is_told_to_the_compiler_rightly():
    parts = [torch.randn(3, 4, 2, 8, requires_grad=True) for _ in range(3)]
    torch.library.opcheck(torch.ops.hynt.attend_short, (*parts, None, KEYS, 0.3))


@pytest.mark.parametrize("count", [7, 5000])
def test_dropout_by_the_kernel_keeps_the_same_numbers(count):
    x = torch.randn(count, requires_grad=True)
    found = HashedDropout.apply(x, KEYS, 0.3)
    expected = torch.where(kept(x, KEYS[0], KEYS[1], 0.3), x * (1 / 0.7), 0.0)
    gradients_agree(found, expected, (x,), torch.randn(count))


def test_swept_parameters_move_as_fused_ones(monkeypatch):
    monkeypatch.setattr(optimisation_file, "LARGE", 3000)
    shapes = ((60, 60), (7,), (3001,), (), (1025,), (2, 3))
    both = []
    for swept in (True, False):
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(shape)) for shape in shapes]
        optimisation = Optimisation(parameters, Optimiser(learning_rate=0.01, clip=0.1), CPU, sweeps=swept)
        for step in range(6):
            for index, parameter in enumerate(parameters):
                parameter.grad = None if index in (3, 5) and step == 2 else torch.randn(parameter.shape)
            if step == 5:
                parameters[1].grad[0] = float("nan")
            optimisation.update(torch.tensor(1.0))
        assert [int(step) for step in optimisation.steps] == [5, 5, 5, 4, 5, 4]
        assert bool(optimisation.failed)
        both.append([*(one.detach() for one in parameters), *optimisation.means, *optimisation.squares])
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
