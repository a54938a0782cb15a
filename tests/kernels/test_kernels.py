"""The Triton kernels, run by Triton's interpreter on a CPU against the same thing written out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hynt.kernels.attention import attend_tiles
from hynt.kernels.dropout import Dropout, kept
from hynt.kernels.dropout_kernel import HashedDropout
from hynt.kernels.entity_softmax import whole_cross_entropy
from hynt.models.layers import transformer as attention_file
from hynt.models.layers.transformer import TokenGroup, attend_groups
from hynt.objectives.losses import smoothed_cross_entropy
from hynt.runs.settings import Optimiser
from hynt.training import optimisation as optimisation_file
from hynt.training.optimisation import Optimisation

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are compiled here; make test-gpu holds them")
CPU = torch.device("cpu")
KEYS = torch.tensor([123456, -987654321], dtype=torch.int32)


def gradients_agree(one, other, inputs, outer):
    torch.testing.assert_close(one, other)
    both = (
        torch.autograd.grad(result, inputs, outer, retain_graph=True, materialize_grads=True) for result in (one, other)
    )
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


GROUPS = {
    "alone": [(5, 1)],
    "parts": [(40, 4)],
    "mixed": [(70, 1), (30, 3), (3, 9), (1, 32)],
    "with a long one": [(3, 1), (2, 5), (2, 70)],
    "of many lengths": [(3, 1), (2, 2), (2, 3), (1, 4), (2, 5)],
}


@pytest.fixture
def on_gpu(monkeypatch):
    """Lets the interpreter run what only a GPU would choose."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))


def grouped(kinds, width, one_query):
    """Tokens of groups, some missing, and their joint projections."""
    torch.manual_seed(0)
    groups = []
    for size, length in kinds:
        present = torch.rand(size, length) < 0.6
        present[:, 0] = True
        groups.append(TokenGroup(size, length, present if length > 1 else None))
    tokens, rows = sum(group.tokens for group in groups), sum(group.size for group in groups)
    projected = torch.randn(tokens, (2 if one_query else 3) * width, requires_grad=True)
    return groups, projected, torch.randn(rows, width, requires_grad=True) if one_query else None


@pytest.mark.parametrize("one_query", [False, True])
@pytest.mark.parametrize("kinds", GROUPS.values(), ids=GROUPS)
def test_attention_by_tiles_is_attention(kinds, one_query, on_gpu, monkeypatch):
    groups, projected, query = grouped(kinds, 24, one_query)
    inputs = (projected,) if query is None else (projected, query)
    nothing = Dropout(0.0, 1, CPU)
    by_tiles = attend_groups(projected, query, groups, 2, nothing)
    monkeypatch.setattr(attention_file, "HAS_KERNEL", False)
    by_products = attend_groups(projected, query, groups, 2, nothing)
    # What a missing token looks at reaches nothing, but both forms let it look.
    gradients_agree(by_tiles, by_products, inputs, torch.randn(by_tiles.shape))


def even_attention(rate):
    """(400, 4, 4, 4) attention of each query to each key, by row, query, head and key, when all scores are equal."""
    value = torch.eye(4).repeat(400, 1)  # the numbers of a head say which key a value came from
    projected = torch.cat([torch.zeros(1600, 32), value.repeat(1, 4)], 1)
    present = torch.ones(1600, dtype=torch.bool)
    return attend_tiles(projected, None, [400], [4], present, 4, KEYS, rate).view(400, 4, 4, 4)


def test_attention_by_tiles_drops_a_share_and_lets_the_rest_grow():
    weights = even_attention(0.25)
    assert weights.unique().tolist() == pytest.approx([0.0, 1 / 3])
    share = (weights > 0).float()
    for axis in range(4):
        rest = tuple(one for one in range(4) if one != axis)
        count = share.numel() / share.shape[axis]
        assert ((share.mean(rest) - 0.75).abs() < 5 * (0.25 * 0.75 / count) ** 0.5).all(), axis


