"""What must hold of `hynt-inductive` on a GPU, as plain functions: the tests marked `gpu` call them, and they run on a
machine without pytest.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from hynt.batches import fact_slots
from hynt.batches.fact_slots import Links, pieces_of
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.config import to_mapping
from hynt.evaluation.evaluator import Evaluator
from hynt.interruption import Stopper
from hynt.kernels import entity_softmax, linear_maps, segment_sums
from hynt.models.hynt_inductive import HyntInductive, HyntInductiveSettings
from hynt.models.layers import message_passing
from hynt.objectives.observed_and_targets import ObservedAndTargets
from hynt.objectives.streams import PhaseSettings
from hynt.runs.checkpoint import Interrupted, Watcher
from hynt.runs.run_folder import RunFolder
from hynt.runs.settings import Optimiser
from hynt.training.muon import layer_matrices
from hynt.training.optimisation import Optimisation
from hynt.training.run import start, train
from hynt.training.step import CapturedStep, EagerStep, tell_of_waiting
from tests.batches.random_graphs import mixed_facts
from tests.models.question_batches import every_question, exchanged
from tests.training.small_graph import small_graph, tiny_settings

GPU = torch.device("cuda")
MUON = Optimiser(learning_rate=1e-3, clip=1.0, method="muon", weight_decay=0.1, average=0.9)
SMALL = HyntInductiveSettings(
    dimension=64, layers=2, heads=4, feedforward=128, dropout=0.0, message_dropout=0.0, plain_numbers="all"
)


@contextmanager
def plain_forms() -> Iterator[None]:
    """Inside, no kernel of the model's is used."""
    modules = (entity_softmax, linear_maps, message_passing, segment_sums)
    before = [module.kernels_serve for module in modules], segment_sums.HAS_TRITON, fact_slots.HAS_KERNEL
    for module in modules:
        module.kernels_serve = lambda x, width: False  # type: ignore[attr-defined]
    segment_sums.HAS_TRITON = fact_slots.HAS_KERNEL = False
    try:
        yield
    finally:
        for module, function in zip(modules, before[0], strict=True):
            module.kernels_serve = function  # type: ignore[attr-defined]
        segment_sums.HAS_TRITON, fact_slots.HAS_KERNEL = before[1:]


def model_of(facts: FactTensors, settings: HyntInductiveSettings = SMALL) -> HyntInductive:
    torch.manual_seed(0)
    model = HyntInductive.build(facts.sizes, facts, settings).to(GPU)
    with torch.no_grad():
        for one in model.parameters():
            one.add_(torch.randn_like(one) * 0.05)
    return model


def facts_on_gpu(count: int = 600) -> FactTensors:
    return mixed_facts(count).to(GPU)


def stream_of(model: HyntInductive, facts: FactTensors, targets: int = 60) -> Any:
    return model.phases(facts, PhaseSettings(batch_size=targets, epochs=1))[0].stream


def learned(model: HyntInductive, stream: ObservedAndTargets, kind: torch.dtype) -> dict[str, torch.Tensor]:
    """Losses and gradients of one step."""
    model.zero_grad()
    items = stream.epoch(0, 0).items(0)
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=kind == torch.bfloat16, cache_enabled=False):
        loss = stream.loss_for(items.shape)(model, items.tensors)
    loss.total.backward()  # type: ignore[no-untyped-call]
    found = {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}
    return found | {"sums": loss.sums.detach(), "total": loss.total.detach()}


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).norm() / other.norm().clamp(min=1e-6))


