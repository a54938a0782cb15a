"""Small graphs of triplets and numbers, and ways to ask and train the models that know nothing else."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hynt.batches.buckets import layout_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import mask
from hynt.batches.number_scaling import NumberScaling
from hynt.batches.questions import without_qualifiers
from hynt.formats.from_python import graph_from_facts
from hynt.graph.fact_table import HEAD, TAIL
from hynt.models.contract import Candidates, Entities, ScaledNumber
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.optimisation import Optimisation
from hynt.training.process import phases_for
from hynt.training.step import EagerStep
from tests.training.small_graph import small_graph, tiny_settings

CPU = torch.device("cpu")


def facts_from(facts: list[tuple]) -> FactTensors:
    graph = graph_from_facts({"train": facts}, name="triples")
    table = graph.split("train")
    return FactTensors.from_table(table, graph.vocabulary, NumberScaling.fit([table], graph.vocabulary))


def tiny_facts() -> FactTensors:
    """The sizes of the parameter counts: 10 entities, 4 relations, 3 of which are attributes."""
    facts = [(f"e{i}", "likes", f"e{(i + 1) % 10}") for i in range(10)]
    facts += [("e0", "likes", "e5"), ("e2", "likes", "e9")]
    facts += [("e0", "age", 3), ("e1", "age", 9), ("e1", "size", 1), ("e2", "size", 4), ("e3", "mass", 2)]
    facts += [("e1", "mass", 7), ("e3", "age", 5), ("e4", "mass", 3)]
    return facts_from(facts)


def trainable_count(model: nn.Module, *without: str) -> int:
    return sum(p.numel() for name, p in model.named_parameters() if not name.startswith(without or ("\0",)))


def ask(model: nn.Module, facts: FactTensors, position: int, candidates: Candidates | None = None) -> Tensor:
    """What the model says of the head or the tail of every fact; numbers where the tails are."""
    layout = layout_of([(len(facts), 0)])
    rows = torch.arange(len(facts))
    batch, _ = mask(without_qualifiers(facts), rows, torch.full_like(rows, position), layout)
    with torch.no_grad():
        return model.score(model.read(batch), Entities() if candidates is None else candidates)


def heads(model: nn.Module, facts: FactTensors) -> Tensor:
    return ask(model, facts, HEAD)


def tails(model: nn.Module, facts: FactTensors) -> Tensor:
    return ask(model, facts, TAIL)


def numbers(model: nn.Module, facts: FactTensors) -> Tensor:
    return ask(model, facts, TAIL, ScaledNumber())


def only(facts: FactTensors, *, numeric: bool) -> FactTensors:
    """The facts whose tail is a number, or is not."""
    chosen = facts.tail_is_number if numeric else ~facts.tail_is_number
    from dataclasses import replace

    names = ("head", "relation", "tail_entity", "tail_value", "tail_number", "tail_is_number")
    plain = without_qualifiers(facts)
    columns = {name: getattr(plain, name)[chosen] for name in names}
    return replace(plain, **columns, offsets=torch.zeros(int(chosen.sum()) + 1, dtype=torch.int64))


def first_losses(model_name: str, steps: int = 5, **model_settings: object) -> list[float]:
    """The mean loss of each of the first steps on the small graph, summed over its parts."""
    settings = tiny_settings(
        model_name,
        batch_size=16,
        optimiser={"learning_rate": 0.01},
        schedule={"epochs": 5, "period": 5},
        losses={"smoothing": 0.1},
        model={"dimension": 8, **model_settings},
    )
    graph = small_graph()
    data = training_data(graph, settings, fit_scaling(graph, settings), CPU)
    model = new_model(settings, data, CPU).train()
    phase = phases_for(model, data, settings)[0]
    optimisation = Optimisation(phase.parameters, settings.optimiser, CPU, phase.second)
    runner, epoch, found = EagerStep(model, phase.stream, optimisation, CPU, bf16=False), phase.stream.epoch(0, 0), []
    for step in range(steps):
        runner.tally.zero_()
        runner.run(epoch.items(step % len(epoch)), seed=step)
        sums, counts = runner.tally
        found.append(float((sums / counts.clamp(min=1)).sum()))
    return found
