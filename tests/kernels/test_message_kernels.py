"""The Triton kernels of `hynt-inductive`, run by Triton's interpreter on a CPU against their plain twins."""

from __future__ import annotations

import pytest
import torch

from hynt.batches import fact_slots
from hynt.batches.fact_slots import Links, NumberRows
from hynt.batches.message_plan import Received, plan_observed, plan_training
from hynt.kernels import entity_softmax, linear_maps, segment_sums
from hynt.kernels.dropout import Dropout, kept, kept_pairs, limit_and_growth
from hynt.kernels.entity_softmax import EntityQuestions, entity_loss, plain_entity_loss
from hynt.kernels.linear_maps import apply_all, norm_in, stretched
from hynt.kernels.segment_sums import look_up, scaled, sum_up, summed
from hynt.models.hynt_inductive import HyntInductive, HyntInductiveSettings
from hynt.models.layers import message_passing
from hynt.models.layers.message_passing import MessageLayer, NodeAttention, Pairs, linear, norm
from hynt.objectives.streams import PhaseSettings
from tests.batches.random_graphs import mixed_facts

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="kernels are compiled here; inductive_gpu_checks.py holds them"
)
CPU = torch.device("cpu")
KEYS = (torch.tensor([12345, -67890], dtype=torch.int32), torch.tensor([-5, 424242], dtype=torch.int32))


LONGEST = 8
"""Items of a piece, fewer than usual: the interpreter takes its time."""


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch):
    monkeypatch.setattr(fact_slots, "LONGEST", LONGEST)


@pytest.fixture
def by_kernel(monkeypatch):
    """Switches all modules over to their kernels."""

    def switch():
        for module in (entity_softmax, linear_maps, message_passing, segment_sums):
            monkeypatch.setattr(module, "kernels_serve", lambda x, width: True)

    return switch


def rows_of(*counts, nowhere=0):
    """A shuffled list with so many items for each row."""
    torch.manual_seed(0)
    row = torch.repeat_interleave(torch.arange(len(counts) + 1), torch.tensor([*counts, nowhere]))
    return Links.of(row[torch.randperm(len(row))], len(counts))


def agree(one, other, inputs, outer):
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    both = (torch.autograd.grad(x, inputs, outer, retain_graph=True, materialize_grads=True) for x in (one, other))
    for mine, theirs in zip(*both, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=5e-5)


LISTS = {
    "short": rows_of(3, 0, 1, 5, nowhere=2),
    "long": rows_of(2, LONGEST + 1, 0, 3 * LONGEST - 1, LONGEST, nowhere=LONGEST + 3),
    "empty": rows_of(0, 0),
}


@pytest.mark.parametrize("links", LISTS.values(), ids=LISTS)
def test_sums_of_sorted_items(links):
    from hynt.kernels.segment_kernel import summed_by_kernel

    items = torch.randn(len(links.row), 24)
    expected = torch.zeros(links.rows + 1, 24).index_add_(0, links.row.long(), items)[:-1]
    torch.testing.assert_close(summed_by_kernel(items, links), expected)
    torch.testing.assert_close(summed(items, links), expected)


@pytest.mark.parametrize("links", LISTS.values(), ids=LISTS)
def test_items_times_rows(links, by_kernel):
    shapes = (len(links.row), 16), (links.rows, 16), (3, 16)
    items, table, more = (torch.randn(shape, requires_grad=True) for shape in shapes)
    plain, outer = scaled(items, table, links, more), torch.randn(len(links.row) + 3, 16)
    by_kernel()
    agree(scaled(items, table, links, more), plain, [items, table, more], outer)


