"""How the models of triplets and literals are trained."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from hynt.batches.question_groups import Grouping
from hynt.errors import UsageError
from hynt.models.mt_kgnn import MtKgnn
from hynt.models.transea import Transea
from hynt.objectives.alternating_tasks import AlternatingTasks
from hynt.objectives.grouped_questions import GroupedQuestions
from hynt.objectives.number_head_fit import HasNumberHead, NumberHeadFit
from hynt.objectives.streams import Phase, trainable
from hynt.objectives.translated_triples import TranslatedTriples
from hynt.runs.settings import RunSettings
from hynt.runs.training_data import TrainingData


def literal_phases(model: nn.Module, data: TrainingData, settings: RunSettings) -> list[Phase] | None:
    """The phases of a model of this group; None for any other model."""
    if not isinstance(model, Transea | MtKgnn | HasNumberHead):
        return None
    facts, epochs, batch_size = data.facts, settings.schedule.epochs, settings.batch_size
    if bool(torch.all(facts.tail_is_number)):
        raise UsageError(
            f"no training fact has an entity as its tail, so {settings.model_name} has no link to learn from.",
            advice="Choose another model.",
        )
    if isinstance(model, Transea):
        own = model.settings
        translated = TranslatedTriples(facts, batch_size, own.margin, own.attribute_weight)
        return [Phase(model.item_stream.value, translated, trainable(model), epochs)]
    if isinstance(model, MtKgnn):
        tasks = AlternatingTasks(facts, batch_size, settings.losses.smoothing, model.settings.attribute_steps)
        return [
            Phase(model.item_stream.value, tasks, model.link_parameters(), epochs, second=model.number_parameters())
        ]
    return _links_then_numbers(model, data, settings)


def _links_then_numbers(model: HasNumberHead, data: TrainingData, settings: RunSettings) -> list[Phase]:
    """Grouped questions, and then the head for numbers, where there are any."""
    module = cast(nn.Module, model)
    head = tuple(model.number_head.parameters())
    of_head = {id(parameter) for parameter in head}
    others = tuple(parameter for parameter in trainable(module) if id(parameter) not in of_head)
    grouping = cast(Grouping, getattr(model, "grouping", Grouping()))
    links = GroupedQuestions(data.facts, settings.batch_size, grouping, settings.losses.smoothing)
    phases = [Phase("grouped questions", links, others, settings.schedule.epochs)]
    fit = NumberHeadFit(data.facts, settings.batch_size)
    if fit.item_count:
        phases.append(Phase("number head", fit, head, settings.model.head_epochs, rate=settings.model.head_rate))
    return phases