def kernels_equal_the_plain_forms() -> None:
    facts = facts_on_gpu()
    model = model_of(facts)
    stream = stream_of(model, facts)
    with plain_forms():
        exact, rough = (learned(model, stream, kind) for kind in (torch.float32, torch.bfloat16))
    fast, half = (learned(model, stream, kind) for kind in (torch.float32, torch.bfloat16))
    for name, value in exact.items():
        assert apart(fast[name], value) < 1e-4, (name, apart(fast[name], value))
    ratios = [(apart(half[name], value), apart(rough[name], value), name) for name, value in exact.items()]
    print("    bf16 beside float32, kernels / plain:", [tuple(one) for one in sorted(ratios)[-3:]])
    middle = (
        sorted(one for one, _, _ in ratios)[len(ratios) // 2],
        sorted(one for _, one, _ in ratios)[len(ratios) // 2],
    )
    assert middle[0] < 1.3 * middle[1] + 1e-3, middle
    again = learned(model, stream, torch.bfloat16)
    assert all(torch.equal(again[name], value) for name, value in half.items()), "not the same bits when run again"


def lists_are_cut_alike() -> None:
    """Some rows are long, many are empty, and some items belong to no row."""
    torch.manual_seed(0)
    for rows, items in ((1, 0), (3, 500), (26130, 278112), (141465, 286291)):
        row = (torch.rand(items, device=GPU) ** 3 * (rows + 1)).long()
        links = Links.of(row, rows)
        with plain_forms():
            plain = pieces_of(links.offsets, rows, items)
        for one, other in zip(links.cut()[:-1], plain[:-1], strict=True):
            assert isinstance(one, torch.Tensor)
            assert torch.equal(one, other), (rows, items)


def gradients_of_maps_are_products() -> None:
    """In bf16, where one kernel finds those of several maps at once."""
    from hynt.kernels.linear_kernel import gradients_of_maps

    torch.manual_seed(0)
    for inputs, outputs, counts in (
        (128, (384, 384, 512), (30604, 12439, 12439)),
        (128, (384, 384, 768, 128), (10030, 10030, 10030, 10030)),
        (256, (128,), (61478,)),
        (64, (256, 64), (77, 0)),
    ):
        x = torch.randn(max(counts), inputs, device=GPU, dtype=torch.bfloat16)
        shapes = zip(counts, outputs, strict=True)
        outers = [torch.randn(*shape, device=GPU, dtype=torch.bfloat16) for shape in shapes]
        found, again = (gradients_of_maps([x] * len(outers), outers) for _ in range(2))
        for outer, weight, bias in zip(outers, *found, strict=True):
            assert apart(weight.double(), outer.double().t() @ x[: len(outer)].double()) < 4e-3, (inputs, outputs)
            assert apart(bias.double(), outer.double().sum(0)) < 4e-3, (inputs, outputs)
        for one, other in zip(found, again, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True)), "not the same bits when run again"


def work_put_aside_changes_no_bit() -> None:
    facts = facts_on_gpu()
    model = model_of(facts)
    stream = stream_of(model, facts)
    aside, before = learned(model, stream, torch.bfloat16), linear_maps.is_lowered
    linear_maps.is_lowered = message_passing.is_lowered = lambda layer: False
    try:
        in_line = learned(model, stream, torch.bfloat16)
    finally:
        linear_maps.is_lowered = message_passing.is_lowered = before
    assert all(torch.equal(aside[name], value) for name, value in in_line.items())


def runner_of(model: HyntInductive, facts: FactTensors, kind: str, notes: list[str], bf16: bool) -> Any:
    model = copy.deepcopy(model).train()
    stream = stream_of(model, facts)
    optimisation = Optimisation(tuple(model.parameters()), MUON, GPU, matrices=layer_matrices(model))
    if kind == "eager":
        return EagerStep(model, stream, optimisation, GPU, bf16=bf16)
    return CapturedStep(model, stream, optimisation, GPU, bf16=bf16, note=notes.append)


def captured_steps_equal_eager_ones_to_the_last_bit() -> None:
    facts, notes = facts_on_gpu(), []
    model = model_of(facts, replace(SMALL, dropout=0.2, message_dropout=0.1))
    runners = [runner_of(model, facts, kind, notes, True) for kind in ("eager", "captured", "captured")]
    for runner in runners:
        for epoch in range(2):
            items = runner.stream.epoch(0, epoch)
            for index in range(len(items)):
                runner.run(items.items(index), 100 * epoch + index)
    torch.cuda.synchronize()
    assert not notes, notes
    eager, captured, again = ([*runner.model.parameters()] for runner in runners)
    assert all(torch.equal(one, other) for one, other in zip(captured, again, strict=True)), "not repeatable"
    assert all(torch.equal(one, other) for one, other in zip(eager, captured, strict=True)), "capture changes bits"
    assert any(not torch.equal(one, other) for one, other in zip(model.parameters(), captured, strict=True))


def steps_never_wait() -> None:
    facts = facts_on_gpu()
    runner = runner_of(model_of(facts), facts, "captured", [], True)
    items = runner.stream.epoch(0, 0)
    runner.run(items.items(0), 0)
    tell_of_waiting("error")
    try:
        for index in range(1, len(items)):
            runner.run(items.items(index), index)
            runner.has_failed()
    finally:
        tell_of_waiting("default")


def a_bad_step_moves_nothing() -> None:
    for plain in (False, True):
        facts = facts_on_gpu()
        runner = runner_of(model_of(facts), facts, "eager" if plain else "captured", [], True)
        items = runner.stream.epoch(0, 0)
        runner.run(items.items(0), 0)
        with torch.no_grad():
            runner.model.rounds[1].message_in.weight[0, 0] = float("nan")
        before = [one.detach().clone() for one in runner.model.parameters()]
        if plain:
            with plain_forms():
                runner.run(items.items(1), 1)
        else:
            runner.run(items.items(1), 1)
        torch.cuda.synchronize()
        assert bool(runner.optimisation.failed)
        for one, other in zip(before, runner.model.parameters(), strict=True):
            torch.testing.assert_close(one, other.detach(), rtol=0, atol=0, equal_nan=True)


def what_is_asked_for_does_not_reach_its_question() -> None:
    host = mixed_facts(300)
    rows = torch.argsort(host.qualifier_counts(), descending=True)[40:52]
    model = model_of(host.to(GPU)).eval()
    batch, _, where = every_question(host, rows, GPU)
    others = [every_question(exchanged(host, rows, position), rows, GPU)[0] for position in range(9)]

    def checked() -> None:
        states = model.encode(host.to(GPU), torch.arange(100, 300, device=GPU))
        before = model.read_beside(batch, states).encoded
        for position, other in enumerate(others):
            same = (before == model.read_beside(other, states).encoded).all(1).cpu()
            mine = torch.tensor([asked == position for _, asked in where])
            assert same[mine].all(), position
            assert not same[~mine].all(), position

    for half in (False, True):
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16, enabled=half):
            checked()
            with plain_forms():
                checked()


