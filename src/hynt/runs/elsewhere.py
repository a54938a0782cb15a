"""A run over a graph that it was not trained on: entities, relations and numbers that it never met.

Only a model that reads observed facts can do this. Relations that the run knows keep the run's scale and ranks, so that
a number means what it meant in training. One that it does not know is fitted on the facts observed here once they have
`FEWEST` different numbers of it; before that its numbers are read as numbers of which nothing is known, and it is not
predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa
import torch

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import Expectation, NumberScaling
from hynt.errors import UsageError
from hynt.evaluation.combining import combined
from hynt.graph.changes import refuse_other_kinds
from hynt.graph.fact_table import FactTable, concatenate, empty_table
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Floats, Ids, Vocabulary
from hynt.models.combination import Combination, TaskWeights, Weights
from hynt.models.contract import Model
from hynt.runs.checkpoint import weights_of
from hynt.runs.kept_states import keep_states
from hynt.runs.model_choice import build_model
from hynt.runs.observing import ObservedFacts
from hynt.runs.opening import LoadedRun
from hynt.runs.training_data import training_splits, training_table

FEWEST = 8
"""The least number of different numbers for which a relation that is new to a run gets a scale of its own."""


def on_graph(loaded: LoadedRun, graph: KnowledgeGraph, splits: Sequence[str] | None = None) -> LoadedRun:
    """The run, asked of this graph. It observes these splits, or all."""
    home = loaded.home or loaded
    if home.observed is None or isinstance(home.trained, Combination):
        name = home.settings.model_name
        raise UsageError(
            f"a run of {name!r} answers about the graph it was trained on and about no other.",
            where="graph",
            advice="Train a model that reads observed facts: hynt train GRAPH --model hynt-inductive.",
        )
    refuse_other_kinds(home.graph.vocabulary, graph.vocabulary, "graph")
    chosen = tuple(graph.splits) if splits is None else tuple(splits)
    table, device = graph.columns(chosen), home.observed.facts.device
    scaling = scaling_on(home, graph.vocabulary, table)
    numbers = _number_facts(*_reference_numbers(home, graph.vocabulary, table))

    def moved(learned: Model) -> Model:
        with torch.random.fork_rng(devices=[]):  # weights are drawn only to be replaced
            model = build_model(home.settings, FactTensors.from_table(numbers, graph.vocabulary, scaling, device))
        found = weights_of(cast(torch.nn.Module, learned))
        with torch.no_grad():
            for name, weight in weights_of(model).items():
                weight.copy_(found[name])
        return cast(Model, model.to(device).eval())

    known = home.trained
    made = known.each(moved) if isinstance(known, TaskWeights) else moved(known)
    observed = ObservedFacts.of(table, graph.vocabulary, scaling, device)
    if isinstance(home.model, Combination):  # its statistics are of training facts, there as here
        counted = [graph.split(name) for name in chosen if name in training_splits(home.settings)] or [table]
        facts = FactTensors.from_table(concatenate(counted), graph.vocabulary, scaling, device)
        made = combined([made], facts, _weights_on(home.model.weights, home.graph.vocabulary, graph.vocabulary))
    made = keep_states(made)
    return replace(home, graph=graph, scaling=scaling, model=made, observed=observed, home=home, asked_of=chosen)


def _weights_on(weights: Weights, own: Vocabulary, other: Vocabulary) -> Weights:
    """What the members of a combination count, by the relations of another graph."""
    groups = {
        capability: replace(
            group,
            relations={
                other.relation_ids[own.relations[relation].name]: row
                for relation, row in group.relations.items()
                if own.relations[relation].name in other.relation_ids
            },
        )
        for capability, group in weights.groups.items()
    }
    return replace(weights, groups=groups)


def scaling_on(home: LoadedRun, vocabulary: Vocabulary, table: FactTable) -> NumberScaling:
    """The run's own scale for relations it has learned numbers of, and for others that of the facts in `table`."""
    known, learned = home.scaling.to_mapping(home.graph.vocabulary), _learned(home)
    fitted = NumberScaling.fit([table], vocabulary).to_mapping(vocabulary)
    scales = {name: known[name] if name in learned else one for name, one in fitted.items()}
    made = NumberScaling.from_mapping(scales, vocabulary)
    if home.scaling.expectation is None:
        return made
    means = home.scaling.expectation.to_mapping(home.graph.vocabulary)
    here = {name: one for name, one in means.items() if name in vocabulary.relation_ids}
    return replace(made, expectation=Expectation.from_mapping(here, vocabulary, "means"))


def _learned(home: LoadedRun) -> dict[str, Floats]:
    """The numbers that the run was trained on, by relation."""
    numbers = sorted_numbers(training_table(home.graph, home.settings), home.graph.vocabulary.relation_is_number)
    names = [home.graph.relations[relation].name for relation in numbers.present.tolist()]
    return dict(zip(names, np.split(numbers.value, numbers.start[1:]), strict=True)) if names else {}


def _reference_numbers(home: LoadedRun, vocabulary: Vocabulary, table: FactTable) -> tuple[Ids, Floats]:
    """The numbers that ranks are told by: the run's training numbers, and those of new relations that have enough."""
    learned = {vocabulary.relation_ids[k]: v for k, v in _learned(home).items() if k in vocabulary.relation_ids}
    here = sorted_numbers(table, vocabulary.relation_is_number)
    for relation, start, size in zip(here.present.tolist(), here.start.tolist(), here.size.tolist(), strict=True):
        value = here.value[start : start + size]
        if relation not in learned and np.count_nonzero(np.diff(value)) + 1 >= FEWEST:
            learned[relation] = value
    relation = np.repeat(np.array(list(learned), dtype=np.int64), [len(value) for value in learned.values()])
    return relation, np.concatenate([np.zeros(0), *learned.values()])


def _number_facts(relation: Ids, value: Floats) -> FactTable:
    """A fact for each number; whose it is does not matter."""
    filler = np.zeros(len(relation), dtype=np.int32)
    return replace(
        empty_table(),
        head=filler,
        relation=relation.astype(np.int32),
        tail_entity=filler,
        tail_number=value.astype(np.float64),
        tail_literal=pa.array([""] * len(relation), type=pa.string()),
        offsets=np.zeros(len(relation) + 1, dtype=np.int64),
    )
