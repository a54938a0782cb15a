"""The first training steps of a registered model on a small graph: for expected losses and for learning by heart."""

from __future__ import annotations

import torch

from hynt.batches.epoch_plan import derived_seed
from hynt.config import from_mapping
from hynt.runs.model_choice import settings_class_for
from hynt.runs.opening import new_model
from hynt.runs.training_data import fit_scaling, training_data
from hynt.training.optimisation import Optimisation
from hynt.training.process import phases_for
from hynt.training.step import EagerStep

CPU = torch.device("cpu")


def trained(model_name, graph, settings, steps):
    """The model after so many steps, the losses of these, and what it was trained on."""
    torch.set_num_threads(1)
    chosen = from_mapping(settings_class_for(model_name), settings)
    data = training_data(graph, chosen, fit_scaling(graph, chosen), CPU)
    model = new_model(chosen, data, CPU).train()
    phase = phases_for(model, data, chosen)[0]
    optimisation = Optimisation(phase.parameters, chosen.optimiser, CPU, matrices=phase.matrices)
    runner, losses = EagerStep(model, phase.stream, optimisation, CPU, bf16=False), []
    epoch = 0
    while len(losses) < steps:
        items = phase.stream.epoch(chosen.seed, epoch)
        for index in range(min(len(items), steps - len(losses))):
            before = runner.tally.clone()
            runner.run(items.items(index), derived_seed(chosen.seed, 0, epoch, index, "step"))
            sums, counts = runner.tally - before
            losses.append(float(sums.sum() / counts.sum()))
        epoch += 1
    return model.eval(), losses, data