def it_is_asked_as_on_a_cpu() -> None:
    """On a GPU the questions of many tiles are read at once, of facts of all lengths."""
    graph = small_graph(200)
    scaling = NumberScaling.fit([graph.split("train")], graph.vocabulary)
    facts = FactTensors.from_table(graph.split("train"), graph.vocabulary, scaling)
    model = model_of(facts).eval()
    found = [
        Evaluator(graph, scaling, "valid", device=device, rows=rows).evaluate(model.to(device)).per_question
        for device, rows in ((torch.device("cpu"), None), (GPU, 16))
    ]
    for task in ("link", "relation"):
        ranks = [one[task].rank() for one in found]
        assert (ranks[0] == ranks[1]).mean() > 0.95, task  # another processor rounds differently in the last bits
    host, device = (torch.from_numpy(one["number"].predicted_scaled) for one in found)
    torch.testing.assert_close(host, device, rtol=1e-3, atol=1e-3)


def a_stopped_run_resumes_byte_for_byte() -> None:
    model = {"dimension": 32, "layers": 2, "heads": 4, "feedforward": 64, "bins": 21, "plain_numbers": "all"}
    chosen = tiny_settings(
        "hynt-inductive",
        batch_size=16,
        schedule={"epochs": 6, "shape": "warm-cosine"},
        optimiser=to_mapping(MUON),
        model=model,
    )
    graph, stopper = small_graph(60), Stopper()

    class Stop(Watcher):
        def epoch_done(self, record: Any) -> None:  # the next epoch has begun by then
            stopper.asked = record.epoch == 3

    with tempfile.TemporaryDirectory() as place:
        whole = train(start(graph, chosen, Path(place) / "whole", GPU), GPU)
        stopped = start(graph, chosen, Path(place) / "stopped", GPU)
        try:
            train(stopped, GPU, Stop(), stopper)
        except Interrupted as interrupted:
            print("   ", interrupted)
        else:
            raise AssertionError("training was not stopped")
        again = train(RunFolder.open(stopped.path), GPU)
        one, other = ((folder.path / "weights.safetensors").read_bytes() for folder in (whole, again))
    assert one == other


def trains_without_triton() -> None:
    """By the plain forms, which wait for the device and so are not captured."""
    facts, notes = facts_on_gpu(), []
    with plain_forms():
        runner = runner_of(model_of(facts), facts, "captured", notes, True)
        items = runner.stream.epoch(0, 0)
        for index in range(3):
            runner.run(items.items(index), index)
        torch.cuda.synchronize()
        assert not runner.has_failed()
    print("   ", notes)


CHECKS = (
    kernels_equal_the_plain_forms,
    lists_are_cut_alike,
    gradients_of_maps_are_products,
    work_put_aside_changes_no_bit,
    captured_steps_equal_eager_ones_to_the_last_bit,
    steps_never_wait,
    a_bad_step_moves_nothing,
    what_is_asked_for_does_not_reach_its_question,
    it_is_asked_as_on_a_cpu,
    a_stopped_run_resumes_byte_for_byte,
    trains_without_triton,
)