@pytest.mark.parametrize(
    "counts", [(0,), (1, 0, 3), (70, 8, 9, 0, 0, 17), (8,) * 40, (0,) * 600, (500, *[1] * 300)], ids=str
)
@pytest.mark.parametrize("nowhere", [0, 5, 30])
def test_a_list_is_cut_into_the_same_pieces(counts, nowhere):
    from hynt.batches.piece_kernel import cut_by_kernel

    links = rows_of(*counts, nowhere=nowhere)
    plain = fact_slots.pieces_of(links.offsets, links.rows, len(links.row))
    found = cut_by_kernel(links.offsets, links.rows, len(links.row), LONGEST)
    for one, other in zip(found, plain[:-1], strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_look_ups_and_sums_are_each_others_way_back():
    links = LISTS["long"]
    table = torch.randn(links.rows, 4, dtype=torch.float64, requires_grad=True)
    items = torch.randn(len(links.row), 4, dtype=torch.float64, requires_grad=True)
    belongs = links.row < links.rows
    assert torch.equal(look_up(table, links)[belongs], table[links.row.long()[belongs]])
    outer = torch.where(belongs.unsqueeze(1), torch.randn_like(items), 0.0)
    (slope,) = torch.autograd.grad(look_up(table, links), table, outer)
    torch.testing.assert_close(slope, sum_up(outer, links))
    (slope,) = torch.autograd.grad(sum_up(items, links), items, table.detach())
    torch.testing.assert_close(slope[belongs], table.detach()[links.row.long()[belongs]])
    assert not slope[~belongs].any()


@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("links", LISTS.values(), ids=LISTS)
def test_attention_over_segments(links, tables, by_kernel):
    torch.manual_seed(1)
    d, heads = 16, 4
    sizes = (5, 4)[:tables]
    own = torch.randn(links.rows, 3 * d)
    own[0] *= 30  # logits beyond the clamp
    inputs = [own, torch.randn(len(links.row), 2 * d), *(torch.randn(size, 2 * d) for size in sizes)]
    inputs = [one.requires_grad_() for one in inputs]
    context = Links.of(torch.randint(0, sum(sizes), (len(links.row),)), sum(sizes))

    def outcome():
        attention = NodeAttention(inputs[0], heads, 1)
        attention.receive(inputs[1], tuple(inputs[2:]), Received.of(context, links))
        return attention.outcome()

    plain = outcome()
    by_kernel()
    agree(outcome(), plain, inputs, torch.randn(plain.shape))


class Hashed(Dropout):
    """The dropout of a GPU on a CPU: the plain form then drops what the kernel does."""

    def __init__(self, rate):
        self.rate, self.left = rate, list(KEYS)

    def keys(self):
        return self.left.pop(0)

    def __call__(self, x):
        return torch.where(kept_pairs(*x.shape, self.keys(), self.rate), x * limit_and_growth(self.rate)[1], 0.0)


def layer_and_pairs(plan, facts, d=16):
    layer = MessageLayer(d, 4, 32)
    sizes = plan.sizes
    counts = ((facts.sizes.entities, 3), (sizes.numbers + sizes.bare + 1, 2), (sizes.relation_nodes, 3))
    return layer, [torch.randn(count, width * d, requires_grad=True) for count, width in counts]


@pytest.mark.parametrize(("rate", "read"), [(0.0, "triplets"), (0.3, "facts"), (0.0, "bare numbers")])
def test_messages_of_facts(rate, read, by_kernel):
    torch.manual_seed(2)
    facts = mixed_facts(60)
    rows = torch.arange(12)
    if read == "triplets":
        rows = torch.nonzero(~facts.tail_is_number & (facts.qualifier_counts() == 0)).squeeze(1)[:8]
    plan = plan_observed(facts, NumberRows.of(facts), rows)
    if read == "bare numbers":  # of facts whose relations are asked for
        asked = torch.nonzero(facts.tail_is_number & (facts.qualifier_counts() > 0)).squeeze(1)[:2]
        seen = torch.nonzero(~facts.tail_is_number).squeeze(1)[:3]
        room = [int(facts.qualifier_counts()[one].sum()) for one in (seen, asked)]
        plan, _ = plan_training(facts, NumberRows.of(facts), (seen, rows[:0]), asked, *room, len(asked) + room[1])
        assert plan.value_rows.row.max() >= 3 * plan.sizes.entities + 2 * plan.sizes.numbers
    layer, inputs = layer_and_pairs(plan, facts)
    weights = [
        layer.role_bias,
        *layer.message_in.parameters(),
        *layer.message_out.parameters(),
        layer.to_value.weight,
        layer.to_relation.weight,
    ]

    def found():
        return layer._keys_and_values(Pairs(*inputs), plan, Hashed(rate) if rate else Dropout(0.0, 2, CPU))

    plain = found()
    by_kernel()
    fast = found()
    outer = [torch.randn(one.shape) for one in plain]
    joined = [sum((one * o).sum() for one, o in zip(both, outer, strict=True)) for both in (fast, plain)]
    for one, other in zip(fast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    agree(joined[0] / 100, joined[1] / 100, [*inputs, *weights], torch.tensor(1.0))


def test_what_stands_in_a_slot_is_not_read_for_its_message(by_kernel):
    facts = mixed_facts(60)
    plan = plan_observed(facts, NumberRows.of(facts), torch.arange(8))
    layer, pairs = layer_and_pairs(plan, facts)
    pairs = [one.detach() for one in pairs]
    by_kernel()
    before = layer._keys_and_values(Pairs(*pairs), plan, Dropout(0.0, 2, CPU))[0]
    slot = plan.message_slot.long()
    # A head that stands nowhere else: all but its own messages may read it.
    heads = plan.value_rows.row[slot[plan.message_role == 0]]
    alone = next(int(row) for row in heads.unique() if (plan.value_rows.row == row).sum() == 1)
    pairs[0].view(-1, 16)[alone] += 1e3
    after = layer._keys_and_values(Pairs(*pairs), plan, Dropout(0.0, 2, CPU))[0]
    own = torch.nonzero(plan.value_rows.row[slot] == alone).squeeze(1)
    fact = plan.slot_first[slot] == plan.slot_first[slot[own]]
    assert torch.equal(before[own], after[own])
    assert torch.equal(before[~fact], after[~fact])
    fact[own] = False
    assert not torch.isclose(before[fact], after[fact]).all(1).any()


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_residual_connection_and_norm(rate):
    from hynt.kernels.linear_kernel import AddedAndNormed

    x, added = torch.randn(21, 16, requires_grad=True), torch.randn(21, 16, requires_grad=True)
    keys = KEYS[0] if rate else None
    new, normed = AddedAndNormed.apply(x, added, keys, rate)
    dropped = torch.where(kept(added, *KEYS[0].unbind(), rate), added / (1 - rate), 0.0) if rate else added
    plain = x + dropped
    outer = torch.randn(21, 16), torch.randn(21, 16)
    torch.testing.assert_close(normed, norm(plain), rtol=1e-4, atol=1e-5)
    one, other = new * outer[0] + normed * outer[1], plain * outer[0] + norm(plain) * outer[1]
    agree(one, other, [x, added], torch.ones(21, 16))
    (slope,) = torch.autograd.grad(AddedAndNormed.apply(x, added, keys, rate)[0], x, outer[0])
    assert torch.equal(slope, outer[0])


def test_a_norm_of_its_own(by_kernel):
    x = torch.randn(21, 16, requires_grad=True)
    plain = norm_in(x, torch.float32)
    by_kernel()
    agree(norm_in(x, torch.float32), plain, [x], torch.randn(21, 16))
    assert norm_in(x[:0], torch.float32).shape == (0, 16)
    (slope,) = torch.autograd.grad(norm_in(x.bfloat16(), torch.float32).sum(), x)
    assert slope.dtype == torch.float32


def test_a_layer_norm_after_the_norm(by_kernel):
    x, by = torch.randn(50, 16, requires_grad=True), torch.nn.LayerNorm(16)
    for one in by.parameters():
        torch.nn.init.normal_(one)
    plain, inputs, outer = by(x) / 3, [x, *by.parameters()], torch.randn(50, 16)
    agree(stretched(norm(x), by, 1 / 3), plain, inputs, outer)
    by_kernel()
    agree(stretched(norm(x), by, 1 / 3), plain, inputs, outer)


@pytest.mark.parametrize(("entities", "scores"), [(70, 300), (4100, 2**20)])
def test_the_loss_of_all_entities(entities, scores, by_kernel):
    """Some were not observed, some are other true answers, and one question has more of them than a block."""
    torch.manual_seed(3)
    x, states = (torch.randn(shape, requires_grad=True) for shape in ((9, 8), (entities, 8)))
    seen = torch.rand(entities) > 0.1
    seen[:9] = True
    weight = torch.rand(9)
    weight[4] = 0
    count = torch.tensor([1, 0, 3, 0, 2, 1, 7, 0, min(entities, 600)])
    true = torch.cat([torch.randperm(entities)[:k] for k in count.tolist()])
    asked = EntityQuestions(torch.arange(9), weight, seen, count.cumsum(0) - count, count, true)
    scored = (x @ states.t()).detach() + torch.where(seen, 0.0, -1e4)
    for row, (start, k) in enumerate(zip(asked.start.tolist(), count.tolist(), strict=True)):
        for other in true[start : start + k].tolist():
            if other != row:
                scored[row, other] = -1e4
    expected = (torch.nn.functional.cross_entropy(scored, asked.answer, reduction="none") * weight).sum()
    plain = plain_entity_loss(x, states, asked)
    torch.testing.assert_close(plain.detach(), expected)
    agree(entity_loss(x, states, asked, scores), plain, [x, states], torch.tensor(0.7))
    by_kernel()
    agree(entity_loss(x, states, asked, scores), plain, [x, states], torch.tensor(0.7))


def test_a_whole_step_by_kernels_is_the_plain_one(by_kernel):
    facts = mixed_facts(14)
    torch.manual_seed(4)
    settings = HyntInductiveSettings(dimension=16, layers=1, heads=2, feedforward=16, bins=11)
    model = HyntInductive.build(facts.sizes, facts, settings).eval()
    stream = model.phases(facts, PhaseSettings(batch_size=3, epochs=1))[0].stream
    items = stream.epoch(0, 0).items(0)

    def outcome():
        model.zero_grad()
        found = stream.loss_for(items.shape)(model, items.tensors)
        found.total.backward()
        return [found.total, found.sums, *(one.grad.clone() for one in model.parameters())]

    plain = outcome()
    by_kernel()
    for one, other in zip(outcome(), plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("rows", "width"), [(0, 8), (1, 8), (33, 130), (300, 4)])
def test_sums_of_columns(rows, width):
    from hynt.kernels.linear_kernel import column_sums

    x = torch.randn(rows, width)
    torch.testing.assert_close(column_sums(x), x.sum(0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_one_hash_drops_each_of_two_neighbours_at_the_rate_and_apart(rate):
    found = kept_pairs(4000, 64, KEYS[0], rate).float()
    deviation = (rate * (1 - rate)) ** 0.5
    for axis in (0, 1):
        share = found.mean(axis)
        assert ((share - (1 - rate)).abs() < 5.5 * deviation / found.shape[axis] ** 0.5).all(), axis
    both = ((found[:, ::2] - found.mean()) * (found[:, 1::2] - found.mean())).mean()
    assert abs(float(both)) < 5 * deviation**2 / (found.numel() / 2) ** 0.5
    other = kept_pairs(4000, 64, KEYS[1], rate).float()
    together = float(((found - found.mean()) * (other - other.mean())).mean())
    assert abs(together) < 5 * deviation**2 / found.numel() ** 0.5


@pytest.mark.parametrize("counts", [(300,), (130, 0, 300), (1, 300, 64, 70)])
@pytest.mark.parametrize("width", [16, 144])
def test_gradients_of_several_maps_at_once(counts, width, monkeypatch):
    from hynt.kernels import linear_kernel

    monkeypatch.setattr(linear_kernel, "FEWEST", 1)
    torch.manual_seed(0)
    x = torch.randn(300, width)
    outers = [torch.randn(count, outputs) for count, outputs in zip(counts, (160, 16, 128, 48), strict=False)]
    weights, biases = linear_kernel.gradients_of_maps([x[: len(one)] for one in outers], outers)
    for outer, weight, bias in zip(outers, weights, biases, strict=True):
        torch.testing.assert_close(weight, outer.t() @ x[: len(outer)], rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(bias, outer.sum(0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("together", [False, True])
def test_several_maps_of_one_input(together, by_kernel, monkeypatch):
    monkeypatch.setattr(linear_maps, "go_together", lambda x, outers: together)
    layers, x = [linear(16, 8), linear(16, 24, bias=False), linear(16, 4)], torch.randn(50, 16, requires_grad=True)
    inputs = [x, *(one for layer in layers for one in layer.parameters())]
    outer = [torch.randn(count, layer.out_features) for count, layer in zip((30, 30, 50), layers, strict=True)]

    def total():
        return sum((one * o).sum() for one, o in zip(apply_all(layers, x, [30, 30, 50]), outer, strict=True))

    plain = total()
    by_kernel()
    agree(total() / 10, plain / 10, inputs, torch.tensor(1.0))
