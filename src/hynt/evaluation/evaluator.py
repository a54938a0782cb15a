"""Asks a model every question of a split and keeps the results, by the one protocol of this project.

What does not depend on the model (questions, filter, tiles) is made once, so a trainer can evaluate again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hynt import __version__
from hynt.batches.fact_tensors import FactTensors
from hynt.batches.number_scaling import NumberScaling
from hynt.errors import UsageError
from hynt.evaluation.evaluation_pass import EvaluationPass
from hynt.evaluation.metrics import TASKS, TIES, TaskName, Ties, answerable_components, checked_tasks, of_task
from hynt.evaluation.results import Evaluation, RankedQuestions, TaskQuestions, by_scope
from hynt.graph.changes import fact_hashes, same_facts, with_shuffled_numbers
from hynt.graph.content_hash import question_keys
from hynt.graph.fact_table import Components, FactTable, components, concatenate
from hynt.graph.knowledge_graph import KnowledgeGraph
from hynt.graph.known_answers import KnownAnswers
from hynt.graph.number_summary import sorted_numbers
from hynt.graph.vocabulary import Floats, Ids
from hynt.models.contract import Model, Part, give_observed
from hynt.models.registry import build

# Asking in several processes: each takes every so many-th tile of questions, and what they found is added up.
#
# Tiles keep their shapes, so a question gets the same bits whoever asks it, and ranks are those of one process.


class Workers(Protocol):
    """The processes that evaluate together; training's team is one."""

    @property
    def rank(self) -> int: ...

    @property
    def world(self) -> int: ...

    def gathered(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, the same for all of them."""


class OneWorker:
    """A single process, which asks every question itself."""

    rank, world = 0, 1

    def gathered(self, tensor: Tensor) -> Tensor:
        """The tensor itself: there is nothing to add to it."""
        return tensor


@dataclass(frozen=True, eq=False)
class Evaluator:
    """The questions of one split, ready to be asked on one device."""

    graph: KnowledgeGraph
    scaling: NumberScaling
    split: str = "test"
    tasks: tuple[TaskName, ...] = TASKS
    ties: Ties = "realistic"
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    type_constrained: bool = False
    rows: int | None = None  # questions per tile; None: what suits the device
    literals: Any = None  # pa.StringArray: ids for literals, for token models
    described: Mapping[str, Any] = field(default_factory=dict)  # what the caller adds to the protocol: model, seed, …
    observed: tuple[str, ...] = ("train",)  # splits given to a model that reads observed facts
    without_duplicates: bool = False  # whether observed facts that equal an asked one are left out
    shuffle_literals: bool = False  # whether numbers that are read, not asked for, are dealt anew within each relation
    workers: Workers = field(
        default_factory=OneWorker
    )  # processes that ask together: each takes its share of the tiles

    def __post_init__(self) -> None:
        if self.ties not in TIES:
            raise UsageError(f"unknown tie rule {self.ties!r}.", where="ties", advice=f"Choose {' or '.join(TIES)}.")

    def evaluate(self, model: Model, progress: Callable[[int, int], None] | None = None) -> Evaluation:
        """Ask `model`, which is on the evaluator's device, everything it can answer.

        `progress` hears how many questions are done, of how many, as they are sent to the device.
        """
        found: dict[TaskName, TaskQuestions] = {}
        constrained: RankedQuestions | None = None
        chosen = {task: self._answerable(model, task) for task in self.tasks}
        asked = {task: one for task, one in chosen.items() if len(one)}
        smaller: list[dict[str, int]] = []
        evaluation_pass = EvaluationPass(self, model, sum(len(one) for one in asked.values()), progress, smaller)
        reads_observed = Part.OBSERVED_FACTS in model.reads
        if reads_observed:
            give_observed(model, self.observed_facts)
        with scoring_conditions(model):
            for task, one in asked.items():
                if task == "number":
                    found[task] = evaluation_pass.numbers(one)
                else:
                    found[task], milder = evaluation_pass.ranks(task, one)
                    constrained = milder or constrained
        read = "+".join(self.observed) + (" without duplicates of asked facts" if self.without_duplicates else "")
        unanswered = {task: len(of_task(self.questions, task)) - len(one) for task, one in chosen.items()}
        return Evaluation(
            self.graph.vocabulary,
            found,
            constrained,
            self.ties,
            self.protocol()
            | ({"observed": read} if reads_observed else {})
            | {"unanswered": {task: count for task, count in unanswered.items() if count}, "memory_back_off": smaller},
        )

    def protocol(self) -> dict[str, Any]:
        """What a number of this evaluation needs beside it to be compared with another."""
        return {
            "graph": self.graph.name,
            "split": self.split,
            "filter": "+".join(self.graph.splits),
            "ties": self.ties,
            "candidates": {"entities": self.graph.vocabulary.entity_count, "relations": len(self.graph.relations)},
            "number_scale": "linear min-max per relation",
            "precision": "float32",
            "hynt_version": __version__,
            **({"literals": "shuffled"} if self.shuffle_literals else {}),
            **self.described,
        }

    @cached_property
    def questions(self) -> Components:
        """Every component of the split."""
        return components(self.graph.split(self.split), self.graph.vocabulary.relation_is_number)

    @cached_property
    def known(self) -> KnownAnswers:
        """What all splits of the graph answer."""
        return KnownAnswers.build(self.graph.splits, self.graph.vocabulary.relation_is_number)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """(questions, 2) the content hash of each question, by which known answers are found."""
        return question_keys(self.graph.split(self.split), self.graph.vocabulary.relation_is_number)

    @cached_property
    def facts(self) -> FactTensors:
        """The split's facts on the device."""
        return self._tensors(self.graph.split(self.split))

    @cached_property
    def observed_facts(self) -> FactTensors:
        """What a model that reads observed facts is given; duplicates of asked facts too, unless they are left out."""
        table = concatenate([self.graph.split(name) for name in self.observed])
        if self.without_duplicates:
            asked = fact_hashes(self.graph.split(self.split), self.graph.vocabulary)
            table = table.where(~same_facts(fact_hashes(table, self.graph.vocabulary), asked))
        return self._tensors(table)

    def _tensors(self, table: FactTable) -> FactTensors:
        if self.shuffle_literals:
            table = with_shuffled_numbers(table, self.graph.vocabulary.relation_is_number)
        return FactTensors.from_table(table, self.graph.vocabulary, self.scaling, self.device, self.literals)

    @cached_property
    def medians(self) -> Floats:
        """(relations,) of the training numbers of each relation, in the graph's unit; 0 where there are none."""
        vocabulary, found = self.graph.vocabulary, np.zeros(self.graph.vocabulary.relation_count)
        learned = [self.graph.splits[name] for name in self.observed if name in self.graph.splits]
        if learned:
            numbers = sorted_numbers(concatenate(learned), vocabulary.relation_is_number)
            found[numbers.present] = numbers.quantile(0.5)
        return found

    def _answerable(self, model: Model, task: TaskName) -> Ids:
        """(n,) the questions of a task at positions that the model says it answers."""
        return answerable_components(model, self.questions, task)


@contextmanager
def scoring_conditions(model: Model) -> Iterator[None]:
    """No gradients, no dropout, no autocast, and full float32 products: half precision ties scores by the hundreds.

    Not inference mode: tensors made in it, such as cached indices, could not be used for training afterwards.
    """
    training = bool(getattr(model, "training", False))
    precision = torch.get_float32_matmul_precision()
    if isinstance(model, torch.nn.Module):
        model.eval()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.no_grad(), torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(precision)
        if isinstance(model, torch.nn.Module):
            model.train(training)


def evaluate(
    model: Model,
    graph: KnowledgeGraph,
    scaling: NumberScaling,
    split: str = "test",
    tasks: Iterable[str] = TASKS,
    *,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Evaluation:
    """One evaluation, start to end, with the options of an `Evaluator`. To evaluate often, make one and keep it."""
    evaluator = Evaluator(graph, scaling, split, checked_tasks(tasks), device=torch.device(device), **options)
    return evaluator.evaluate(model, progress)


# The trivial answers that stand beside every model's: without them a number says little.

REFERENCES = ("frequency", "relation-mean", "relation-median", "neighbour-mean")


def reference_rows(evaluator: Evaluator, learned: FactTable) -> dict[str, dict[str, Any]]:
    """By model, task and scope the metrics of each trivial model on the evaluator's questions.

    `learned` are the facts that the model beside them learned from. All scales are linear: a mean of logarithms is no
    mean.
    """
    plain = replace(evaluator, scaling=evaluator.scaling.plain(), literals=None, type_constrained=False)
    train = FactTensors.from_table(learned, evaluator.graph.vocabulary, plain.scaling, evaluator.device)
    rows: dict[str, dict[str, Any]] = {}
    for name in REFERENCES:
        model = build(name, train.sizes, train)
        assert isinstance(model, Model)
        found = plain.evaluate(model)
        rows[name] = {task: by_scope(questions, found.ties) for task, questions in found.per_question.items()}
    return rows