@pytest.mark.parametrize("one_query", [False, True])
def test_the_way_back_drops_what_the_way_there_dropped(one_query):
    _, projected, query = grouped([(3, 1), (4, 3)], 16, one_query)
    inputs = [projected] if query is None else [projected, query]
    present = torch.ones(len(projected), dtype=torch.bool)

    def total(given, asked=None):
        return (attend_tiles(given, asked, [3, 4], [1, 3], present, 2, KEYS, 0.3) * outer).sum()

    outer = torch.randn(len(projected) if query is None else len(query), 16)
    for index, slope in enumerate(torch.autograd.grad(total(*inputs), inputs)):
        way = torch.randn(slope.shape)
        up, down = ([x.detach() + (s * 1e-2 * way if i == index else 0) for i, x in enumerate(inputs)] for s in (1, -1))
        measured = (total(*up) - total(*down)) / 2e-2
        torch.testing.assert_close((slope * way).sum(), measured, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("one_query", [False, True])
def test_attention_by_tiles_is_told_to_the_compiler_rightly(one_query):
    _, projected, query = grouped([(3, 1), (4, 3)], 16, one_query)
    present = torch.ones(len(projected), dtype=torch.bool)
    torch.library.opcheck(torch.ops.hynt.attend_tiles, (projected, query, [3, 4], [1, 3], present, 2, KEYS, 0.3))


@pytest.mark.parametrize("count", [7, 5000])
def test_dropout_by_the_kernel_keeps_the_same_numbers(count):
    x = torch.randn(count, requires_grad=True)
    found = HashedDropout.apply(x, KEYS, 0.3)
    expected = torch.where(kept(x, KEYS[0], KEYS[1], 0.3), x * (1 / 0.7), 0.0)
    gradients_agree(found, expected, (x,), torch.randn(count))


BY_MUON = {"clip": 0.1, "method": "muon", "matrix_rate": 0.03, "weight_decay": 0.5, "average": 0.8}


@pytest.mark.parametrize("more", [{"clip": 0.1}, {}, BY_MUON], ids=["clipped", "adam", "muon"])
def test_swept_parameters_move_as_fused_ones(more, monkeypatch):
    monkeypatch.setattr(optimisation_file, "LARGE", 3000)
    shapes = ((60, 60), (7,), (3001,), (), (1025,), (2, 3), (16, 8), (8, 24), (8, 8))
    both = []
    for swept in (True, False):
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(shape)) for shape in shapes]
        settings = Optimiser(learning_rate=0.01, **more)
        optimisation = Optimisation(parameters, settings, CPU, matrices=parameters[6:], sweeps=swept)
        for step in range(6):
            for index, parameter in enumerate(parameters):
                parameter.grad = None if index in (3, 5) and step == 2 else torch.randn(parameter.shape)
            if step == 5:
                parameters[1].grad[0] = float("nan")
            optimisation.update(torch.tensor(1.0))
        of_matrices = [0 if "method" in more else 5] * 3
        assert [int(step) for step in optimisation.steps] == [5, 5, 5, 4, 5, 4, *of_matrices]
        assert bool(optimisation.failed)
        both.append([*(one.detach().clone() for one in parameters), *optimisation.tensors().values()])
        with optimisation.answering():
            both[-1] += [one.detach().clone() for one in parameters]
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", ["loss", "table", "small", "square"])
def test_what_is_not_finite_moves_nothing_swept(wrong, monkeypatch):
    monkeypatch.setattr(optimisation_file, "LARGE", 3000)
    torch.manual_seed(0)
    parameters = [nn.Parameter(torch.randn(5000)), nn.Parameter(torch.randn(7))]
    before = [one.detach().clone() for one in parameters]
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape)
    if wrong == "table":
        parameters[0].grad[4999] = float("nan")
    elif wrong == "small":
        parameters[1].grad[3] = -float("inf")
    elif wrong == "square":
        parameters[0].grad[0] = -1e20
    optimisation = Optimisation(parameters, Optimiser(learning_rate=0.01), CPU, sweeps=True)
    optimisation.update(torch.tensor(float("inf") if wrong == "loss" else 1.0))
    assert optimisation.failed == 1.0
    for parameter, was in zip(parameters, before, strict=True):
        assert torch.equal(parameter, was)
    assert [int(step) for step in optimisation.steps] == [0, 0]
