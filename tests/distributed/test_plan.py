"""Shares of steps: together they are the step, no row twice, and their gradients add up to the step's."""

from __future__ import annotations

import pytest
import torch

from hynt.errors import UsageError
from hynt.objectives.streams import ItemStream
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.process import phases_for
from hynt.training.resolve_settings import check_shareable
from tests.training.small_graph import NO_DROPOUT, TINY, small_graph, tiny_settings

CPU = torch.device("cpu")


def stream_of(model_name: str):
    own = {**TINY["model"], "dropout": 0.0} if model_name == "hynt" else NO_DROPOUT[model_name]
    settings = tiny_settings(model_name, model=own, batch_size=24)
    graph = small_graph(people=40)
    data = training_data(graph, settings, fit_scaling(graph, settings), CPU)
    model = new_model(settings, data, CPU)
    return phases_for(model, data, settings)[0].stream, model


@pytest.mark.parametrize("world", [2, 3])
def test_shares_hold_the_facts_of_the_whole_step_each_once(world):
    stream, _ = stream_of("hynt")
    whole = stream.epoch(0, 3)
    shares = [stream.share(rank, world).epoch(0, 3) for rank in range(world)]
    for index in range(len(whole)):
        step = whole.step(index)
        expected = sorted(
            (int(step.rows[row]), int(step.asked[row]))
            for task in (0, 1, 2)
            for row, weight in zip(*_output(step.shape, step.indices, step.weights, task), strict=True)
            if weight
        )
        found, shapes = [], set()
        for share in shares:
            shape, (indices, weights, counts) = share.items(index)
            shapes.add(shape)
            rows = shape.layout.rows
            for task in (0, 1, 2):
                places, given_weights = _output(shape, indices, weights, task)
                found += [
                    (int(indices[row]), int(indices[rows + row]))
                    for row, weight in zip(places, given_weights, strict=True)
                    if weight
                ]
            whole_weights = [_output(step.shape, step.indices, step.weights, task)[1] for task in (0, 1, 2)]
            assert counts.tolist() == [float(given_weights.sum()) for given_weights in whole_weights]
        assert sorted(found) == expected
        assert len(shapes) == 1


def _output(shape, indices, weights, task):
    start = sum(shape.outputs[:task])
    first = 2 * shape.layout.rows + start
    size = shape.outputs[task]
    return indices[first : first + size], weights[start : start + size]


@pytest.mark.parametrize("model_name", ["hynt", *NO_DROPOUT])
def test_gradients_of_the_shares_add_up_to_the_gradient_of_the_step(model_name):
    stream, model = stream_of(model_name)
    model.train()
    world = 2

    def gradients(items):
        model.zero_grad()
        loss = stream.loss_for(items.shape)(model, items.tensors)
        loss.total.backward()
        found = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
        return found, loss

    whole, loss = gradients(stream.epoch(0, 0).items(0))
    parts = [gradients(stream.share(rank, world).epoch(0, 0).items(0)) for rank in range(world)]
    assert all(part.keys() == whole.keys() for part, _ in parts)
    for name, gradient in whole.items():
        torch.testing.assert_close(sum(part[name] for part, _ in parts), gradient, rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(sum(one.counts for _, one in parts), loss.counts)
    torch.testing.assert_close(sum(one.total for _, one in parts), loss.total, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model_name", ["transea", "literale", "hinge"])
def test_a_model_that_cannot_be_shared_is_refused_with_a_word(model_name):
    with pytest.raises(UsageError, match=f"{model_name}.* cannot be shared") as problem:
        check_shareable(tiny_settings(model_name))
    assert problem.value.advice.startswith("Train it in one process; hynt, stare, hy-transformer, gran and ram can")


def test_a_stream_that_cannot_be_shared_refuses_it():
    """A model of another package may call it; ours are refused before, by name."""

    class Alone(ItemStream):
        name, parts = "loners", ("loss",)

        def epoch(self, seed, epoch):
            raise AssertionError

        def loss_for(self, shape):
            raise AssertionError

    with pytest.raises(UsageError, match="loners cannot be shared among processes"):
        Alone().share(0, 2)
