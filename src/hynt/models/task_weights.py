"""A model whose weights were at their best at another time for each task: it answers each task with its own.

Links, relations and numbers are learnt at different speeds, and each is overlearnt when its time is over. The copies
have one form and observe the same facts. A question is read by those copies only whose tasks it, or a row beside it,
asks for; an evaluation asks task by task, so it costs what one model costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from hynt.batches.fact_tensors import FactTensors
from hynt.batches.masked_batch import MaskedBatch, Task
from hynt.models.contract import (
    Candidates,
    Capability,
    EncodedQuestion,
    Model,
    Observer,
    Part,
    Relations,
    ScaledNumber,
    give_observed,
)
from hynt.objectives.streams import ItemStream, Phase, PhaseSettings


@dataclass(frozen=True, eq=False)
class TaskQuestion(EncodedQuestion):
    """What the copies made of the same questions, by task."""

    by_task: Mapping[Task, EncodedQuestion]

    def take(self, rows: Tensor) -> TaskQuestion:
        """The questions at these row numbers, (k,) int64."""
        taken = {task: one.take(rows) for task, one in self.by_task.items()}
        return TaskQuestion(self.encoded[rows], self.relation[rows], taken)


class TaskWeights(nn.Module):
    """A model like any other, made of a model for all tasks and of copies for some."""

    streams: ClassVar[tuple[type[ItemStream], ...]] = ()

    def __init__(self, first: Model, others: Mapping[Task, Model]) -> None:
        """`first` answers all tasks but those of the `others`."""
        super().__init__()
        self.sizes, self.others = first.sizes, list(others)
        self.members = nn.ModuleList(cast(list[nn.Module], [first, *others.values()]))
        if hasattr(first, "distribution"):
            self.distribution = self._distribution

    @property
    def first(self) -> Model:
        """The model that answers all tasks without weights of their own."""
        return cast(Model, self.members[0])

    @property
    def answers(self) -> frozenset[Capability]:
        """What any of the copies can be asked: they are alike."""
        return self.first.answers

    @property
    def reads(self) -> frozenset[Part]:
        """What any of them looks at."""
        return self.first.reads

    def observe(self, facts: FactTensors) -> None:
        """Passes the facts on to all copies; each encodes them when it is first asked."""
        for member in self.members:
            give_observed(cast(Model, member), facts)

    def predicts(self, relation: Tensor) -> Tensor:
        """(n,) bool: whether enough numbers of these relations are known to say one."""
        return cast(Observer, self.of(Task.NUMBER)).predicts(relation)

    def each(self, change: Callable[[Model], Model]) -> TaskWeights:
        """The same made of changed copies."""
        first, *others = (change(cast(Model, one)) for one in self.members)
        return TaskWeights(first, dict(zip(self.others, others, strict=True))).eval()

    def phases(self, train: FactTensors, settings: PhaseSettings) -> list[Phase]:  # noqa: ARG002
        """No phases: it is trained already."""
        return []

    def of(self, task: Task) -> Model:
        """The copy that answers a task."""
        return cast(Model, self.members[1 + self.others.index(task)]) if task in self.others else self.first

    def read(self, batch: MaskedBatch) -> TaskQuestion:
        """The questions as read by the copy of each task that is among them."""
        tasks = [Task(one) for one in torch.unique(batch.task()).tolist()]
        by_task: dict[Task, EncodedQuestion] = {}
        for task in tasks or list(Task):
            alike = [one for one in by_task if self.of(one) is self.of(task)]
            by_task[task] = by_task[alike[0]] if alike else self.of(task).read(batch)
        one = next(iter(by_task.values()))
        return TaskQuestion(one.encoded, one.relation, by_task)

    def score(self, question: EncodedQuestion, candidates: Candidates) -> Tensor:
        """(rows, candidates) by the copy whose task looks for answers among such candidates."""
        task = Task.LINK
        if isinstance(candidates, Relations | ScaledNumber):
            task = Task.RELATION if isinstance(candidates, Relations) else Task.NUMBER
        return self.of(task).score(_read_for(question, task), candidates)

    def _distribution(self, question: EncodedQuestion) -> Any:
        """What the model believes of the numbers asked for."""
        return cast(Any, self.of(Task.NUMBER)).distribution(_read_for(question, Task.NUMBER))


def _read_for(question: EncodedQuestion, task: Task) -> EncodedQuestion:
    if not isinstance(question, TaskQuestion) or task not in question.by_task:
        raise ValueError("this model answers questions it has read itself, and what they ask for")
    return question.by_task[task]
