"""What a run trains on: the facts of its splits as tensors, with numbers scaled as its settings say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from hynt.batches.fact_tensors import FactTensors, distinct_literals
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import UsageError
from hynt.graph.changes import with_shuffled_numbers
from hynt.graph.fact_table import FactTable
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.runs.model_choice import needs_literals
from hynt.runs.settings import RunSettings


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The training facts of a graph on a device."""

    graph: KnowledgeGraph
    scaling: NumberScaling
    facts: FactTensors
    literals: Any  # pa.StringArray of the training literals, for models that take each for an entity; else None


def training_splits(settings: RunSettings) -> tuple[str, ...]:
    """The splits that a run learns from."""
    return ("train", "valid") if settings.train_on == "train+valid" else ("train",)


def training_table(graph: KnowledgeGraph, settings: RunSettings) -> FactTable:
    """The facts that a run learns from."""
    table = graph.columns(training_splits(settings))
    if not len(table):
        raise UsageError("the training split has no facts.", advice="Import a graph that has some.")
    if settings.literals == "shuffled":
        return with_shuffled_numbers(table, graph.vocabulary.relation_is_number)
    return table


def fit_scaling(graph: KnowledgeGraph, settings: RunSettings) -> NumberScaling:
    """Fitted on the splits that are trained on, or on all of them, as the paper's released files are.

    A log scale that some value of any split cannot take is refused here, not at test time.
    """
    everything = settings.scale_on == "all-splits"
    fitted = list(graph.splits.values()) if everything else [graph.split(name) for name in training_splits(settings)]
    return NumberScaling.fit(fitted, graph.vocabulary, settings.log_relations, list(graph.splits.values()))


def training_data(
    graph: KnowledgeGraph, settings: RunSettings, scaling: NumberScaling, device: torch.device
) -> TrainingData:
    """The tensors of a run."""
    table = training_table(graph, settings)
    literals = distinct_literals(table) if needs_literals(settings) else None
    facts = FactTensors.from_table(table, graph.vocabulary, scaling, device, literals)
    return TrainingData(graph, scaling, facts, literals)
