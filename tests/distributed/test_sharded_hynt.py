"""HyNT with sharded tables trains as HyNT with whole ones: the same losses, step by step, and the same scores after."""

from __future__ import annotations

import torch
from torch.distributed.device_mesh import init_device_mesh

from hynt.batches.masked_batch import mask
from hynt.distributed.sharded_table import ShardedHynt, ShardedSampler, TableUpdates
from hynt.models.contract import EntityRange
from hynt.models.hynt import Hynt
from hynt.objectives.masked_facts import MaskedFacts
from hynt.objectives.sampled_softmax import affine_loss
from hynt.objectives.streams import trainable
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.optimisation import Optimisation
from tests.distributed.processes import CPU, together
from tests.distributed.test_sharded_table import rowwise_adagrad
from tests.training.small_graph import TINY, small_graph, tiny_settings

WORLD, STEPS, RATE = 2, 6, 0.05
TABLES = {"entity": "read_table", "entity_output": "output", "entity_output_bias": "output_bias"}
SETTINGS = tiny_settings(
    model={**TINY["model"], "dropout": 0.0}, losses={"smoothing": 0.1, "softmax": "sampled", "negatives": 24}
)
GRAPH = small_graph(people=40)
DATA = training_data(GRAPH, SETTINGS, fit_scaling(GRAPH, SETTINGS), CPU)
ENTITIES = DATA.facts.sizes.entities


def stream() -> MaskedFacts:
    return MaskedFacts(DATA.facts, 16, SETTINGS.masking, SETTINGS.losses, affine_loss)


def whole_model(like: ShardedHynt) -> Hynt:
    """A HyNT with all rows and the same weights."""
    model = Hynt(DATA.facts.sizes, SETTINGS.model)
    rest = {name: value for name, value in like.state_dict().items() if name not in TABLES}
    model.load_state_dict(rest, strict=False)
    with torch.no_grad():
        model.entity.copy_(torch.cat([like.read_table.whole(), like.entity.detach()]))
        model.entity_output.copy_(like.output.whole())
        model.entity_output_bias.copy_(like.output_bias.whole().squeeze(1))
    return model


def losses_of_whole(model: Hynt) -> list[float]:
    """The reference, in one process: the shares of each step one after the other, tables by row-wise Adagrad."""
    made = stream()
    rest = [value for name, value in model.named_parameters() if name not in TABLES]
    hidden = torch.nn.Parameter(model.entity.detach()[ENTITIES:].clone())  # this row learns by Adam, as all the rest
    optimisation = Optimisation([hidden, *rest], SETTINGS.optimiser, CPU)
    squares = {name: torch.zeros(ENTITIES) for name in TABLES}
    touched: dict[str, list[torch.Tensor]] = {name: [] for name in TABLES}
    rows_of, draw = model.entity_rows, made.entity_loss.draw
    model.entity_rows = lambda ids: (touched["entity"].append(ids), rows_of(ids))[1]

    def drawn(answer, weight):
        found = draw(answer, weight)
        for name in ("entity_output", "entity_output_bias"):
            touched[name].append(torch.cat([found.ids.flatten(), answer]))
        return found

    object.__setattr__(made.entity_loss, "draw", drawn)
    found = []
    for index in range(STEPS):
        optimisation.forget_gradients()
        model.zero_grad()
        total = torch.zeros(())
        for rank in range(WORLD):
            items = made.share(rank, WORLD).epoch(0, 0).items(index)
            torch.manual_seed(100 * index + rank)
            loss = made.loss_for(items.shape)(model, items.tensors).total
            loss.backward()
            total = total + loss.detach()
        hidden.grad = model.entity.grad[ENTITIES:].clone()
        optimisation.update(total)
        with torch.no_grad():
            for name in TABLES:
                table = getattr(model, name)
                wide = (lambda x: x.unsqueeze(1)) if table.dim() == 1 else (lambda x: x)
                ids = torch.cat(touched[name])
                ids = torch.where(ids == ENTITIES, 0, ids)  # a masked entity fetches row 0, with a gradient of 0
                rowwise_adagrad(wide(table.data), wide(table.grad), squares[name], ids, RATE)
                touched[name].clear()
            model.entity[ENTITIES:] = hidden.detach()
        found.append(float(total))
    return found


def trained(workers, _path) -> None:
    torch.manual_seed(5)
    made = stream()
    model = ShardedHynt(DATA.facts.sizes, SETTINGS.model, init_device_mesh("cpu", (workers.world,)), seed=3)
    assert model.entity.shape[0] == 1
    whole = whole_model(model)
    expected = losses_of_whole(whole)
    made.entity_loss = ShardedSampler(made.entity_loss)
    optimisation = Optimisation(trainable(model), SETTINGS.optimiser, CPU)
    optimisation.exchange = workers.exchange
    updates = TableUpdates(model)
    shares = made.share(workers.rank, workers.world).epoch(0, 0)
    found = []
    for index in range(STEPS):
        items = shares.items(index)
        optimisation.forget_gradients()
        torch.manual_seed(100 * index + workers.rank)
        loss = made.loss_for(items.shape)(model, items.tensors).total
        loss.backward()
        optimisation.update(loss)
        updates.step(RATE)
        found.append(float(workers.gathered(loss.detach())))
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-4, atol=1e-5)
    assert found[-1] < found[0]
    step = made.epoch(0, 0).step(0)
    batch, _ = mask(DATA.facts, step.rows, step.asked, step.shape.layout)
    with torch.no_grad():
        scores = model.score(model.read(batch), EntityRange(3, 30))
        same = whole.score(whole.read(batch), EntityRange(3, 30))
    torch.testing.assert_close(scores, same, rtol=1e-3, atol=1e-4)


def test_spread_tables_train_as_whole_ones(tmp_path):
    assert together(WORLD, trained, tmp_path) == [0] * WORLD
